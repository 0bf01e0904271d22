package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"

	"github.com/fairlead-dev/fairlead/app/starts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/membership"
	"github.com/fairlead-dev/fairlead/read/status"
	"github.com/fairlead-dev/fairlead/read/transitions"
	"github.com/fairlead-dev/fairlead/work/agents"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/network"
	"github.com/fairlead-dev/fairlead/work/notices"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/tasks"
	"github.com/fairlead-dev/fairlead/work/tools"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// App runs one team: the loop, and a part for each purpose. Make it with Open, then call Run.
type App struct {
	Loop        *loop.Loop
	Sessions    *sessions.Controller
	Agents      *agents.Controller
	Channels    *turns.Controller
	Crew        *crewctl.Controller
	Runs        *runs.Controller
	Tasks       *tasks.Controller
	Dispatch    *dispatchctl.Controller
	Questions   *questions.Controller
	Tools       *tools.Controller
	Status      *status.Controller
	Transitions *transitions.Controller
	Notices     *notices.Controller
	Listener    *listen.Listener
	Starts      *starts.Controller
	Network     *network.Controller

	Cluster *membership.Controller // the other machines of the team

	opts outside.Options
	log  *slog.Logger
}

// Open replays the journal. It starts and writes nothing; Run does.
func Open(ctx context.Context, opts outside.Options) (*App, error) {
	l := loop.New(ctx,
		loop.Options{
			Journal: opts.Journal, Log: opts.Log, FileSum: agents.RenderSum, DocumentSum: crewctl.DocumentSum, Zone: time.Local,
			RunsOnly: opts.RunsOnly, At: opts.At,
		})
	e := &App{Loop: l, opts: opts, log: opts.Log}
	if err := l.Replay(ctx); err != nil {
		return nil, err
	}
	e.Cluster = membership.New(l, opts)
	opts.Host = e.Cluster.Router()
	e.opts = opts
	e.Sessions = sessions.New(l, opts)
	e.Agents = agents.New(l, opts, e.Sessions)
	e.Crew = crewctl.New(l, opts, e.Sessions)
	e.Channels = turns.New(l, opts, e.Sessions, e.Crew)
	e.Runs = runs.New(l, opts, e.Sessions)
	e.Tasks = tasks.New(l, e.Runs)
	e.Dispatch = dispatchctl.New(l, opts, e.Sessions)
	var err error
	if e.Questions, err = questions.New(l, opts, e.Sessions); err != nil {
		return nil, err
	}
	e.Tools = tools.New(l, e.Sessions, e.Channels, e.Runs, e.Questions)
	e.Status = status.New(l, opts, status.Parts{
		Sessions: e.Sessions, Agents: e.Agents, Channels: e.Channels, Crew: e.Crew,
		Dispatch: e.Dispatch, Runs: e.Runs, Questions: e.Questions, Cluster: e.Cluster,
	})
	e.Transitions = transitions.New(l, opts.Log)
	e.Notices = notices.New(l, opts, e.Runs)
	e.Network = network.New(l, opts)
	e.Listener = listen.New(l, opts, listen.Parts{
		Sessions: e.Sessions, Channels: e.Channels, Dispatch: e.Dispatch, Questions: e.Questions,
	})
	e.Starts = starts.New(l, opts, starts.Parts{
		Sessions: e.Sessions, Agents: e.Agents, Channels: e.Channels, Runs: e.Runs, Dispatch: e.Dispatch,
		Listener: e.Listener, Cluster: e.Cluster,
	})
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
		if _, err := questions.ReadPermissions(agent); err != nil {
			return err
		}
	}
	return nil
}

// AddMember adds an agent's slot and the state of its file.
func (e *App) AddMember(m *sessions.Slot) {
	e.Sessions.Slots[m.Conf.Name] = m
	e.Agents.Add(m)
}

// Run recovers the team, then serves until ctx ends, the journal fails, or another daemon takes
// over. Agents keep running when it returns; Stop ends them.
func (e *App) Run(ctx context.Context) (err error) {
	defer func() { e.Close(err) }()
	switch err := e.recover(ctx); {
	case err != nil && ctx.Err() != nil:
		return nil // ctx ended during the recovery; the next start begins again
	case err != nil:
		return fmt.Errorf("recover the team: %w", err)
	}
	e.Loop.Go(e.Sessions.WatchTeam)
	e.Loop.Go(e.Network.Watch)
	return e.Loop.Run(ctx)
}

// Close ends the loop, then closes the connections to the sessions, which keep running. why is the
// error of Run, or nil.
func (e *App) Close(why error) {
	e.Loop.Shutdown(why)
	e.Sessions.CloseAll()
}
