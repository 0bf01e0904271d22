package view

import (
	"strings"
)

// PlanTalk says with which conversation of its program a session goes on.
type PlanTalk struct {
	Do      string   `json:"do"`                // resume, fresh, or ask: a person is asked which of both
	ID      string   `json:"id,omitempty"`      // of the conversation that it goes on with, or is asked about
	If      string   `json:"if,omitempty"`      // resumed only then, else it begins a new one: how it ended is not known yet
	Differs []string `json:"differs,omitempty"` // in what it would go on otherwise than it began; ask
	Why     string   `json:"why,omitempty"`     // of fresh
}

const (
	AskFirst = "ask"
	ifCutOff = "it was cut off"
)

// String is for people, to stand behind what is done.
func (t *PlanTalk) String() string {
	switch {
	case t.Do == GoOn && t.If != "":
		return "goes on with conversation " + t.ID + " if " + t.If + ", else begins a new one"
	case t.Do == GoOn:
		return "goes on with conversation " + t.ID
	case t.Do == AskFirst:
		return "asks a person first whether to go on with conversation " + t.ID + ", which would go on otherwise than it began: " + strings.Join(t.Differs, "; ")
	}
	return "begins a new conversation: " + t.Why
}

// ifCutOff is what follows of an end that is not read yet: one who said himself that he failed was
// not cut off.
func (t *PlanTalk) IfCutOff() *PlanTalk {
	if t == nil || t.Do != GoOn {
		return t
	}
	return &PlanTalk{Do: GoOn, ID: t.ID, If: ifCutOff}
}
