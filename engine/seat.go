package engine

import (
	"context"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// A session sits in a seat: an agent's, or that of one step of a run, which a wrapper or a
// command plays. Whoever starts, hears, adopts and ends a session need not know which.

// event is something that happened in this seat.
func (m *member) event(by team.Actor, what any) *team.Event {
	if m.run != "" {
		ev := loop.EventBy(by, "", what)
		ev.Run = m.run
		return ev
	}
	return loop.EventBy(by, m.conf.Name, what)
}

// submitOf has an event in a seat decided.
func (e *Engine) submitOf(ctx context.Context, by team.Actor, m *member, what any) (uint64, error) {
	return e.Do(ctx, loop.Request{Event: m.event(by, what)})
}

// sitting is the session that is open in this seat, or nil.
func (m *member) sitting(t *team.Team) *team.Session {
	if m.run != "" {
		return t.Bench.Sessions[m.run+"/"+string(m.step)]
	}
	return t.Agents[m.conf.Name].Session
}

func (m *member) mayStart(t *team.Team, session string, at time.Time) (bool, string) {
	if m.run != "" {
		return t.MayStartRun(m.run, session, at)
	}
	return t.MayStart(m.conf.Name, session, at)
}

// benchDriver runs what a step has in place of an agent.
const benchDriver = "exec"

// benchSeat is the seat of a step that has one to itself; nil for a session that names none.
func (e *Engine) benchSeat(s *team.Session) *member {
	run, step, ok := team.StepOf(s.For)
	if !ok {
		return nil
	}
	r := e.runMember(run)
	if m := r.seats[step]; m != nil {
		return m
	}
	d, ok := e.opts.Drivers[benchDriver]
	if !ok {
		d = deaf{}
	}
	m := newMember(&config.Agent{Name: step + "@" + run, Driver: benchDriver, Grace: config.GraceDefault}, d)
	m.run, m.step = run, workflow.StepID(step)
	r.seats[step] = m
	return m
}

// stepParts takes the name of a step's own session apart: build@f8c1.
func stepParts(name string) (run, step string, ok bool) {
	step, run, ok = strings.Cut(name, "@")
	return run, step, ok && run != "" && step != ""
}

// pastStep says whether a step's own session is over by the journal.
func (e *Engine) pastStep(run, step string, n uint64, session string) bool {
	if s := e.State().Bench.Sessions[run+"/"+step]; s != nil && s.ID == session {
		return false
	}
	if _, gone := e.State().Archive[run]; gone {
		return true
	}
	r := e.State().Runs[run]
	if r == nil {
		return false
	}
	_, p, known := r.Find(workflow.StepID(step))
	return !known || n <= p.N // a step that the workflow has no more has had its sessions
}
