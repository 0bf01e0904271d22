package sessions

import (
	"context"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// A session sits in a seat: an agent's, or that of one step of a run, which a wrapper or a
// command plays. Whoever starts, hears, adopts and ends a session need not know which.

// event is something that happened in this seat.
func (m *Slot) Event(by team.Actor, what any) *team.Event {
	if m.Run != "" {
		ev := loop.EventBy(by, "", what)
		ev.Run = m.Run
		return ev
	}
	return loop.EventBy(by, m.Conf.Name, what)
}

// submitOf has an event in a seat decided.
func (e *Controller) SubmitOf(ctx context.Context, by team.Actor, m *Slot, what any) (uint64, error) {
	return e.Do(ctx, loop.Request{Event: m.Event(by, what)})
}

// sitting is the session that is open in this seat, or nil.
func (m *Slot) Sitting(t *team.Team) *team.Session {
	if m.Run != "" {
		return t.Pool.Sessions[m.Run+"/"+string(m.Step)]
	}
	return t.Agents[m.Conf.Name].Session
}

func (m *Slot) mayStart(t *team.Team, session string, at time.Time) (bool, string) {
	if m.Run != "" {
		return t.MayStartRun(m.Run, session, at)
	}
	return t.MayStart(m.Conf.Name, session, at)
}

// benchDriver runs what a step has in place of an agent.
const BenchDriver = "exec"

// stepParts takes the name of a step's own session apart: build@f8c1.
func StepParts(name string) (run, step string, ok bool) {
	step, run, ok = strings.Cut(name, "@")
	return run, step, ok && run != "" && step != ""
}

// pastStep says whether a step's own session is over by the journal.
func (e *Controller) pastStep(run, step string, n uint64, session string) bool {
	if s := e.State().Pool.Sessions[run+"/"+step]; s != nil && s.ID == session {
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
