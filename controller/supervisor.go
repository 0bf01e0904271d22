package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/fairlead-dev/fairlead/driver"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/agents"
	"github.com/fairlead-dev/fairlead/controller/channels"
	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"
	"github.com/fairlead-dev/fairlead/controller/notices"
	"github.com/fairlead-dev/fairlead/controller/questions"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/controller/status"
	"github.com/fairlead-dev/fairlead/controller/tasks"
	"github.com/fairlead-dev/fairlead/controller/tools"
	"github.com/fairlead-dev/fairlead/controller/transitions"
	"github.com/fairlead-dev/fairlead/listen"
	"github.com/fairlead-dev/fairlead/loop"
)

// The controllers by the names under which Supervisor embeds them, so that their methods are its
// own.
type (
	sessionsController    = sessions.Controller
	agentsController      = agents.Controller
	channelsController    = channels.Controller
	crewController        = crewctl.Controller
	runsController        = runs.Controller
	dispatchController    = dispatchctl.Controller
	questionsController   = questions.Controller
	toolsController       = tools.Controller
	statusController      = status.Controller
	transitionsController = transitions.Controller
	tasksController       = tasks.Controller
	noticesController     = notices.Controller
	listener              = listen.Listener
)

// Supervisor runs one team: the loop and all controllers. Make it with Open, then call Run.
type Supervisor struct {
	*loop.Loop
	*sessionsController
	*agentsController
	*channelsController
	*crewController
	*runsController
	*tasksController
	*dispatchController
	*questionsController
	*toolsController
	*statusController
	*transitionsController
	*noticesController
	*listener

	opts seam.Options
	log  *slog.Logger
}

// Open replays the journal. It starts and writes nothing; Run does.
func Open(ctx context.Context, opts seam.Options) (*Supervisor, error) {
	l := loop.New(ctx, loop.Options{Journal: opts.Journal, Log: opts.Log, FileSum: agents.RenderSum, DocumentSum: crewctl.DocumentSum, Zone: time.Local, RunsOnly: opts.RunsOnly, At: opts.At})
	e := &Supervisor{Loop: l, opts: opts, log: opts.Log}
	if err := l.Replay(ctx); err != nil {
		return nil, err
	}
	e.sessionsController = sessions.New(l, opts)
	e.agentsController = agents.New(l, opts, e.sessionsController)
	e.channelsController = channels.New(l, opts, e.sessionsController)
	e.crewController = crewctl.New(l, opts, e.sessionsController, e.channelsController)
	e.runsController = runs.New(l, opts, e.sessionsController)
	e.tasksController = tasks.New(l, e.runsController)
	e.dispatchController = dispatchctl.New(l, opts, e.sessionsController)
	var err error
	if e.questionsController, err = questions.New(l, opts, e.sessionsController); err != nil {
		return nil, err
	}
	e.toolsController = tools.New(l, e.sessionsController, e.channelsController, e.runsController)
	e.statusController = status.New(l, opts, status.Parts{
		Sessions: e.sessionsController, Agents: e.agentsController, Channels: e.channelsController, Crew: e.crewController, Dispatch: e.dispatchController,
		Runs: e.runsController, Questions: e.questionsController,
	})
	e.transitionsController = transitions.New(l, opts.Log)
	e.noticesController = notices.New(l, opts)
	e.listener = listen.New(l, opts, listen.Parts{
		Sessions: e.sessionsController, Channels: e.channelsController, Runs: e.runsController,
		Dispatch: e.dispatchController, Questions: e.questionsController,
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
		if _, err := questions.BookOf(agent); err != nil {
			return err
		}
	}
	return nil
}

// connect sets the hooks through which lower controllers call higher ones.
func (e *Supervisor) connect() {
	e.sessionsController.Hooks = sessions.Hooks{
		Follow: e.listener.Follow, LastLook: e.LastLook, FirstPrompt: e.FirstPrompt, PrepareWork: e.PrepareWork, PrivateTemp: e.PrivateTemp,
		PoolSlot: e.PoolSlot, PrepareStep: e.PrepareStep, WithReport: e.WithReport,
	}
	e.channelsController.Hooks = channels.Hooks{LeadPrompt: e.LeadPrompt, ConfirmLeadAction: e.ConfirmLeadAction}
}

// AddMember adds an agent's slot and the state of its file.
func (e *Supervisor) AddMember(m *sessions.Slot) {
	e.Slots[m.Conf.Name] = m
	e.agentsController.Add(m)
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
