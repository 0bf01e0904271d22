package sessions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
)

// adoption is what became of a session that may have been started.
type Adoption struct {
	Session team.Session
	Agent   string // whose it is; empty: a step's own
	m       *Slot  // the seat
	Proc    seam.Process
	Found   seam.Found
	Err     error
}

// adoptAll asks after every open session, many at once: a shim that does not answer
// costs its time-out once, not once for each agent.
func (e *Controller) AdoptAll(ctx context.Context) []Adoption {
	return e.EachOpen(func(a *Adoption) {
		a.Proc, a.Found, a.Err = e.opts.Host.Adopt(ctx, a.Session.ID, e.State().Epoch)
	})
}

// eachOpen has every open session asked after, all at once: of agents by name, then of the bench.
func (e *Controller) EachOpen(ask func(*Adoption)) []Adoption {
	var open []Adoption
	for _, name := range e.State().Names() {
		if s := e.State().Agents[name].Session; s != nil {
			open = append(open, Adoption{Session: *s, Agent: name, m: e.Slots[name]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.State().Pool.Sessions)) {
		s := e.State().Pool.Sessions[key]
		if m := e.Hooks.BenchSeat(s); m != nil {
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

// resume tells the team what became of one open session. One whose shim does not answer
// stays open: the others need not wait for it.
func (e *Controller) Resume(ctx context.Context, a Adoption) error {
	var fenced *seam.Fenced
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(a.Err, &fenced):
		return takenOver(a.Err)
	case a.Err != nil, a.NeverBegan():
		return nil //nolint:nilerr // pickUp asks again, until the shim answers
	}
	what := a.becomes(true)
	if ended, is := what.(team.SessionEnded); is {
		what = e.Hooks.WithReport(e.State(), a.Session, ended)
	}
	if what != nil {
		return e.TellSlot(ctx, a.m, what)
	}
	return nil
}

// pickUp begins with one open session what its process asks for: it is listened to, or its
// shim is asked after until it answers. One that never began is an errand like any other,
// which asks first whether it is still wanted.
func (e *Controller) PickUp(a Adoption) {
	m := a.m
	switch {
	case a.Err != nil:
		m.Begun(a.Session.ID, "start/"+a.Session.ID)
		e.setSilent(a.Session.ID, a.Err)
		e.log.Warn("a session's shim does not answer; it is asked again until it does", "session", a.Session.ID, "error", a.Err)
		e.Go(func(ctx context.Context) { e.adopt(ctx, m, a.Session.ID, nil) })
	case a.NeverBegan() || !a.Follows():
		a.Close()
	default:
		m.Begun(a.Session.ID, "start/"+a.Session.ID)
		e.SetProc(a.Session.ID, a.Proc)
		e.log.Info("session found", "session", a.Session.ID, "it", string(a.Found))
		e.Go(func(ctx context.Context) { e.Hooks.Follow(ctx, m, a.Session, a.Proc, a.Found != seam.Running) })
	}
}

// adopt asks after a session until it is known what became of it. To guess would be to
// double it: an agent that was taken for dead would be started again beside itself. failed
// is why it could not be started just now; nil: we found it open when we came.
func (e *Controller) adopt(ctx context.Context, m *Slot, id string, failed error) {
	warned := false
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		a := Adoption{Agent: m.Conf.Name, m: m}
		var epoch uint64
		open := false
		if err := e.View(ctx, func(t *team.Team) {
			epoch = t.Epoch
			if s := m.Sitting(t); s != nil && s.ID == id {
				open, a.Session = true, *s
			}
		}); err != nil || !open {
			e.setSilent(id, nil)
			return
		}
		a.Proc, a.Found, a.Err = e.opts.Host.Adopt(ctx, id, epoch)
		switch {
		case ctx.Err() != nil:
			a.Close()
			return
		case e.Fenced(a.Err):
			return
		case a.Err == nil:
			e.setSilent(id, nil)
			e.takeOver(ctx, m, a, failed)
			return
		}
		e.setSilent(id, a.Err)
		if !warned {
			warned = true
			e.log.Error("what became of a session is not known; its shim is asked until it answers", "session", id, "error", a.Err)
		}
		if !loop.Rest(ctx, pause) {
			return
		}
	}
}

// takeOver does beside the loop what resume does before it.
func (e *Controller) takeOver(ctx context.Context, m *Slot, a Adoption, failed error) {
	atStart := failed == nil
	if a.NeverBegan() {
		a.Close()
		if atStart {
			e.StartSession(ctx, m, a.Session)
			return
		}
		e.SessionEnded(ctx, m, team.SessionEnded{Session: a.Session.ID, Outcome: control.CannotStart, Why: failed.Error()}, ByShim)
		return
	}
	follows := a.Follows()
	if follows {
		e.SetProc(a.Session.ID, a.Proc)
	}
	what := a.becomes(atStart)
	if ended, is := what.(team.SessionEnded); is {
		if e.View(ctx, func(t *team.Team) { what = e.Hooks.WithReport(t, a.Session, ended) }) != nil {
			return
		}
	}
	if what != nil {
		if _, err := e.SubmitOf(ctx, ByShim, m, what); err != nil {
			return
		}
	}
	if !follows {
		a.Close()
		return
	}
	e.Hooks.Follow(ctx, m, a.Session, a.Proc, atStart && a.Found != seam.Running)
}

// neverBegan: it was opened, and no process was ever started for it.
func (a *Adoption) NeverBegan() bool {
	return a.Found == seam.NeverStarted && a.Session.Phase == session.Open
}

// follows says whether there is a process to listen to, be it to its last words.
func (a *Adoption) Follows() bool { return a.Proc != nil && a.Found != seam.NeverStarted }

// becomes is what the team is to be told first; nil where it knows. One that has ended was
// seen to run all the same: what it used counts, and a report is taken only of one that ran.
func (a *Adoption) becomes(atStart bool) any {
	switch {
	case !a.Follows():
		return team.SessionEnded{
			Session: a.Session.ID, Outcome: control.Lost, AtStart: atStart,
			Why: "it ended while nobody looked, and nothing is left of it",
		}
	case a.Found == seam.Running, a.Found == seam.Exited && a.Session.Phase == session.Open:
		return team.SessionAdopted{Session: a.Session.ID, PID: a.Proc.PID(), Input: inputOf(a.Proc)}
	default:
		return nil
	}
}

func (a *Adoption) Close() {
	if a.Proc != nil {
		_ = a.Proc.Close() // nothing was asked of it
	}
}

// fenced stops the engine where another daemon has taken the sessions over.
func (e *Controller) Fenced(err error) bool {
	var fenced *seam.Fenced
	if !errors.As(err, &fenced) {
		return false
	}
	e.Fail(takenOver(err))
	return true
}

func takenOver(err error) error {
	return fmt.Errorf("another fairlead has taken the agents over: %w; this one stops, and drives nobody any more", err)
}

// setSilent notes why nobody answers for a session; nil: somebody does, or it is over.
func (e *Controller) setSilent(session string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.silent, session)
		return
	}
	e.silent[session] = err.Error()
}

func (e *Controller) Silence(session string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.silent[session]
}
