package questions

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Controller takes questions to people and answers to agents.
type Controller struct {
	loop     *loop.Loop
	sessions *sessions.Controller
	log      *slog.Logger

	// Only the loop's goroutine reads or writes these.
	answering map[*sessions.Slot]int // answers that are being told, by slot
	asked     loop.Buckets           // questions for people, by agent
	ruled     loop.Buckets           // questions that a rule or a saved answer decides
}

// New makes the controller of the questions. The error names an agent whose permissions cannot be read.
func New(l *loop.Loop, opts outside.Options, under *sessions.Controller) (*Controller, error) {
	e := &Controller{
		loop: l, sessions: under, log: opts.Log,
		answering: map[*sessions.Slot]int{},
		asked:     loop.Buckets{Most: AskedMax, Every: AskedEvery}, ruled: loop.Buckets{Most: RuledMax, Every: RuledEvery},
	}
	for i := range opts.Config.Agents {
		if _, err := ReadPermissions(&opts.Config.Agents[i]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Questions are those that wait for a person, the oldest first.
func (c *Controller) Questions(ctx context.Context) ([]view.QuestionView, error) {
	views := []view.QuestionView{}
	err := c.loop.View(ctx, func(t *team.Team) {
		for _, q := range t.Questions.Open("") {
			views = append(views, *c.inboxQuestion(t, q).Question)
		}
	})
	return withHints(views), err
}

// QuestionByID returns one question, including an answered one that is still in memory. The error is
// a *team.Unknown if the id does not exist or only the journal still has it.
func (c *Controller) QuestionByID(ctx context.Context, id string) (view.QuestionView, error) {
	one := make([]view.QuestionView, 1)
	var unknown error
	err := c.loop.View(ctx, func(t *team.Team) {
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
// The error is a *table.Refusal (it is not open, the option is not offered, an agent may not answer)
// or a *team.Unknown.
func (c *Controller) AnswerQuestion(ctx context.Context, by change.Actor, id string, a view.QuestionAnswer) (uint64, error) {
	var unknown error
	if err := c.loop.View(ctx, func(t *team.Team) {
		if t.Questions.Questions[id] == nil {
			unknown = unknownQuestion(t, id)
		}
	}); err != nil || unknown != nil {
		return 0, cmp.Or(err, unknown)
	}
	return c.loop.Submit(ctx, by, "", question.Answer{ID: id, Allow: a.Allow, Option: a.Option, Text: a.Text, Scope: question.Scope(a.Scope)})
}

// SavedAnswers lists the saved answers, the oldest first.
func (c *Controller) SavedAnswers(ctx context.Context) ([]view.SavedAnswerView, error) {
	views := []view.SavedAnswerView{}
	err := c.loop.View(ctx, func(t *team.Team) {
		for _, s := range t.Questions.List() {
			views = append(views, view.ViewSavedAnswer(s))
		}
	})
	return views, err
}

// RevokeSavedAnswer revokes a saved answer. Errors are as AnswerQuestion's.
func (c *Controller) RevokeSavedAnswer(ctx context.Context, by change.Actor, id string) (uint64, error) {
	var unknown error
	if err := c.loop.View(ctx, func(t *team.Team) {
		if t.Questions.Saved[id] == nil {
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
	return c.loop.Submit(ctx, by, "", question.Revoke{ID: id})
}

// inboxQuestion is a question as people see it. It runs in the loop.
func (c *Controller) inboxQuestion(t *team.Team, q *question.Question) view.InboxItem {
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
func (c *Controller) LiftLimit(ctx context.Context, by change.Actor, agent string) (uint64, error) {
	if by.Kind == "agent" {
		return 0, &table.Refusal{
			Subject: agent, Event: "limit_lifted", State: "rate_limited", Row: "X10",
			Reason: "what a provider refuses is tried again by its time, or by a person's word",
		}
	}
	return c.loop.Submit(ctx, by, agent, team.LimitLifted{})
}
