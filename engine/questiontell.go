package engine

import (
	"context"
	"errors"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

// answersOf has who asked be told what was answered. Like all errands it is read off the team's state:
// an answer that was journaled just before a crash is told after it. Told twice it is the same answer,
// since a program knows its question by its name. It runs in the loop.
func (e *Engine) answersOf(m *member, a *team.Agent) {
	s := a.Session
	if s == nil || s.Phase != team.Running {
		return
	}
	for _, q := range e.team.Book.Untold(a.Name) {
		if q.Session != s.ID || q.Kind != question.Permission || m.begun(s.ID, "answer/"+q.ID) {
			continue
		}
		session, answer := *s, *q
		e.beside(func(ctx context.Context) { e.tellAnswer(ctx, m, session, answer) })
	}
}

// tellAnswer tells a program what was answered, until it has it or is gone. With its session its
// questions are over.
func (e *Engine) tellAnswer(ctx context.Context, m *member, s team.Session, q question.Question) {
	warned := false
	for pause := retryFirst; ; pause = min(2*pause, retryMax) {
		if proc := e.proc(s.ID); proc != nil {
			conv := m.driver.Converse(known(*m.conf), sessionFor(m, s), proc)
			err := answerWith(ctx, conv, q.Ask, q.Option)
			switch {
			case err == nil:
				_, _ = e.submitOf(ctx, byHolder, m, question.Hand{ID: q.ID}) // that it is known, or cannot be noted any more, is no fault
				return
			case ctx.Err() != nil, e.fenced(err), errors.Is(err, driver.ErrNoInput):
				return // its session's end takes the question back
			}
			if !warned {
				warned = true
				e.log.Error("an agent could not be told what was answered; it is told again", "session", s.ID, "question", q.ID, "error", err)
			}
		}
		if !rest(ctx, pause) {
			return
		}
		open := false
		if err := e.look(ctx, func(t *team.Team) {
			now := m.sitting(t)
			open = now != nil && now.ID == s.ID
		}); err != nil || !open {
			return
		}
	}
}

// answerWith chooses an option. Where the program offered none that says what was answered it is told
// to stop what it is doing, since one that waits for ever is no answer.
func answerWith(ctx context.Context, conv driver.Conversation, ask, option string) error {
	answers, can := conv.(driver.Answerer)
	switch {
	case !can:
		return driver.ErrNoInput
	case option == "":
		return conv.Cancel(ctx)
	default:
		return answers.Answer(ctx, ask, option)
	}
}
