package view

import (
	"strings"
)

// A resumed conversation keeps its conditions: the same program with the same arguments, in the same
// folder, with the same model and mode, and open in no other process. If a condition has changed, a
// person decides whether to resume; meanwhile the session keeps its slot and waits.

// The answers to the question whether to resume a conversation in spite of changed conditions.
const (
	GoOn = "resume" // with the earlier conversation
	Anew = "fresh"  // with a new conversation
)

// PlanConversation says which conversation of its program a session continues.
type PlanConversation struct {
	Do string `json:"do"`           // resume, fresh, or ask: a person chooses between the two
	ID string `json:"id,omitempty"` // of the conversation to resume, or that the question is about
	// condition for resuming, if it is not known yet how the session ended; otherwise a new conversation begins
	If      string   `json:"if,omitempty"`
	Differs []string `json:"differs,omitempty"` // for ask: the conditions that have changed since the conversation began
	Why     string   `json:"why,omitempty"`     // for fresh
}

const (
	AskFirst = "ask"
	ifCutOff = "it was cut off"
)

// String formats the decision as the end of a sentence for people.
func (t *PlanConversation) String() string {
	switch {
	case t.Do == GoOn && t.If != "":
		return "resumes conversation " + t.ID + " if " + t.If + ", else begins a new one"
	case t.Do == GoOn:
		return "resumes conversation " + t.ID
	case t.Do == AskFirst:
		return "first asks a person whether to resume conversation " + t.ID + ", because its conditions have changed: " +
			strings.Join(t.Differs, "; ")
	}
	return "begins a new conversation: " + t.Why
}

// IfCutOff makes resuming conditional on an end that has not been read yet: a session that reported
// its own failure was not cut off.
func (t *PlanConversation) IfCutOff() *PlanConversation {
	if t == nil || t.Do != GoOn {
		return t
	}
	return &PlanConversation{Do: GoOn, ID: t.ID, If: ifCutOff}
}
