package view

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/control"
)

// Plan is what recovery found and what it will do, computed before it acts.
type Plan struct {
	Rebooted bool `json:"rebooted"` // the machine was rebooted since the last daemon
	Hold     bool `json:"hold"`
	// a shim has obeyed this epoch, but the journal does not contain it: the journal is new or an old copy
	Behind uint64 `json:"behind,omitempty"`
	// by name: one for each agent that is configured or had a session; then run/ID and run/ID/STEP
	Lines []PlanLine `json:"plan"`
}

// PlanLine is what recovery does with one agent.
type PlanLine struct {
	Agent   string     `json:"agent"`
	Session string     `json:"session"` // the open session; empty: none was open
	Found   string     `json:"found"`   // state of that session: running, exited, lost, never_started, silent; empty: none was open
	Steps   []PlanStep `json:"steps"`   // in order
	Why     []Evidence `json:"why"`
}

// PlanStep is one action of recovery.
type PlanStep struct {
	Do      Deed   `json:"do"`
	Session string `json:"session,omitempty"` // the session that it concerns or starts
	Kind    string `json:"kind,omitempty"`    // of a session that is started: session, cleanup, foreign
	If      string `json:"if,omitempty"`      // condition of the step: the session's outcome is known only after its output is read
	Why     string `json:"why"`

	Conversation *PlanConversation `json:"conversation,omitempty"` // of a session that starts or continues; nil: its program has no conversations
}

// Deed is an action that recovery can take for an agent.
type Deed string

const (
	DoAdopt     Deed = "adopt"      // it outlived the last daemon, and is followed again
	DoTakeEnd   Deed = "take_end"   // it ended while no daemon ran: its last output is read and its end is journaled
	DoCountLost Deed = "count_lost" // its process is gone, and how it ended is unknown
	DoEnd       Deed = "end"        // it runs, but must end
	DoStart     Deed = "start"      // a session begins
	DoWithdraw  Deed = "withdraw"   // it was opened, never began, and is no longer needed
	DoAsk       Deed = "ask"        // its shim does not answer: it is asked until it does, and no other session starts
	DoWait      Deed = "wait"       // it failed before; the next attempt is later
	DoRest      Deed = "rest"       // no session runs, and none is started
	DoLeave     Deed = "leave"      // another program runs its loop; Fairlead owns only its file
	DoWaitFor   Deed = "wait_for"   // it runs, but the journal does not contain it: no other session starts
	// it ended, but the journal does not contain it: its folder is moved so that the name is free again, and nothing is lost
	DoPutAside Deed = "put_aside"
)

// Quiet reports whether there is nothing to recover: no session was open, and none begins.
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

// String formats the line for people.
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
		DoAdopt: "adopt " + s.Session, DoTakeEnd: "record how " + s.Session + " ended", DoCountLost: "count " + s.Session + " as lost",
		DoEnd: "end " + s.Session, DoStart: "start " + s.Session + kind, DoWithdraw: "withdraw " + s.Session,
		DoAsk: "ask " + s.Session + " until its shim answers", DoWait: "wait", DoRest: "leave at rest", DoLeave: "leave to its own loop",
		DoWaitFor: "wait until " + s.Session + " has ended", DoPutAside: "put " + s.Session + " aside",
	}
	text := words[s.Do] + ": " + s.Why
	if s.Conversation != nil {
		text += "; it " + s.Conversation.String()
	}
	return text
}
