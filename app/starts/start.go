package starts

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// start starts a session's process if it is still wanted: it makes everything ready, asks the loop for permission, and then
// starts the process at once.
func (c *Controller) start(ctx context.Context, m *sessions.Slot, s team.Session) {
	where, ready, err := c.ready(ctx, m, s)
	for again := loop.Retry(); errors.Is(err, sessions.ErrNotAsked); {
		if !c.permit(ctx, m, s, nil).given || !again.Rest(ctx) {
			return
		}
		where, ready, err = c.ready(ctx, m, s) // the loop wants it
	}
	switch {
	case ctx.Err() != nil: // the next start of the daemon handles it
		return
	case err != nil:
		c.cannotStart(ctx, m, s, err.Error())
		return
	}
	now := c.permit(ctx, m, s, &ready)
	if !now.given {
		return
	}
	var proc sessionhost.Process
	if where == "" {
		proc, err = c.opts.Host.Start(ctx, s.ID, now.epoch, ready.Launch, m.Conf.Grace)
	} else {
		proc, err = c.parts.Cluster.StartOn(ctx, m, s, now.epoch, ready.Launch, c.parts.Sessions.Confinement(m, ready))
	}
	var cannot *spawn.CannotStart
	switch {
	case err == nil:
		s.Launch = ready.Record
		c.takeCare(ctx, m, s, proc)
	case errors.As(err, &cannot):
		c.cannotStart(ctx, m, s, cannot.Why)
	case c.parts.Sessions.Fenced(err):
	case ctx.Err() != nil: // the daemon stops; the next start finds the outcome
	case errors.As(err, new(*spawn.AlreadyStarted)):
		c.adopt(ctx, m, s.ID, err)
	default:
		c.log.Error("a session's shim failed", "session", s.ID, "error", err)
		c.adopt(ctx, m, s.ID, err)
	}
}

// ready waits until nothing is in the way of a session, and makes it ready to start on a host; empty: this machine. The error is
// sessions.ErrNotAsked if it is not to be started now.
func (c *Controller) ready(ctx context.Context, m *sessions.Slot, s team.Session) (where string, ready sessions.PreparedLaunch, err error) {
	if err = c.outwaitOrphans(ctx, m, s); err == nil {
		where, err = c.place(ctx, m, s)
	}
	if err == nil {
		ready, err = c.prepare(ctx, m, s)
	}
	if err == nil && where == "" {
		ready, err = c.parts.Sessions.Confined(ctx, m, s, ready)
	}
	return where, ready, err
}

// outwaitOrphans waits until no orphan session of the agent runs. The error is sessions.ErrNotAsked if the session is not wanted any
// longer.
func (c *Controller) outwaitOrphans(ctx context.Context, m *sessions.Slot, s team.Session) error {
	for {
		var wanted, orphan bool
		if err := c.loop.View(ctx, func(t *team.Team) {
			wanted, _ = m.MayStart(t, s.ID, c.loop.Now())
			orphan = c.parts.Sessions.OrphanOf(m.Conf.Name) != ""
		}); err != nil || !wanted {
			return sessions.ErrNotAsked
		}
		if !orphan {
			return nil
		}
		if !retry.Rest(ctx, sessions.OrphanEvery) {
			return sessions.ErrNotAsked
		}
	}
}

// place finds out where a session is to run. While no host takes it, it waits. The error is sessions.ErrNotAsked if the session is not
// wanted any longer.
func (c *Controller) place(ctx context.Context, m *sessions.Slot, s team.Session) (where string, err error) {
	if leased := c.opts.Cluster != nil && c.opts.Cluster.Stream; !m.Conf.Host.Any && !leased {
		run, _, isStep := team.StepOf(s.For)
		away := false
		if isStep { // its files may be on a machine that led when the team had more of them
			err = c.loop.View(ctx, func(t *team.Team) { away = t.Notes[run].Away != "" })
		}
		if err != nil || !away {
			return "", err
		}
	}
	for {
		where, fits, err := c.parts.Cluster.Place(ctx, m, s)
		if err == nil || !loop.IsAnswer(err) {
			return where, err
		}
		wanted := false
		if err := c.loop.Until(ctx, func(t *team.Team) bool {
			wanted, _ = m.MayStart(t, s.ID, c.loop.Now())
			return !wanted || fits(t)
		}); err != nil || !wanted {
			return "", sessions.ErrNotAsked
		}
	}
}

// prepare asks the driver how to start the session, and creates what it needs.
func (c *Controller) prepare(ctx context.Context, m *sessions.Slot, s team.Session) (sessions.PreparedLaunch, error) {
	if run, step, isStep := team.StepOf(s.For); isStep {
		return c.parts.Runs.PrepareStep(ctx, m, s, run, workflow.StepID(step))
	}
	if _, _, works := team.DispatchActionOf(s.For); works {
		return c.parts.Dispatch.PrepareWork(ctx, m, s)
	}
	agent, err := c.parts.Sessions.AgentFor(m, "")
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return sessions.PreparedLaunch{}, fmt.Errorf("create its workspace: %w", err)
	}
	if err := m.Driver.Check(agent); err != nil {
		return sessions.PreparedLaunch{}, err
	}
	session := sessions.SessionFor(m, s)
	if s.ServesChannels() {
		if session.Prompt, err = c.parts.Channels.FirstPrompt(ctx, s); err != nil {
			return sessions.PreparedLaunch{}, err
		}
	}
	return c.parts.Sessions.Launch(ctx, m, s, agent, session)
}

// permission is what the loop says about a session that is to start.
type permission struct {
	given bool
	epoch uint64
}

// permit asks the loop whether a session is still wanted, and withdraws it if not. If it is ready, this is the last check before its
// process starts: the loop also takes in what the agent's file says now, and the journal gets what it has to know first. The process
// must not have a token that the next daemon does not know. ready is nil for a session that is not.
func (c *Controller) permit(ctx context.Context, m *sessions.Slot, s team.Session, ready *sessions.PreparedLaunch) permission {
	var is permission
	var look loop.Request
	if ready != nil && obeysFile(s) {
		look = c.parts.Agents.LastLook(m)
	}
	decideAll := func(decide func(team.Event) error) {
		if look.Derive != nil {
			look.Derive(decide)
		}
		t := c.loop.State()
		is.epoch = t.Epoch
		ended := team.SessionEnded{Session: s.ID, Outcome: control.Withdrawn}
		if is.given, ended.Why = m.MayStart(t, s.ID, c.loop.Now()); is.given && ready != nil {
			if err := beforeStart(m, s, ready, decide); err != nil {
				is.given, ended.Outcome, ended.Why = false, control.CannotStart, err.Error()
			}
		}
		if !is.given {
			_ = decide(*m.Event(sessions.ByIntent, ended)) // a refusal means that it is over
		}
	}
	still := true
	seen := func(t *team.Team) { still, _ = m.MayStart(t, s.ID, c.loop.Now()) }
	if _, err := c.loop.Do(ctx, loop.Request{Agent: look.Agent, Derive: decideAll, After: look.After, Look: seen}); err != nil &&
		!loop.IsAnswer(err) {
		return permission{}
	}
	switch {
	case !is.given:
		c.parts.Sessions.EndView(s.ID)
	case !still: // another request of the same batch, such as an order to stop, came after this one
		return c.permit(ctx, m, s, nil)
	}
	return is
}

// obeysFile reports whether the desired state in the agent's file decides if a session starts. Steps (J2), turns and dispatch folders
// do not depend on it.
func obeysFile(s team.Session) bool {
	_, _, isStep := team.StepOf(s.For)
	_, _, works := team.DispatchActionOf(s.For)
	return !isStep && !works && !s.ServesChannels()
}

// beforeStart has the events decided that have to be in the journal before a session's process starts.
func beforeStart(m *sessions.Slot, s team.Session, ready *sessions.PreparedLaunch, decide func(team.Event) error) error {
	if ready.Token != "" {
		if err := decide(*m.Event(sessions.ByShim, team.TokenGiven{Session: s.ID, Hash: sessions.HashOfToken(ready.Token)})); err != nil {
			return err
		}
	}
	if ready.Record != nil && ready.Record.Governs {
		return decide(*loop.EventBy(sessions.ByShim, "", team.ConfigExposed{Session: s.ID}))
	}
	return nil
}

// takeCare records a process that was just started, and follows it.
func (c *Controller) takeCare(ctx context.Context, m *sessions.Slot, s team.Session, proc sessionhost.Process) {
	c.parts.Sessions.SetProc(s.ID, proc)
	if _, err := c.parts.Sessions.SubmitOf(ctx, sessions.ByShim, m,
		team.SessionStarted{Session: s.ID, PID: proc.PID(), Input: inputOf(proc), Launch: s.Launch}); err != nil {
		if loop.IsAnswer(err) {
			c.log.Error("a process was started for a session that is over, which is a bug in fairlead; it is ended", "session", s.ID,
				"error", err)
			_ = proc.End(ctx, 0) // if this fails, the next start's sweep ends the process
		}
		return
	}
	c.follow(ctx, m, s, proc, false)
}

func (c *Controller) cannotStart(ctx context.Context, m *sessions.Slot, s team.Session, why string) {
	c.parts.Sessions.SessionEnded(ctx, m, team.SessionEnded{Session: s.ID, Outcome: control.CannotStart, Why: why}, sessions.ByShim)
}

// inputOf returns how many bytes of input a process was started with, if its host counts them.
func inputOf(proc sessionhost.Process) int64 {
	if typist, ok := proc.(sessionhost.InputWriter); ok {
		input, _ := typist.Input()
		return input
	}
	return 0
}
