package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/membership"
	"github.com/fairlead-dev/fairlead/read/status"
	"github.com/fairlead-dev/fairlead/read/transitions"
	"github.com/fairlead-dev/fairlead/work/agents"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/notices"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/seam"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/tasks"
	"github.com/fairlead-dev/fairlead/work/tools"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// Supervisor runs one team: the loop and all controllers, whose methods are its own. Make it with Open, then call Run.
type Supervisor struct {
	*loop.Loop
	*sessions.SessionController
	*agents.AgentController
	*turns.ChannelController
	*crewctl.CrewController
	*runs.RunController
	*tasks.TaskController
	*dispatchctl.DispatchController
	*questions.QuestionController
	*tools.ToolController
	*status.StatusController
	*transitions.TransitionController
	*notices.NoticeController
	*listen.Listener

	Cluster *membership.HostController // the other machines of the team

	opts seam.Options
	log  *slog.Logger
}

// Open replays the journal. It starts and writes nothing; Run does.
func Open(ctx context.Context, opts seam.Options) (*Supervisor, error) {
	l := loop.New(ctx,
		loop.Options{
			Journal: opts.Journal, Log: opts.Log, FileSum: agents.RenderSum, DocumentSum: crewctl.DocumentSum, Zone: time.Local,
			RunsOnly: opts.RunsOnly, At: opts.At,
		})
	e := &Supervisor{Loop: l, opts: opts, log: opts.Log}
	if err := l.Replay(ctx); err != nil {
		return nil, err
	}
	e.Cluster = membership.New(l, opts)
	opts.Host = e.Cluster.Router()
	e.opts = opts
	e.SessionController = sessions.New(l, opts)
	e.AgentController = agents.New(l, opts, e.SessionController)
	e.ChannelController = turns.New(l, opts, e.SessionController)
	e.CrewController = crewctl.New(l, opts, e.SessionController, e.ChannelController)
	e.RunController = runs.New(l, opts, e.SessionController)
	e.TaskController = tasks.New(l, e.RunController)
	e.DispatchController = dispatchctl.New(l, opts, e.SessionController)
	var err error
	if e.QuestionController, err = questions.New(l, opts, e.SessionController); err != nil {
		return nil, err
	}
	e.ToolController = tools.New(l, e.SessionController, e.ChannelController, e.RunController, e.QuestionController)
	e.StatusController = status.New(l, opts, status.Parts{
		Sessions: e.SessionController, Agents: e.AgentController, Channels: e.ChannelController, Crew: e.CrewController,
		Dispatch: e.DispatchController,
		Runs:     e.RunController, Questions: e.QuestionController,
	})
	e.TransitionController = transitions.New(l, opts.Log)
	e.NoticeController = notices.New(l, opts)
	e.Listener = listen.New(l, opts, listen.Parts{
		Sessions: e.SessionController, Channels: e.ChannelController, Runs: e.RunController,
		Dispatch: e.DispatchController, Questions: e.QuestionController,
	})
	e.connect()
	if err := Check(opts.Config, opts.Drivers); err != nil {
		return nil, err
	}
	for i := range opts.Config.Agents {
		conf := &opts.Config.Agents[i]
		e.AddMember(sessions.NewSlot(conf, opts.Drivers[conf.Driver]))
	}
	e.registerAll()
	return e, nil
}

// Check reports why Open would refuse a configuration: an agent has an unknown driver, or permissions that
// cannot be read.
func Check(conf *config.Config, drivers map[string]driver.Driver) error {
	for i := range conf.Agents {
		agent := &conf.Agents[i]
		if drivers[agent.Driver] == nil {
			return fmt.Errorf("agent %s: this build of fairlead has no driver %q", agent.Name, agent.Driver)
		}
		if _, err := questions.RulebookOf(agent); err != nil {
			return err
		}
	}
	return nil
}

// connect sets the hooks through which lower controllers call higher ones.
func (e *Supervisor) connect() {
	e.SessionController.Hooks = sessions.Hooks{
		Follow: e.Listener.Follow, LastLook: e.LastLook, FirstPrompt: e.FirstPrompt, PrepareWork: e.PrepareWork, PrivateTemp: e.PrivateTemp,
		PoolSlot: e.PoolSlot, PrepareStep: e.PrepareStep, WithReport: e.WithReport, Place: e.Cluster.Place, StartOn: e.Cluster.StartOn,
		BringBack: e.Cluster.BringBack,
	}
	e.Cluster.Hooks = membership.Hooks{Checkout: runs.Checkout}
	if e.opts.Cluster != nil {
		e.HostsBeside = e.Cluster.Beside
	}
	e.ChannelController.Hooks = turns.Hooks{LeadPrompt: e.LeadPrompt, ConfirmLeadAction: e.ConfirmLeadAction}
}

// AddMember adds an agent's slot and the state of its file.
func (e *Supervisor) AddMember(m *sessions.Slot) {
	e.Slots[m.Conf.Name] = m
	e.AgentController.Add(m)
}

// Run recovers the team, then serves until ctx ends, the journal fails, or another daemon takes
// over. Agents keep running when it returns; Stop ends them.
func (e *Supervisor) Run(ctx context.Context) (err error) {
	defer func() { e.Close(err) }()
	switch err := e.recover(ctx); {
	case err != nil && ctx.Err() != nil:
		return nil // ctx ended during the recovery; the next start begins again
	case err != nil:
		return fmt.Errorf("recover the team: %w", err)
	}
	return e.Loop.Run(ctx)
}

// Close ends the loop, then closes the connections to the sessions, which keep running. why is the
// error of Run, or nil.
func (e *Supervisor) Close(why error) {
	e.Shutdown(why)
	e.CloseAll()
}
