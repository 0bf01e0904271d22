package team

import (
	"cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	deniedShown = 10  // the journal has the others
	deniedBytes = 200 // of each
)

// byAgentKind is an actor that may ask but never answer.
const byAgentKind = "agent"

// questions decides an input about questions. No agent may answer a question that waits for a person
// (X10), whichever agent asked it.
func (d *decision) questions(in question.Input) error {
	switch about := in.Subject(); about.Event {
	case question.Replied, question.Revoked:
		if d.ev.Actor.Kind == byAgentKind {
			return &table.Refusal{
				Subject: about.Entity, Event: string(about.Event), State: string(question.Open), Row: "X10",
				Reason: "a question for a person cannot be answered by an agent",
			}
		}
		if q := d.team.Questions.Questions[about.Entity]; q != nil && q.Order != "" && about.Event == question.Replied {
			return d.answerOrder(q.ID, in)
		}
	case question.Raised:
		a := d.team.Agents[about.Agent]
		if a == nil {
			return &Unknown{What: "agent", Name: about.Agent, Known: d.team.Names()}
		}
		if a.Open(about.Session) == nil {
			return &table.Refusal{
				Subject: a.Name, Event: string(about.Event), State: string(question.None), Row: "Q1",
				Reason: "its session " + about.Session + " is over, or it never was",
			}
		}
	}
	return d.questioned(in)
}

func (d *decision) questioned(in question.Input) error {
	changes, err := d.team.Questions.Decide(d.ev.At, d.ev.Actor, in)
	d.changes = append(d.changes, changes...)
	next := *d.team
	for _, ch := range changes {
		next.Questions.Apply(ch)
	}
	d.team = &next
	return err
}

// applyQuestion performs a change of the questions, and counts a session's denied calls.
func (t *Team) applyQuestion(ch change.Change, q *question.Question) {
	t.Questions.Apply(ch)
	if q == nil || q.State != question.Answered || q.Kind != question.Permission || q.Allow {
		return
	}
	if a := t.Agents[q.Agent]; a != nil && a.Open(q.Session) != nil {
		s := *a.Open(q.Session)
		if s.Denied++; len(s.DeniedWhat) < deniedShown {
			s.DeniedWhat = append(s.DeniedWhat[:len(s.DeniedWhat):len(s.DeniedWhat)],
				clip.To(cmp.Or(cutLine(q.Called()), q.What), deniedBytes))
		}
		a.setOpen(s.Slot, &s)
	}
}
