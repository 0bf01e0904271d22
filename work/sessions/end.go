package sessions

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// listenerGrace is the grace for an agent that only waits for more input. It has nothing left to
// finish, and another session may be waiting for its slot.
const listenerGrace = time.Second

// EndSession ends a session's process as the agent's state asks.
func (c *Controller) EndSession(ctx context.Context, m *Slot, s team.Session) {
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
// no process is known, the session is still being adopted and End tries again. A session that is not
// adopted, because its shim speaks another protocol, ends only if a person ordered it. The goroutine
// that follows the session, or asks its shim, reports its end.
func (c *Controller) End(ctx context.Context, m *Slot, id string, grace time.Duration) {
	warned := false
	for again := loop.Retry(); ; {
		err := c.Silence(id)
		if proc := c.Proc(id); proc != nil {
			err = proc.End(ctx, grace)
			if err == nil || ctx.Err() != nil || c.Fenced(err) {
				return
			}
		}
		if other, is := errors.AsType[*sessionhost.NotAdopted](err); is && c.endOrdered(ctx, m, id) {
			if err = other.End(ctx, grace); err == nil || ctx.Err() != nil {
				return
			}
		}
		if err != nil && !warned {
			warned = true
			c.log.Error("the request to end did not reach a session; Fairlead tries again", "session", id, "error", err)
		}
		if !again.Rest(ctx) {
			return
		}
		open := false
		err = c.loop.View(ctx, func(t *team.Team) {
			s := m.Open(t)
			open = s != nil && s.ID == id
		})
		if err != nil || !open {
			return
		}
	}
}

// endOrdered reports whether a person ordered the end of a session.
func (c *Controller) endOrdered(ctx context.Context, m *Slot, id string) (ordered bool) {
	_ = c.loop.View(ctx, func(t *team.Team) { // fails only if the loop has stopped
		if s := m.Open(t); s != nil && s.ID == id {
			switch s.EndReason {
			case team.EndByPerson, team.EndSleep, team.EndCancelled:
				ordered = true
			default:
				ordered = s.Now
			}
		}
	})
	return ordered
}

// SessionEnded reports the end of a session. It returns true if the end is recorded, also by an
// earlier report.
func (c *Controller) SessionEnded(ctx context.Context, m *Slot, what team.SessionEnded, by change.Actor) bool {
	c.EndView(what.Session)
	_, err := c.SubmitOf(ctx, by, m, what)
	return err == nil || loop.IsAnswer(err)
}

// IsDone says whether a process has ended.
func IsDone(proc sessionhost.Process) bool {
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}
