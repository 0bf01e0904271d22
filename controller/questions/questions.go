package questions

import (
	"cmp"
	"context"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

// Questions are those that wait for a person, the oldest first.
func (c *QuestionController) Questions(ctx context.Context) ([]view.QuestionView, error) {
	views := []view.QuestionView{}
	err := c.View(ctx, func(t *team.Team) {
		for _, q := range t.Questions.Open("") {
			views = append(views, *c.inboxQuestion(t, q).Question)
		}
	})
	return withHints(views), err
}

// QuestionByID returns one question, including an answered one that is still in memory. The error is
// a *team.Unknown if the id does not exist or only the journal still has it.
func (c *QuestionController) QuestionByID(ctx context.Context, id string) (view.QuestionView, error) {
	one := make([]view.QuestionView, 1)
	var unknown error
	err := c.View(ctx, func(t *team.Team) {
		q := t.Questions.Questions[id]
		if q == nil {
			unknown = unknownQuestion(t, id)
			return
		}
		one[0] = *c.inboxQuestion(t, q).Question
	})
	return withHints(one)[0], cmp.Or(err, unknown)
}

func unknownQuestion(t *team.Team, id string) error {
	u := &team.Unknown{What: "question", Name: id}
	for _, q := range t.Questions.Open("") {
		u.Known = append(u.Known, q.ID)
	}
	if len(u.Known) == 0 {
		u.Known = []string{"none that waits"}
	}
	return u
}

// AnswerQuestion answers what waits for a person. It returns when the answer is durable; who asked is
// told after that. The Seq is that of the last change that it made.
// The error is a *machine.Refusal (it is not open, the option is not offered, an agent may not answer)
// or a *team.Unknown.
func (c *QuestionController) AnswerQuestion(ctx context.Context, by seam.Actor, id string, a view.QuestionAnswer) (uint64, error) {
	var unknown error
	if err := c.View(ctx, func(t *team.Team) {
		if t.Questions.Questions[id] == nil {
			unknown = unknownQuestion(t, id)
		}
	}); err != nil || unknown != nil {
		return 0, cmp.Or(err, unknown)
	}
	return c.Submit(ctx, by, "", question.Answer{ID: id, Allow: a.Allow, Option: a.Option, Text: a.Text, Scope: question.Scope(a.Scope)})
}

// Standing lists the saved answers, the oldest first.
func (c *QuestionController) Standing(ctx context.Context) ([]view.StandingView, error) {
	views := []view.StandingView{}
	err := c.View(ctx, func(t *team.Team) {
		for _, s := range t.Questions.List() {
			views = append(views, view.ViewStanding(s))
		}
	})
	return views, err
}

// RevokeStanding revokes a saved answer. Errors are as AnswerQuestion's.
func (c *QuestionController) RevokeStanding(ctx context.Context, by seam.Actor, id string) (uint64, error) {
	var unknown error
	if err := c.View(ctx, func(t *team.Team) {
		if t.Questions.Standing[id] == nil {
			u := &team.Unknown{What: "saved answer", Name: id, Known: []string{}}
			for _, s := range t.Questions.List() {
				u.Known = append(u.Known, s.ID)
			}
			if len(u.Known) == 0 {
				u.Known = []string{"none"}
			}
			unknown = u
		}
	}); err != nil || unknown != nil {
		return 0, cmp.Or(err, unknown)
	}
	return c.Submit(ctx, by, "", question.Revoke{ID: id})
}

// inboxQuestion is a question as people see it. It runs in the loop.
func (c *QuestionController) inboxQuestion(t *team.Team, q *question.Question) view.InboxItem {
	var s *team.Session
	if a := t.Agents[q.Agent]; a != nil {
		s = a.Open(q.Session)
		for i := range a.Past {
			if a.Past[i].ID == q.Session {
				s = &a.Past[i]
			}
		}
	}
	item := view.InboxQuestion(q, s)
	if m := c.sessions.Slots[q.Agent]; m != nil {
		item.Question.Workspace = m.Conf.Workspace
	}
	if s != nil && s.Launch != nil {
		item.Question.Workspace = s.Launch.Dir
	}
	if r := t.Runs[item.Run]; r != nil {
		item.Workflow = r.Plan.Name
	}
	return item
}

// LiftLimit has an agent whose provider takes nothing more be started again before its time: a person
// knows better. That it does not wait is no error.
func (c *QuestionController) LiftLimit(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	if by.Kind == "agent" {
		return 0, &machine.Refusal{
			Subject: agent, Event: "limit_lifted", State: "rate_limited", Row: "X10",
			Reason: "what a provider refuses is tried again by its time, or by a person's word",
		}
	}
	return c.Submit(ctx, by, agent, team.LimitLifted{})
}
