package app

import (
	"context"
	"fmt"
	"runtime"

	"github.com/fairlead-dev/fairlead/hosts/membership"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/app/starts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// recover reconciles the team with the machine: it observes first (processes, then files), and only
// then starts anything. It runs before the loop, in the loop's goroutine.
func (e *App) recover(ctx context.Context) error {
	before := e.Loop.State().Copy()
	found, err := e.reckon(ctx, e.opts.Host.Orphans, e.Starts.AdoptAll, e.Agents.ReadFiles)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		for i := range found {
			found[i].Close()
		}
		return err
	}
	e.announcePlan(before, found)
	if err := e.Sessions.SettleOrphans(ctx); err != nil {
		for i := range found {
			found[i].Close()
		}
		return err
	}
	for _, a := range found {
		e.Starts.PickUp(a)
	}
	e.sweep(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.Loop.Begin(ctx); err != nil {
		return err
	}
	e.Channels.ChannelsBegin()
	e.Loop.ActOnAll()
	e.Crew.DocumentsBegin()
	e.Dispatch.FoldersBegin()
	e.Sessions.FollowShells()
	e.Loop.Go(func(context.Context) { e.Agents.TakeIn() })
	e.Loop.Go(e.Notices.NotifyPeople)
	e.Loop.Go(e.Cluster.HostsBegin)
	if len(e.opts.Config.Tasks.From) > 0 && !e.opts.RunsOnly {
		e.Loop.Go(e.Runs.TakeIssues)
	}
	return nil
}

// reckon observes and decides. It starts nothing: its decisions are in the journal when it returns,
// and carried out later. A dry run calls it with an observer and a journal that stores nothing.
func (e *App) reckon(ctx context.Context, orphans func(context.Context, func(session string) bool) ([]sessionhost.Orphan, error),
	sessions func(context.Context) []starts.Adoption, files func(context.Context) error,
) ([]starts.Adoption, error) {
	if err := e.Sessions.FindOrphans(ctx, orphans); err != nil {
		return nil, err
	}
	if e.Loop.State().Epoch == 0 && e.opts.Config.Team.Hold { // before the epoch begins, so that a crash in between does not lose it
		if err := e.Sessions.TellAgent(ctx, "", team.HoldAsked{Note: "team.hold in fairlead.yaml"}); err != nil {
			return nil, err
		}
	}
	if err := mayLead(e.opts.Cluster, e.Loop.State(), e.opts.Config); err != nil {
		return nil, err
	}
	e.Agents.Rebooted = e.Loop.State().BootID != "" && e.Loop.State().BootID != e.opts.BootID
	started := team.DaemonStarted{BootID: e.opts.BootID}
	own := ""
	if c := e.opts.Cluster; c != nil {
		if own = c.Name; c.Stream || e.Loop.State().Leader != "" { // also when the journal comes back from the stream to one machine
			started.Leader = own
		}
		if c.Lost {
			started.Skip = epochsLost
		}
	}
	if started.Leader != "" || e.Loop.State().Root != "" {
		dir, err := rootOf(e.opts.Config)
		if err != nil {
			return nil, err
		}
		started.Root = dir
		if started.Leader != "" {
			started.Config = e.opts.Config.Sum
		}
	}
	var places []host.Place
	if started.Leader != "" { // otherwise no other machine can have led
		former := membership.FormerLeader(e.Loop.State(), own)
		if e.Agents.Moved = former != ""; e.Agents.Moved {
			places = membership.LeaseFormer(e.Loop.State(), former)
		}
	}
	if err := e.Sessions.TellAgent(ctx, "", started); err != nil {
		return nil, err
	}
	if g := e.Loop.State().Governing; e.opts.Confirmed != "" && e.opts.Confirmed != g.Sum {
		if err := e.Sessions.TellAgent(ctx, "", team.ConfigConfirmed{Sum: e.opts.Confirmed, Runs: g.Runs}); err != nil {
			return nil, err
		}
	}
	for _, place := range places {
		if err := e.Sessions.TellAgent(ctx, "", place); err != nil {
			return nil, err
		}
	}
	if err := e.Sessions.TellAgent(ctx, "", configured(e.opts.Config, e.Channels.Capabilities)); err != nil {
		return nil, err
	}
	e.addRemoved()
	found := sessions(ctx)
	if err := files(ctx); err != nil {
		return found, err
	}
	for _, a := range found {
		if err := e.Starts.Resume(ctx, a); err != nil {
			return found, err
		}
	}
	for _, name := range e.Loop.State().Names() {
		if err := e.Sessions.TellAgent(ctx, name, control.Started{}); err != nil {
			return found, err
		}
	}
	return found, nil
}

// epochsLost is more epochs than hosts can have had that are lost: if one of them is not, and leads, hosts that have seen this
// leader refuse it.
const epochsLost = 1000

// mayLead refuses a machine that the journal does not have as an engine host any longer: it was taken out while its own files say
// otherwise.
func mayLead(c *outside.Cluster, t *team.Team, conf *config.Config) error {
	if c == nil || !c.Stream {
		return nil
	}
	if h := t.Hosts.Hosts[c.Name]; h != nil && (h.Engine == "" || h.State == host.Left || h.RemovedBy != "") {
		return &sessionhost.Fenced{Why: "host " + c.Name + " is no engine host of the team any longer, by its journal, so it does not lead"}
	}
	if t.Leader != c.Name && t.Config != "" && t.Config != conf.Sum {
		return &sessionhost.Fenced{Why: OtherConfig(t.Leader, t.Config, conf.Sum), Leader: t.Leader, Config: t.Config}
	}
	return nil
}

// OtherConfig is why a host does not lead that has another configuration than the previous leader, and what to do.
func OtherConfig(leader, its, own string) string {
	return fmt.Sprintf("the %s here (%s) is not the one with which %s leads or led the team (%s), so this host does not lead; to let it lead, run `git show refs/fairlead/engine/%s:%s > %s` in this repository", config.FileName, own, leader, its, leader, config.FileName, config.FileName)
}

// rootOf is the folder of the repository, as paths in the team's state begin.
func rootOf(conf *config.Config) (string, error) { return sessions.SettledDir(conf.Dir) }

// sweep ends processes that lost sessions left behind. A process that cannot be ended is logged and
// delays nothing: it hangs in the kernel with a pending kill signal and does nothing more.
func (e *App) sweep(ctx context.Context) {
	strays, err := e.opts.Host.Sweep(ctx)
	for _, stray := range strays {
		e.log.Warn("ended a process that a lost session had left behind", "process", stray)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Error("processes that ended sessions left behind could not all be ended", "error", err)
	}
}

// instances is how many sessions of an agent may run at the same time. A program that follows agent_state.json by itself is one process.
func instances(a config.Agent) int {
	if a.Loop == config.LoopForeign {
		return 1
	}
	return a.Instances
}

// configured is the part of the configuration that the team needs. capabilities returns what an
// agent can in a session for channels.
func configured(conf *config.Config, capabilities func(config.Agent) driver.Capabilities) team.Configured {
	agents := make(map[string]team.Settings, len(conf.Agents))
	for _, a := range conf.Agents {
		foreign := a.Loop == config.LoopForeign
		agents[a.Name] = team.Settings{
			Driver:    a.Driver,
			Limits:    teamLimits(a.Limits),
			Instances: instances(a),
			Policy: control.Policy{
				Foreign: foreign, Program: foreign && len(a.Command) > 0, CleanupEvery: a.CleanupEvery,
				FailuresMax: a.FailuresMax, BackoffFirst: a.Backoff.First, BackoffMax: a.Backoff.Max,
			},
		}
	}
	c := team.Configured{Limits: teamLimits(conf.Team.Limits), Agents: agents, Places: runtime.NumCPU()}
	turns.ConfigureTurns(&c, conf, capabilities)
	crewctl.ConfigureLead(&c, conf)
	return c
}

// teamLimits are the limits that the journal's state decides about. The others are those of processes.
func teamLimits(l config.Limits) team.Limits {
	return team.Limits{Session: l.Session, TokensPerDay: l.TokensPerDay, CostPerDayUSD: l.CostPerDayUSD}
}

// addRemoved keeps the slot of an agent that is no longer configured while its session lasts.
func (e *App) addRemoved() {
	for _, name := range e.Loop.State().Names() {
		if a := e.Loop.State().Agents[name]; e.Sessions.Slots[name] == nil && len(a.Sessions()) > 0 {
			d, ok := e.opts.Drivers[a.Settings.Driver]
			if !ok {
				e.log.Warn("a session belongs to an agent whose driver this build of fairlead does not have; Fairlead only waits for its end", "agent", name, "driver", a.Settings.Driver)
				d = sessions.MissingDriver{}
			}
			e.AddMember(sessions.NewSlot(&config.Agent{Name: name, Driver: a.Settings.Driver, Grace: config.GraceDefault}, d))
		}
	}
}
