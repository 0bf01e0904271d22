package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// adoption is what became of a session that may have been started.
type adoption struct {
	session team.Session
	agent   string  // whose it is; empty: a step's own
	m       *member // the seat
	proc    Process
	found   Found
	err     error
}

// adoptAll asks after every open session, many at once: a shim that does not answer
// costs its time-out once, not once for each agent.
func (e *Engine) adoptAll(ctx context.Context) []adoption {
	return e.eachOpen(func(a *adoption) {
		a.proc, a.found, a.err = e.opts.Host.Adopt(ctx, a.session.ID, e.State().Epoch)
	})
}

// eachOpen has every open session asked after, all at once: of agents by name, then of the bench.
func (e *Engine) eachOpen(ask func(*adoption)) []adoption {
	var open []adoption
	for _, name := range e.State().Names() {
		if s := e.State().Agents[name].Session; s != nil {
			open = append(open, adoption{session: *s, agent: name, m: e.members[name]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.State().Bench.Sessions)) {
		s := e.State().Bench.Sessions[key]
		if m := e.benchSeat(s); m != nil {
			open = append(open, adoption{session: *s, m: m})
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
func (e *Engine) resume(ctx context.Context, a adoption) error {
	var fenced *Fenced
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(a.err, &fenced):
		return takenOver(a.err)
	case a.err != nil, a.neverBegan():
		return nil //nolint:nilerr // pickUp asks again, until the shim answers
	}
	what := a.becomes(true)
	if ended, is := what.(team.SessionEnded); is {
		what = e.withReport(e.State(), a.session, ended)
	}
	if what != nil {
		return e.tellOf(ctx, a.m, what)
	}
	return nil
}

// pickUp begins with one open session what its process asks for: it is listened to, or its
// shim is asked after until it answers. One that never began is an errand like any other,
// which asks first whether it is still wanted.
func (e *Engine) pickUp(a adoption) {
	m := a.m
	switch {
	case a.err != nil:
		m.begun(a.session.ID, "start/"+a.session.ID)
		e.setSilent(a.session.ID, a.err)
		e.log.Warn("a session's shim does not answer; it is asked again until it does", "session", a.session.ID, "error", a.err)
		e.Go(func(ctx context.Context) { e.adopt(ctx, m, a.session.ID, nil) })
	case a.neverBegan() || !a.follows():
		a.close()
	default:
		m.begun(a.session.ID, "start/"+a.session.ID)
		e.setProc(a.session.ID, a.proc)
		e.log.Info("session found", "session", a.session.ID, "it", string(a.found))
		e.Go(func(ctx context.Context) { e.follow(ctx, m, a.session, a.proc, a.found != Running) })
	}
}

// adopt asks after a session until it is known what became of it. To guess would be to
// double it: an agent that was taken for dead would be started again beside itself. failed
// is why it could not be started just now; nil: we found it open when we came.
func (e *Engine) adopt(ctx context.Context, m *member, id string, failed error) {
	warned := false
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		a := adoption{agent: m.conf.Name, m: m}
		var epoch uint64
		open := false
		if err := e.View(ctx, func(t *team.Team) {
			epoch = t.Epoch
			if s := m.sitting(t); s != nil && s.ID == id {
				open, a.session = true, *s
			}
		}); err != nil || !open {
			e.setSilent(id, nil)
			return
		}
		a.proc, a.found, a.err = e.opts.Host.Adopt(ctx, id, epoch)
		switch {
		case ctx.Err() != nil:
			a.close()
			return
		case e.fenced(a.err):
			return
		case a.err == nil:
			e.setSilent(id, nil)
			e.takeOver(ctx, m, a, failed)
			return
		}
		e.setSilent(id, a.err)
		if !warned {
			warned = true
			e.log.Error("what became of a session is not known; its shim is asked until it answers", "session", id, "error", a.err)
		}
		if !loop.Rest(ctx, pause) {
			return
		}
	}
}

// takeOver does beside the loop what resume does before it.
func (e *Engine) takeOver(ctx context.Context, m *member, a adoption, failed error) {
	atStart := failed == nil
	if a.neverBegan() {
		a.close()
		if atStart {
			e.startSession(ctx, m, a.session)
			return
		}
		e.sessionEnded(ctx, m, team.SessionEnded{Session: a.session.ID, Outcome: control.CannotStart, Why: failed.Error()}, byShim)
		return
	}
	follows := a.follows()
	if follows {
		e.setProc(a.session.ID, a.proc)
	}
	what := a.becomes(atStart)
	if ended, is := what.(team.SessionEnded); is {
		if e.View(ctx, func(t *team.Team) { what = e.withReport(t, a.session, ended) }) != nil {
			return
		}
	}
	if what != nil {
		if _, err := e.submitOf(ctx, byShim, m, what); err != nil {
			return
		}
	}
	if !follows {
		a.close()
		return
	}
	e.follow(ctx, m, a.session, a.proc, atStart && a.found != Running)
}

// neverBegan: it was opened, and no process was ever started for it.
func (a *adoption) neverBegan() bool {
	return a.found == NeverStarted && a.session.Phase == team.Opened
}

// follows says whether there is a process to listen to, be it to its last words.
func (a *adoption) follows() bool { return a.proc != nil && a.found != NeverStarted }

// becomes is what the team is to be told first; nil where it knows. One that has ended was
// seen to run all the same: what it used counts, and a report is taken only of one that ran.
func (a *adoption) becomes(atStart bool) any {
	switch {
	case !a.follows():
		return team.SessionEnded{
			Session: a.session.ID, Outcome: control.Lost, AtStart: atStart,
			Why: "it ended while nobody looked, and nothing is left of it",
		}
	case a.found == Running, a.found == Exited && a.session.Phase == team.Opened:
		return team.SessionAdopted{Session: a.session.ID, PID: a.proc.PID(), Input: inputOf(a.proc)}
	default:
		return nil
	}
}

func (a *adoption) close() {
	if a.proc != nil {
		_ = a.proc.Close() // nothing was asked of it
	}
}

// fenced stops the engine where another daemon has taken the sessions over.
func (e *Engine) fenced(err error) bool {
	var fenced *Fenced
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
func (e *Engine) setSilent(session string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.silent, session)
		return
	}
	e.silent[session] = err.Error()
}

func (e *Engine) silence(session string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.silent[session]
}
