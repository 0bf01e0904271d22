package team

import (
	"encoding/json"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/question"
)

const (
	questionPrefix = "question/"
	deniedShown    = 10  // the journal has the others
	deniedBytes    = 200 // of each
)

// byAgentKind is an actor that may ask but never answer.
const byAgentKind = "agent"

// questions decides an input about questions. No agent may answer a question that waits for a person
// (X10), whichever agent asked it.
func (d *decision) questions(in question.Input) error {
	switch in := in.(type) {
	case question.Answer:
		if err := d.onlyPeople(in.ID, string(question.Replied)); err != nil {
			return err
		}
	case question.Revoke:
		if err := d.onlyPeople(in.ID, string(question.Revoked)); err != nil {
			return err
		}
	case question.Ask:
		a := d.team.Agents[in.Question.Agent]
		if a == nil {
			return &Unknown{What: "agent", Name: in.Question.Agent, Known: d.team.Names()}
		}
		if a.Open(in.Question.Session) == nil {
			return &machine.Refusal{
				Subject: a.Name, Event: string(question.Raised), State: string(question.None), Row: "Q1",
				Reason: "its session " + in.Question.Session + " is over, or it never was",
			}
		}
	}
	return d.questioned(in)
}

func (d *decision) onlyPeople(id, event string) error {
	if d.ev.Actor.Kind != byAgentKind {
		return nil
	}
	return &machine.Refusal{Subject: id, Event: event, State: string(question.Open), Row: "X10", Reason: "a question for a person cannot be answered by an agent"}
}

func (d *decision) questioned(in question.Input) error {
	changes, err := d.team.Questions.Decide(d.ev.At, strings.TrimSuffix(d.ev.Actor.Kind+"/"+d.ev.Actor.ID, "/"), in)
	if err != nil {
		return err
	}
	for i := range changes {
		ch := &changes[i]
		d.add(questionPrefix+ch.Entity, "question", ch.Row, string(ch.From), string(ch.To), string(ch.Event), Body{Question: &ch.Body})
		next := *d.team
		next.Questions.Apply(question.Change{Body: ch.Body})
		d.team = &next
	}
	return nil
}

// applyQuestion performs a change of the questions, and counts a session's denied calls.
func (t *Team) applyQuestion(body question.Body) {
	t.Questions.Apply(question.Change{Body: body})
	q := body.Question
	if q == nil || q.State != question.Answered || q.Kind != question.Permission || q.Allow {
		return
	}
	if a := t.Agents[q.Agent]; a != nil && a.Open(q.Session) != nil {
		s := *a.Open(q.Session)
		if s.Denied++; len(s.DeniedWhat) < deniedShown {
			s.DeniedWhat = append(s.DeniedWhat[:len(s.DeniedWhat):len(s.DeniedWhat)], deniedWords(q))
		}
		a.setOpen(s.Slot, &s)
	}
}

// deniedWords describes a denied call in one line: Bash rm -rf build (Q4).
func deniedWords(q *question.Question) string {
	text := cutLine(strings.TrimSpace(q.Tool + " " + calledWith(q.Call)))
	if text == "" {
		text = q.What
	}
	return clip.To(text, deniedBytes)
}

// about returns the agent that a change of the questions concerns; empty: unknown.
func about(body *question.Body) string {
	switch {
	case body.Question != nil:
		return body.Question.Agent
	case body.Standing != nil:
		return body.Standing.Agent
	default:
		return ""
	}
}

// calledWith returns the most informative argument of a call whose arguments are JSON, but never
// file content.
func calledWith(call string) string {
	var args map[string]any
	if json.Unmarshal([]byte(call), &args) != nil {
		return call
	}
	for _, name := range []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern"} {
		if text, ok := args[name].(string); ok && text != "" {
			return text
		}
	}
	return call
}
