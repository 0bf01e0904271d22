package questions

import (
	"context"
	"errors"

	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// answersOf sends an answer to the agent that asked. Like all actions it is derived from the team's
// state: an answer that was journaled just before a crash is sent after it. Sending it twice is
// harmless, because a program identifies its question by name. It runs in the loop.
func (c *Controller) answersOf(m *sessions.Slot, a *team.Agent) {
	for _, q := range c.loop.State().Questions.Undelivered(a.Name) {
		s := a.Open(q.Session)
		if s == nil || s.Phase != session.Running || q.Kind != question.Permission || q.Host != "" {
			continue
		}
		m := m.At(s.Slot)
		if m.Begun(s.ID, "answer/"+q.ID) {
			continue
		}
		session, answer := *s, *q
		c.answering[m]++
		c.loop.Go(func(ctx context.Context) {
			done := loop.Request{Look: func(*team.Team) { c.answering[m]-- }}
			if c.tellAnswer(ctx, m, session, answer) {
				done.Event = m.Event(sessions.ByShim, question.Hand{ID: answer.ID})
			}
			_, _ = c.loop.Do(ctx, done) // an error means that the engine is stopping; the next start sends the answer again
		})
	}
}

// answersTold waits until no answer is on its way to a session that is over: what it was told it is
// known to have been told, and not to have left unanswered. False: we stop.
func (c *Controller) DeliverAnswers(ctx context.Context, m *sessions.Slot) bool {
	for {
		under := 0
		if c.loop.View(ctx, func(*team.Team) { under = c.answering[m] }) != nil {
			return false
		}
		if under == 0 {
			return true
		}
		if !retry.Rest(ctx, loop.RetryFirst) {
			return false
		}
	}
}

// tellAnswer tells a program what was answered, until it has it (true) or is gone. With its session its
// questions are over.
func (c *Controller) tellAnswer(ctx context.Context, m *sessions.Slot, s team.Session, q question.Question) (told bool) {
	warned := false
	for again := loop.Retry(); ; {
		if proc := c.sessions.Proc(s.ID); proc != nil {
			conv := m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), proc)
			err := AnswerWith(ctx, conv, q.Ask, q.Option)
			switch {
			case err == nil:
				return true
			case ctx.Err() != nil, c.sessions.Fenced(err), errors.Is(err, driver.ErrNoInput), errors.Is(err, driver.ErrNoAnswer),
				sessions.IsDone(proc):
				return false // its session's end takes the question back
			}
			if !warned {
				warned = true
				c.log.Error("an answer was not delivered to its agent; Fairlead tries again", "session", s.ID, "question", q.ID, "error",
					err)
			}
		}
		if !again.Rest(ctx) {
			return false
		}
		open := false
		if err := c.loop.View(ctx, func(t *team.Team) {
			now := m.Open(t)
			open = now != nil && now.ID == s.ID
		}); err != nil || !open {
			return false
		}
	}
}

// AnswerWith chooses an option. If the program offered no option for the answer, it is told to stop
// what it is doing, so that it does not wait forever.
func AnswerWith(ctx context.Context, conv driver.Conversation, ask, option string) error {
	if option == "" {
		return conv.Cancel(ctx)
	}
	return conv.Answer(ctx, ask, option)
}
