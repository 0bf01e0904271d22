package view

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// Plan is what recovery found, and what it will do, before it does it.
type Plan struct {
	Rebooted bool       `json:"rebooted"` // the machine was started anew since the last daemon
	Hold     bool       `json:"hold"`
	Behind   uint64     `json:"behind,omitempty"` // shims have obeyed this epoch, and the journal does not know it: it is a new one, or an old copy
	Lines    []PlanLine `json:"plan"`             // by name, one for every agent that is configured or had a session; then run/ID and run/ID/STEP
}

// PlanLine is what is done with one agent.
type PlanLine struct {
	Agent   string     `json:"agent"`
	Session string     `json:"session"` // the one that was open; empty: none was
	Found   string     `json:"found"`   // what became of it: running, exited, lost, never_started, silent; empty: none was open
	Steps   []PlanStep `json:"steps"`   // in this order
	Why     []Evidence `json:"why"`
}

// PlanStep is one thing that recovery will do.
type PlanStep struct {
	Do      Deed   `json:"do"`
	Session string `json:"session,omitempty"` // whom it is done to, or who is started
	Kind    string `json:"kind,omitempty"`    // of a session that is started: session, cleanup, foreign
	If      string `json:"if,omitempty"`      // only then; what that session comes to is not known before it is read
	Why     string `json:"why"`

	Talk *PlanTalk `json:"conversation,omitempty"` // of a session that starts or goes on; nil: its program has none
}

// Deed is what recovery can do with an agent.
type Deed string

const (
	DoAdopt     Deed = "adopt"      // it outlived us, and is listened to again
	DoTakeEnd   Deed = "take_end"   // it ended while nobody looked: its last words are read, its end is journaled
	DoCountLost Deed = "count_lost" // it is gone, and nobody saw how
	DoEnd       Deed = "end"        // it runs, and must not any longer
	DoStart     Deed = "start"      // a session begins
	DoWithdraw  Deed = "withdraw"   // it was opened, never began, and is not wanted any more
	DoAsk       Deed = "ask"        // its shim does not answer: it is asked until it does, and nothing starts beside it
	DoWait      Deed = "wait"       // it failed before; the next try is later
	DoRest      Deed = "rest"       // nothing runs, and nothing is started
	DoLeave     Deed = "leave"      // its own loop decides; its file is all that is ours
	DoWaitFor   Deed = "wait_for"   // it runs, and the journal does not know it: nothing starts beside it
	DoPutAside  Deed = "put_aside"  // it is over, and the journal does not know it: its name is made free, nothing is lost
)

// Quiet says that there is nothing to recover: no session was open, and none begins.
func (l PlanLine) Quiet() bool {
	if l.Session != "" {
		return false
	}
	for _, step := range l.Steps {
		if step.Do != DoRest && step.Do != DoLeave {
			return false
		}
	}
	return !slices.ContainsFunc(l.Why, func(e Evidence) bool { return !e.Holds })
}

// String is the line for people.
func (l PlanLine) String() string {
	var text strings.Builder
	text.WriteString(l.Agent + ": ")
	for i, step := range l.Steps {
		if i > 0 {
			text.WriteString("; then ")
		}
		if step.If != "" {
			text.WriteString("if " + step.If + ", ")
		}
		text.WriteString(step.String())
	}
	return text.String()
}

func (s PlanStep) String() string {
	kind := ""
	if s.Kind != "" && s.Kind != string(control.Work) {
		kind = " (" + s.Kind + ")"
	}
	words := map[Deed]string{
		DoAdopt: "adopt " + s.Session, DoTakeEnd: "take in how " + s.Session + " ended", DoCountLost: "count " + s.Session + " as lost",
		DoEnd: "end " + s.Session, DoStart: "start " + s.Session + kind, DoWithdraw: "withdraw " + s.Session,
		DoAsk: "ask after " + s.Session + " until its shim answers", DoWait: "wait", DoRest: "leave at rest", DoLeave: "leave to its own loop",
		DoWaitFor: "wait until " + s.Session + " is over", DoPutAside: "put " + s.Session + " aside",
	}
	text := words[s.Do] + ": " + s.Why
	if s.Talk != nil {
		text += "; it " + s.Talk.String()
	}
	return text
}
