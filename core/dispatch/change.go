package dispatch

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Body is what Apply needs, and the texts that belong to it. Now is absolute. From and To of its change are states: MAIN, QUEUE or an
// agent's name; From of the first change is empty. The folder's files and the journal store it.
type Body struct {
	Trigger string `json:"-"` // the reason, as text for state.jsonl; the trigger of the change is its event

	Setup *Setup `json:"setup,omitempty"` // of the first change only
	Now   Now    `json:"now"`

	Conversation int      `json:"conversation,omitempty"` // the conversation that it concerns; 0: none
	Entries      []Entry  `json:"entries,omitempty"`      // for dialogue.md, in order
	Summary      *Summary `json:"summary,omitempty"`      // for messages.jsonl: the conversation is closed
	Reply        *Reply   `json:"reply,omitempty"`        // mode response: for the answer file beside the message
	Denied       *Denied  `json:"denied,omitempty"`
	Aside        *Aside   `json:"aside,omitempty"` // mode response: no description matches
}

// JSONKey is the key in the journal's change of a dispatch folder.
func (*Body) JSONKey() string { return "body" }

// EntryKind is the kind of an entry in dialogue.md.
type EntryKind string

const (
	OfUser       EntryKind = "user"
	OfMain       EntryKind = "main"     // an answer of MAIN
	OfThought    EntryKind = "thinking" // what MAIN writes before it delegates, if that text is known
	OfDelegation EntryKind = "delegation"
	OfResult     EntryKind = "result"
	OfTransition EntryKind = "transition"
	OfDenial     EntryKind = "denied"
	OfNote       EntryKind = "note"
)

// Entry is a part of dialogue.md.
type Entry struct {
	Kind EntryKind `json:"kind"`
	Who  string    `json:"who,omitempty"` // the state that wrote it
	Text string    `json:"text"`
	More string    `json:"more,omitempty"` // parameters of a delegation
}

// Summary is a line of messages.jsonl (seed 002, Field Definitions). Time is the start of the
// conversation.
type Summary struct {
	Conversation int       `json:"conversation"`
	Began        time.Time `json:"began"`
	Text         string    `json:"text"`
	Files        []File    `json:"files,omitempty"`
	Agents       []string  `json:"agents,omitempty"`
}

// Reply is the result for a message of the inbox.
type Reply struct {
	Message string `json:"message"`
	Agent   string `json:"agent"`
	OK      bool   `json:"ok"`
	Text    string `json:"text"`
}

// Aside is a message that no description matches.
type Aside struct {
	Message string `json:"message"`
	Ranking string `json:"ranking,omitempty"`
}

// Denied is a tool call that was not allowed.
type Denied struct {
	By         string `json:"by"` // the state that made the call
	Tool       string `json:"tool"`
	Call       string `json:"call"`
	Row        string `json:"row"`
	Reason     string `json:"reason"`
	Delegate   string `json:"delegate_to,omitempty"`
	Capability string `json:"capability,omitempty"`
	Afterwards bool   `json:"afterwards,omitempty"` // the call was made without a question and judged afterwards
}

// Apply performs a change.
func (s *Dispatch) Apply(ch change.Change) {
	body := change.As[Body](ch.Body)
	if body.Setup != nil {
		s.Setup = *body.Setup
	}
	s.Now = body.Now
}
