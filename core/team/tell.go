package team

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Tell is what a person told an agent during a session. If its program does not read it during the answer, the
// agent's next session for the same purpose begins with it; a step then goes on instead of ending.
type Tell struct {
	N    uint64    `json:"n"`
	For  Purpose   `json:"for"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// TellsSet is the new list of what an agent is still to be told.
type TellsSet struct {
	Tells []Tell `json:"tells,omitempty"`
	Last  uint64 `json:"last"` // number of the last one so far
}

const (
	tellsMax       = 16       // that wait for one agent
	TellBytesMax   = 16 << 10 // of one text: a change with sixteen of them stays below the journal's limit
	tellWordsIntro = "While you worked, you were told:"
)

// PersonWrote is a person's text for the agent of a running session.
type PersonWrote struct {
	Session string
	Text    string
}

// TellGiven means that the program of a session has read a text: it is not told again.
type TellGiven struct {
	Session string
	N       uint64
}

// TellWords is what an agent is told at the start of a session; empty: nothing.
func TellWords(tells []Tell) string {
	if len(tells) == 0 {
		return ""
	}
	words := []string{tellWordsIntro}
	for _, one := range tells {
		words = append(words, one.Text)
	}
	return strings.Join(words, "\n\n")
}

func (d *decision) personWrote(a *Agent, what PersonWrote) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	rule, err := d.look(a, session.PersonWrote)
	if err != nil {
		return err
	}
	why, waiting := "", d.team.tellsDue(a)
	switch {
	case !s.takesTells():
		why = "this session is for " + s.For.String() + "; say it there"
	case s.Ending != "":
		why = "the session is ending"
	case len(waiting) >= tellsMax:
		why = fmt.Sprintf("%d texts wait for it already", len(waiting))
	case len(what.Text) > TellBytesMax:
		why = fmt.Sprintf("the text has %d bytes; %d are possible: put it into a file, and name that", len(what.Text), TellBytesMax)
	case strings.TrimSpace(what.Text) == "":
		why = "it has no text"
	}
	if why != "" {
		return &table.Refusal{
			Subject: "session " + s.ID, Event: string(session.PersonWrote), State: string(s.Phase), Row: rule.ID,
			Reason: why,
		}
	}
	next := TellsSet{Last: a.LastTell + 1}
	next.Tells = append(waiting, Tell{N: next.Last, For: s.For, By: d.ev.Actor.ID, At: d.ev.At, Text: what.Text})
	d.setTells(a, rule.ID, session.PersonWrote, next)
	return nil
}

func (d *decision) tellGiven(a *Agent, what TellGiven) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	rule, err := d.look(a, session.TellGiven)
	if err != nil {
		return err
	}
	for _, one := range a.tellsFor(s.For) { // a session cannot take away what another one is to be told
		if one.N == what.N {
			d.setTells(a, rule.ID, session.TellGiven, TellsSet{Tells: a.without([]Tell{one}), Last: a.LastTell})
		}
	}
	return nil
}

func (d *decision) setTells(a *Agent, row string, event session.Event, next TellsSet) {
	d.add("session/"+a.Name, "session", row, string(session.Running), string(session.Running), string(event), &next)
	a.Tells, a.LastTell = next.Tells, next.Last
}

// takesTells reports whether a session is one that a person may tell something: control, or a step of a run.
func (s *Session) takesTells() bool {
	return servesRun(s) || s.For == ForControl
}

// tellsFor returns what the next session for a purpose begins with.
func (a *Agent) tellsFor(purpose Purpose) (tells []Tell) {
	for _, one := range a.Tells {
		if one.For == purpose {
			tells = append(tells, one)
		}
	}
	return tells
}

// tellsDue returns what an agent is still to be told, without the texts for runs that are over.
func (t *Team) tellsDue(a *Agent) (due []Tell) {
	for _, one := range a.Tells {
		run, _, isStep := StepOf(one.For)
		if r := t.Runs[run]; !isStep || r != nil && !atRest(r) {
			due = append(due, one)
		}
	}
	return due
}

// without returns what the agent is still to be told after it was told these.
func (a *Agent) without(told []Tell) (rest []Tell) {
	for _, one := range a.Tells {
		if !slices.ContainsFunc(told, func(t Tell) bool { return t.N == one.N }) {
			rest = append(rest, one)
		}
	}
	return rest
}

// goesOn makes a step that was reported as completed go on, if its agent is still to be told something.
func (t *Team) goesOn(s *Session, report *workflow.Report) {
	for _, a := range t.Agents {
		if len(a.tellsFor(s.For)) > 0 && !report.Fails() && report.Again == 0 {
			report.Again = workflow.AgainLeast
		}
	}
}
