package sessions

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// listenerGrace is the grace for an agent that only waits for more input. It has nothing left to
// finish, and another session may be waiting for its slot.
const listenerGrace = time.Second

// EndSession ends a session's process as the agent's state asks.
func (c *SessionController) EndSession(ctx context.Context, m *Slot, s team.Session) {
	grace := m.Conf.Grace
	if proc := c.Proc(s.ID); s.ServesChannels() && !s.AnswerPending() && !s.Now && proc != nil {
		c.closeInput(ctx, m, s.ID, proc, min(grace, listenerGrace))
		return
	}
	if s.Now {
		grace = 0
	}
	c.End(ctx, m, s.ID, grace)
}

// End tells a session's process to end, until the request was accepted or the session is over. If
// no process is known, the session is still being adopted and End tries again. The goroutine that
// follows the session reports its end.
func (c *SessionController) End(ctx context.Context, m *Slot, id string, grace time.Duration) {
	warned := false
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		if proc := c.Proc(id); proc != nil {
			err := proc.End(ctx, grace)
			if err == nil || ctx.Err() != nil || c.Fenced(err) {
				return
			}
			if !warned {
				warned = true
				c.log.Error("the request to end did not reach a session; Fairlead tries again", "session", id, "error", err)
			}
		}
		if !loop.Rest(ctx, pause) {
			return
		}
		open := false
		err := c.View(ctx, func(t *team.Team) {
			s := m.Open(t)
			open = s != nil && s.ID == id
		})
		if err != nil || !open {
			return
		}
	}
}

// SessionEnded reports the end of a session. It returns true if the end is recorded, also by an
// earlier report.
func (c *SessionController) SessionEnded(ctx context.Context, m *Slot, what team.SessionEnded, by team.Actor) bool {
	c.boxedTemp(m, what.Session)
	_, err := c.SubmitOf(ctx, by, m, what)
	return err == nil || loop.IsAnswer(err)
}

// withdrawn records that a session is no longer wanted.
func (c *SessionController) withdrawn(ctx context.Context, m *Slot, id, why string) {
	c.SessionEnded(ctx, m, team.SessionEnded{Session: id, Outcome: control.Withdrawn, Why: why}, byIntent)
}

// IsDone says whether a process has ended.
func IsDone(proc seam.Process) bool {
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}
