package status

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// EvidenceWait is how long to wait for a shim's answer. A timeout is evidence itself.
const EvidenceWait = 500 * time.Millisecond

// Team returns the whole team in the order of fairlead.yaml, with current evidence.
func (c *Controller) Team(ctx context.Context) (view.TeamView, error) {
	var shown view.TeamView
	var now time.Time
	err := c.loop.View(ctx, func(t *team.Team) {
		shown = view.TeamView{Hold: t.Hold.On, Note: t.Hold.Note, Stopping: t.Stopping, Head: c.loop.Head(), Team: c.name()}
		shown.Agents = make([]view.AgentView, 0, len(t.Agents))
		for _, name := range c.order(t) {
			shown.Agents = append(shown.Agents, c.agentView(t.Agents[name]))
		}
		now = c.loop.Now()
	})
	if err != nil {
		return view.TeamView{}, err
	}
	var asking sync.WaitGroup
	for i := range shown.Agents {
		asking.Go(func() { c.prove(ctx, &shown.Agents[i]) }) // the result is in the view
	}
	asking.Wait()
	for i := range shown.Agents {
		shown.Agents[i].SetStatus(shown.Stopping, now)
	}
	return shown, nil
}

// Agent returns one agent with its evidence.
func (c *Controller) Agent(ctx context.Context, name string) (view.AgentView, error) {
	var shown view.AgentView
	var unknown error
	var stopping bool
	var now time.Time
	err := c.loop.View(ctx, func(t *team.Team) {
		a, ok := t.Agents[name]
		if !ok {
			unknown = &team.Unknown{What: "agent", Name: name, Known: t.Names()}
			return
		}
		shown, stopping, now = c.agentView(a), t.Stopping, c.loop.Now()
	})
	if err != nil || unknown != nil {
		return view.AgentView{}, cmp.Or(err, unknown)
	}
	c.prove(ctx, &shown) // the result is in the view
	shown.SetStatus(stopping, now)
	return shown, nil
}

// order is the order of the configuration, then agents that are no longer configured.
func (c *Controller) order(t *team.Team) []string {
	names := make([]string, 0, len(t.Agents))
	configured := make(map[string]bool, len(c.opts.Config.Agents))
	for _, a := range c.opts.Config.Agents {
		names = append(names, a.Name)
		configured[a.Name] = true
	}
	for _, name := range t.Names() {
		if !configured[name] && (len(t.Agents[name].Sessions()) > 0 || c.readOnly() && !t.Agents[name].Removed) {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return t.Agents[name] == nil || c.readOnly() && t.Agents[name].Removed })
}

// agentView runs in the loop.
func (c *Controller) agentView(a *team.Agent) view.AgentView {
	file := c.loop.State().File(a)
	day := c.loop.Now().Format(time.DateOnly)
	shown := view.AgentView{
		Name: a.Name, Driver: a.Settings.Driver, Loop: string(config.LoopFairlead), Turn: c.channels.TurnsOf(a.Name),
		TurnWhy:      turns.TurnWhy(c.loop.State(), a.Name),
		DesiredState: file.Desired, CurrentState: file.Current, Badge: view.BadgeIdle,
		SetBy: a.Control.Desired.Author(), Note: file.Note, Timestamp: file.Stamp, Failures: a.Control.Failures, Removed: a.Removed,
		Certainty: view.CertaintyKnown, Unheld: []string{}, Holes: []string{}, Contacts: view.Contacts(a.Contacts),
		Limits: view.LimitsView{
			TokensPerDay: a.Settings.Limits.TokensPerDay, CostPerDayUSD: a.Settings.Limits.CostPerDayUSD,
			TeamTokensPerDay: c.loop.State().Limits.TokensPerDay, TeamCostPerDayUSD: c.loop.State().Limits.CostPerDayUSD,
		},
	}
	if a.Settings.Policy.Foreign {
		shown.Loop, shown.Program = string(config.LoopForeign), a.Settings.Policy.Program
	}
	shown.Held = c.loop.State().Hold.On && a.Control.Wants()
	shown.GaveUp = view.Moment(a.Control.GaveUp)
	shown.OverLimit, shown.LimitOfTeam = c.loop.State().LimitOver(a, c.loop.Now())
	if is := c.loop.State().Channels.Agents[channel.AgentID(a.Name)]; is != nil {
		shown.Disabled = is.Disabled
	}
	if shown.CurrentState == "" {
		if shown.CurrentState = view.NotReported; !shown.Program {
			shown.Contradicted("no current_state has been written yet")
		}
	}
	switch shown.CurrentState {
	case control.WordContinuous, control.WordRunOnce, control.WordRunCleanup:
		shown.Badge = view.BadgeRunning
	}
	if limit := c.loop.State().SessionLimit(a); limit > 0 {
		shown.Limits.Session = limit.String()
	}
	if a.Usage.Day == day {
		shown.UsageToday = view.UsageView{InputTokens: a.Usage.InputTokens, OutputTokens: a.Usage.OutputTokens, CostUSD: a.Usage.CostUSD}
	}
	shown.WaitingBehind = c.loop.State().ControlWaits(a.Name)
	if retry := a.Control.RetryAt; !retry.IsZero() && a.Session == nil {
		shown.RetryAt = &retry
	}
	shown.Sessions = []view.SessionView{}
	for _, s := range a.Sessions() {
		open := view.SessionView{
			ID: s.ID, PID: s.PID, Kind: string(s.Kind), Phase: string(s.Phase), Ending: s.Ending, For: s.For,
			Slot: s.Slot, Host: view.HostOfSession(c.loop.State(), s.ID), Context: s.Context, Provider: view.Provider(s.Provider),
		}
		if !s.StartedAt.IsZero() {
			open.StartedAt = &s.StartedAt
		} else if beside, leads := c.cluster.Beside(); leads {
			open.Waits = waitsFor(beside.Waiting, s.ID)
		}
		shown.Sessions = append(shown.Sessions, open)
	}
	if a.Session != nil {
		shown.Session = &shown.Sessions[0]
	}
	c.viewConversation(&shown, a)
	shown.Presence = c.crew.PresenceOf(a.Name)
	m := c.agents.Files[a.Name]
	if m != nil {
		shown.Description = m.Conf.Description
	}
	if m != nil && !c.readOnly() {
		shown.FileBehind = m.Writing || c.agents.FileDue(m, a)
		c.doubtFile(&shown, m, a)
		doubtReport(&shown, m, c.loop.Now())
	}
	if strange := c.sessions.OrphanOf(a.Name); strange != "" {
		shown.Contradicted("%s", strange)
	}
	return shown
}

// past reports whether the team is shown as it was at an earlier moment. Files and processes are as they are now, so
// they say nothing about it.
func (c *Controller) readOnly() bool { return !c.opts.At.IsZero() }

func (c *Controller) name() string { return c.opts.Name }

// Order is Command that also returns the agent's view with the command applied. It asks for no
// evidence and does not wait for later effects.
func (c *Controller) Order(ctx context.Context, by change.Actor, agent, desired, note string) (uint64, view.AgentView, error) {
	var shown view.AgentView
	order := c.agents.CommandRequest(by, agent, desired, note)
	order.Look = func(t *team.Team) {
		if a := t.Agents[agent]; a != nil {
			shown = c.agentView(a)
			shown.SetStatus(t.Stopping, c.loop.Now())
		}
	}
	seq, err := c.loop.Do(ctx, order)
	if err != nil && !loop.IsAnswer(err) {
		return 0, view.AgentView{}, err // Look may still run
	}
	return seq, shown, err
}

// Status is the daemon's own status.
type Status struct {
	StartedAt time.Time
	Head      uint64
}

// Status asks the loop, so that an answer shows that the loop runs.
func (c *Controller) Status(ctx context.Context) (Status, error) {
	status := Status{StartedAt: c.started.UTC()}
	err := c.loop.View(ctx, func(*team.Team) { status.Head = c.loop.Head() })
	return status, err
}
