package sessions

import (
	"context"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// Event returns an event about this slot.
func (m *Slot) Event(by team.Actor, what any) *team.Event {
	if m.Run != "" {
		ev := loop.EventBy(by, "", what)
		ev.Run = m.Run
		return ev
	}
	return loop.EventBy(by, m.Conf.Name, what)
}

// SubmitOf submits an event about a slot and returns the Seq of its last change.
func (c *Controller) SubmitOf(ctx context.Context, by team.Actor, m *Slot, what any) (uint64, error) {
	return c.Do(ctx, loop.Request{Event: m.Event(by, what)})
}

// Open returns the session that is open in this slot, or nil.
func (m *Slot) Open(t *team.Team) *team.Session {
	if m.Run != "" {
		return t.Pool.Sessions[m.Run+"/"+string(m.Step)]
	}
	return t.Agents[m.Conf.Name].InSlot(m.N)
}

func (m *Slot) mayStart(t *team.Team, session string, at time.Time) (bool, string) {
	if m.Run != "" {
		return t.MayStartRun(m.Run, session, at)
	}
	return t.MayStart(m.Conf.Name, session, at)
}

// PoolDriver is the driver of a step that runs without an agent.
const PoolDriver = "exec"

// StepParts splits the name of a step's own session, for example build@f8c1.
func StepParts(name string) (run, step string, ok bool) {
	step, run, ok = strings.Cut(name, "@")
	return run, step, ok && run != "" && step != ""
}

// pastStep reports whether the journal says that a step's own session is over.
func (c *Controller) pastStep(run, step string, n uint64, session string) bool {
	if s := c.State().Pool.Sessions[run+"/"+step]; s != nil && s.ID == session {
		return false
	}
	if _, gone := c.State().Archive[run]; gone {
		return true
	}
	r := c.State().Runs[run]
	if r == nil {
		return false
	}
	_, p, known := r.Find(workflow.StepID(step))
	return !known || n <= p.N // a step that was removed from the workflow has no open sessions
}
