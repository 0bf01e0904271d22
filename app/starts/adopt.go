package starts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// Adoption is what the host reported about a session that may have been started.
type Adoption struct {
	Session team.Session
	Agent   string         // the agent's name; empty for a step's own session
	m       *sessions.Slot // the slot that the session runs in
	Proc    sessionhost.Process
	Found   sessionhost.Found
	Err     error
}

// AdoptAll asks the host about every open session concurrently, so that shims that do not answer
// cost one timeout in total.
func (c *Controller) AdoptAll(ctx context.Context) []Adoption {
	return c.EachOpen(func(a *Adoption) {
		a.Proc, a.Found, a.Err = c.opts.Host.Adopt(ctx, a.Session.ID, c.loop.State().Epoch)
	})
}

// EachOpen calls ask concurrently for every open session: those of agents in order of name, then
// those of the worker pool.
func (c *Controller) EachOpen(ask func(*Adoption)) []Adoption {
	var open []Adoption
	for _, name := range c.loop.State().Names() {
		for _, s := range c.loop.State().Agents[name].Sessions() {
			open = append(open, Adoption{Session: *s, Agent: name, m: c.parts.Sessions.Slots[name].At(s.Slot)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.loop.State().Pool.Sessions)) {
		s := c.loop.State().Pool.Sessions[key]
		if m := c.parts.Runs.PoolSlot(s); m != nil {
			open = append(open, Adoption{Session: *s, m: m})
		}
	}
	var asking sync.WaitGroup
	for i := range open {
		asking.Go(func() { ask(&open[i]) })
	}
	asking.Wait()
	return open
}

// Resume records the outcome of one open session. A session whose shim does not answer stays open;
// PickUp keeps asking for it.
func (c *Controller) Resume(ctx context.Context, a Adoption) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(a.Err, new(*sessionhost.Fenced)):
		return sessions.TakenOver(a.Err)
	case a.Err != nil, a.NeverBegan():
		return nil //nolint:nilerr // PickUp asks again until the shim answers
	}
	what := a.becomes(true)
	if ended, is := what.(team.SessionEnded); is {
		what = c.parts.Runs.WithReport(c.loop.State(), a.Session, ended)
	}
	if what != nil {
		return c.parts.Sessions.TellSlot(ctx, a.m, what)
	}
	return nil
}

// PickUp starts the goroutine that an open session needs: it follows the process, or asks the shim
// until it answers. A session whose process was never started is left to the agent's actions, which
// check first whether it is still wanted.
func (c *Controller) PickUp(a Adoption) {
	m := a.m
	switch {
	case a.Err != nil:
		m.Begun(a.Session.ID, "start/"+a.Session.ID)
		c.parts.Sessions.SetSilent(a.Session.ID, a.Err)
		c.log.Warn("a session was not adopted; Fairlead asks its shim again until it is, or is over", "session", a.Session.ID, "error",
			a.Err)
		c.loop.Go(func(ctx context.Context) { c.adopt(ctx, m, a.Session.ID, nil) })
	case a.NeverBegan() || !a.Follows():
		a.Close()
	default:
		m.Begun(a.Session.ID, "start/"+a.Session.ID)
		c.parts.Sessions.SetProc(a.Session.ID, a.Proc)
		c.parts.Sessions.ListenAgain(a.Session.ID)
		c.log.Info("session found", "session", a.Session.ID, "it", string(a.Found))
		c.loop.Go(func(ctx context.Context) { c.follow(ctx, m, a.Session, a.Proc, a.Found != sessionhost.Running) })
	}
}

// adopt asks the host about a session until the outcome is known. Assuming that the session is dead
// could start the agent twice. failed is why the process could not be started just now; nil if the
// session was found open at the start of the daemon.
func (c *Controller) adopt(ctx context.Context, m *sessions.Slot, id string, failed error) {
	warned := false
	for again := loop.Retry(); ; {
		a := Adoption{Agent: m.Conf.Name, m: m}
		var epoch uint64
		open := false
		if err := c.loop.View(ctx, func(t *team.Team) {
			epoch = t.Epoch
			if s := m.Open(t); s != nil && s.ID == id {
				open, a.Session = true, *s
			}
		}); err != nil || !open {
			c.parts.Sessions.SetSilent(id, nil)
			return
		}
		a.Proc, a.Found, a.Err = c.opts.Host.Adopt(ctx, id, epoch)
		switch {
		case ctx.Err() != nil:
			a.Close()
			return
		case c.parts.Sessions.Fenced(a.Err):
			return
		case a.Err == nil:
			c.parts.Sessions.SetSilent(id, nil)
			c.takeOver(ctx, m, a, failed)
			return
		}
		c.parts.Sessions.SetSilent(id, a.Err)
		if !warned {
			warned = true
			c.log.Error("the outcome of a session is not known; Fairlead asks its shim until it answers", "session", id, "error", a.Err)
		}
		if !again.Rest(ctx) {
			return
		}
	}
}

// takeOver does for one session, while the loop runs, what Resume and PickUp do before it runs.
func (c *Controller) takeOver(ctx context.Context, m *sessions.Slot, a Adoption, failed error) {
	atStart := failed == nil
	if a.NeverBegan() {
		a.Close()
		if atStart {
			c.start(ctx, m, a.Session)
			return
		}
		c.cannotStart(ctx, m, a.Session, failed.Error())
		return
	}
	follows := a.Follows()
	if follows {
		c.parts.Sessions.SetProc(a.Session.ID, a.Proc)
		c.parts.Sessions.ListenAgain(a.Session.ID)
	}
	what := a.becomes(atStart)
	if ended, is := what.(team.SessionEnded); is {
		if c.loop.View(ctx, func(t *team.Team) { what = c.parts.Runs.WithReport(t, a.Session, ended) }) != nil {
			return
		}
	}
	if what != nil {
		if _, err := c.parts.Sessions.SubmitOf(ctx, sessions.ByShim, m, what); err != nil {
			return
		}
	}
	if !follows {
		a.Close()
		return
	}
	c.follow(ctx, m, a.Session, a.Proc, atStart && a.Found != sessionhost.Running)
}

// NeverBegan reports whether the session was opened and no process was ever started for it.
func (a *Adoption) NeverBegan() bool {
	return a.Found == sessionhost.NeverStarted && a.Session.Phase == session.Open
}

// Follows reports whether there is a process to follow, running or exited.
func (a *Adoption) Follows() bool { return a.Proc != nil && a.Found != sessionhost.NeverStarted }

// becomes is the event that the team needs first; nil if the journal already has it. A session that
// has exited is adopted first, so that its usage counts: a report is accepted only from a session
// that ran.
func (a *Adoption) becomes(atStart bool) any {
	switch {
	case !a.Follows():
		return team.SessionEnded{
			Session: a.Session.ID, Outcome: control.Lost, AtStart: atStart,
			Why: "it ended while no daemon ran, and no record of it is left",
		}
	case a.Found == sessionhost.Running, a.Found == sessionhost.Exited && a.Session.Phase == session.Open:
		return team.SessionAdopted{Session: a.Session.ID, PID: a.Proc.PID(), Input: inputOf(a.Proc)}
	default:
		return nil
	}
}

// Close closes the connection to the process, if there is one.
func (a *Adoption) Close() {
	if a.Proc != nil {
		_ = a.Proc.Close() // nothing was requested of it
	}
}
