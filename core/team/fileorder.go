package team

import (
	"slices"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
)

// duringSession returns the session of an agent in a sandbox that ran when a file was written, and so can have written it.
func (t *Team) duringSession(in control.Input) *Session {
	file, _ := in.(control.FileRead)
	for _, name := range file.Writers {
		if a := t.Agents[name]; a != nil {
			all := a.Sessions()
			for i := range a.Past { // the file is looked at a moment after it was written
				all = append(all, &a.Past[i])
			}
			if i := slices.IndexFunc(all, func(s *Session) bool { return file.During(s.OpenedAt, s.EndedAt) }); i >= 0 {
				return all[i]
			}
		}
	}
	return nil
}

// answerOrder records a person's answer about an order by file. A yes gives the order, as the person's own.
func (d *decision) answerOrder(id string, in question.Input) error {
	err := d.questioned(in)
	q := d.team.Questions.Questions[id]
	if err == nil && q.Allow {
		a := *d.team.Agents[q.Agent]
		what := control.Commanded{Desired: q.Order, By: "human", Note: "as agent_state.json asked (" + q.ID + ")"}
		if a.Removed {
			return d.refuseRemoved(&a, what)
		}
		err = d.control(&a, what)
	}
	if err != nil {
		return err
	}
	return d.questioned(question.Hand{ID: id})
}
