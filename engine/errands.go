package engine

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// errandsOf begins what the agent's state asks for and was not begun. It is called after
// every change, so nothing has to remember to call it.
func (e *Engine) errandsOf(name string) {
	a, m := e.State().Agents[name], e.members[name]
	if a == nil || m == nil || e.Holding() {
		return
	}
	for todo := range e.State().Todo(a) {
		if todo.Do == team.WriteFile {
			e.writeFile(e.files[name], a)
			continue
		}
		if m.begun(todo.Session.ID, todo.Key) {
			continue
		}
		switch s := todo.Session; todo.Do {
		case team.StartSession:
			e.Go(func(ctx context.Context) { e.startSession(ctx, m, s) })
		case team.EndSession:
			e.Go(func(ctx context.Context) { e.endSession(ctx, m, s) })
		default:
			panic("engine: no such errand: " + string(todo.Do))
		}
	}
	e.writeNext()
}

// listenerGrace is how long an agent has that waits for more, and sees that none comes: there is
// nothing left that it would have to finish, and somebody may wait for its seat.
const listenerGrace = time.Second

// endSession has a session's process ended, as its agent's state asks.
func (e *Engine) endSession(ctx context.Context, m *member, s team.Session) {
	grace := m.conf.Grace
	if proc := e.proc(s.ID); s.Talks() && !s.Answers() && !s.Now && proc != nil {
		e.closeInput(ctx, m, s.ID, proc, min(grace, listenerGrace))
		return
	}
	if s.Now {
		grace = 0
	}
	e.end(ctx, m, s.ID, grace)
}

// end tells a session's process to end, until the order was taken or the session is over.
// That nobody answers for it means that it is being looked for. Its end itself is seen by
// who follows it.
func (e *Engine) end(ctx context.Context, m *member, id string, grace time.Duration) {
	warned := false
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		if proc := e.proc(id); proc != nil {
			err := proc.End(ctx, grace)
			if err == nil || ctx.Err() != nil || e.fenced(err) {
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
			s := m.sitting(t)
			open = s != nil && s.ID == id
		})
		if err != nil || !open {
			return
		}
	}
}

// sessionEnded reports an end. That it is over already is no error: somebody else saw it too.
func (e *Engine) sessionEnded(ctx context.Context, m *member, what team.SessionEnded, by team.Actor) bool {
	e.boxedTemp(m, what.Session)
	_, err := e.submitOf(ctx, by, m, what)
	return err == nil || loop.IsAnswer(err)
}

// withdrawn takes back a session that is not wanted any more.
func (e *Engine) withdrawn(ctx context.Context, m *member, id, why string) {
	e.sessionEnded(ctx, m, team.SessionEnded{Session: id, Outcome: control.Withdrawn, Why: why}, byIntent)
}
