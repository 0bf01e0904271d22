package sessions

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// listenerGrace is how long an agent has that waits for more, and sees that none comes: there is
// nothing left that it would have to finish, and somebody may wait for its seat.
const listenerGrace = time.Second

// endSession has a session's process ended, as its agent's state asks.
func (e *Controller) EndSession(ctx context.Context, m *Slot, s team.Session) {
	grace := m.Conf.Grace
	if proc := e.Proc(s.ID); s.ServesChannels() && !s.AnswerPending() && !s.Now && proc != nil {
		e.closeInput(ctx, m, s.ID, proc, min(grace, listenerGrace))
		return
	}
	if s.Now {
		grace = 0
	}
	e.End(ctx, m, s.ID, grace)
}

// end tells a session's process to end, until the order was taken or the session is over.
// That nobody answers for it means that it is being looked for. Its end itself is seen by
// who follows it.
func (e *Controller) End(ctx context.Context, m *Slot, id string, grace time.Duration) {
	warned := false
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		if proc := e.Proc(id); proc != nil {
			err := proc.End(ctx, grace)
			if err == nil || ctx.Err() != nil || e.Fenced(err) {
				return
			}
			if !warned {
				warned = true
				e.log.Error("a session could not be told to end; it is told again", "session", id, "error", err)
			}
		}
		if !loop.Rest(ctx, pause) {
			return
		}
		open := false
		err := e.View(ctx, func(t *team.Team) {
			s := m.Sitting(t)
			open = s != nil && s.ID == id
		})
		if err != nil || !open {
			return
		}
	}
}

// sessionEnded reports an end. That it is over already is no error: somebody else saw it too.
func (e *Controller) SessionEnded(ctx context.Context, m *Slot, what team.SessionEnded, by team.Actor) bool {
	e.boxedTemp(m, what.Session)
	_, err := e.SubmitOf(ctx, by, m, what)
	return err == nil || loop.IsAnswer(err)
}

// withdrawn takes back a session that is not wanted any more.
func (e *Controller) withdrawn(ctx context.Context, m *Slot, id, why string) {
	e.SessionEnded(ctx, m, team.SessionEnded{Session: id, Outcome: control.Withdrawn, Why: why}, byIntent)
}
