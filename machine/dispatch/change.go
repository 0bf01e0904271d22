package dispatch

import "time"

// Change is one fact that Decide found. It is what the folder's files and the journal keep.
type Change struct {
	At      time.Time
	Row     string
	From    string // the state before: MAIN, QUEUE or an agent's name; empty: there was none
	To      string // the state after
	Trigger string // what for, in words, as state.jsonl says it
	Event   Event
	Body    Body
}

// Body is what Apply needs, and what was said with it. Now is absolute.
type Body struct {
	Setup *Setup `json:"setup,omitempty"` // of the first change alone
	Now   Now    `json:"now"`

	Conversation int      `json:"conversation,omitempty"` // that it is about; 0: none
	Entries      []Entry  `json:"entries,omitempty"`      // for dialogue.md, in order
	Summary      *Summary `json:"summary,omitempty"`      // for messages.jsonl: the conversation is closed
	Reply        *Reply   `json:"reply,omitempty"`        // mode response: for the file beside the message
	Denied       *Denied  `json:"denied,omitempty"`
	Aside        *Aside   `json:"aside,omitempty"` // mode response: nobody's description fits
}

// EntryKind is what a part of dialogue.md is.
type EntryKind string

const (
	OfUser       EntryKind = "user"
	OfMain       EntryKind = "main"     // what MAIN answers
	OfThought    EntryKind = "thinking" // before it delegates, where it is given
	OfDelegation EntryKind = "delegation"
	OfResult     EntryKind = "result"
	OfTransition EntryKind = "transition"
	OfDenial     EntryKind = "denied"
	OfNote       EntryKind = "note"
)

// Entry is a part of dialogue.md.
type Entry struct {
	Kind EntryKind `json:"kind"`
	Who  string    `json:"who,omitempty"` // a state
	Text string    `json:"text"`
	More string    `json:"more,omitempty"` // a delegation's parameters
}

// Summary is a line of messages.jsonl (seed 002, Field Definitions). Time: when the conversation began.
type Summary struct {
	Conversation int       `json:"conversation"`
	Began        time.Time `json:"began"`
	Text         string    `json:"text"`
	Files        []File    `json:"files,omitempty"`
	Agents       []string  `json:"agents,omitempty"`
}

// Reply is the result of a message of the inbox.
type Reply struct {
	Message string `json:"message"`
	Agent   string `json:"agent"`
	OK      bool   `json:"ok"`
	Text    string `json:"text"`
}

// Aside is a message for which there is nobody.
type Aside struct {
	Message string `json:"message"`
	Ranking string `json:"ranking,omitempty"`
}

// Denied is a tool call that was not allowed.
type Denied struct {
	By         string `json:"by"` // the state that it came from
	Tool       string `json:"tool"`
	Call       string `json:"call"`
	Row        string `json:"row"`
	Reason     string `json:"reason"`
	Delegate   string `json:"delegate_to,omitempty"`
	Capability string `json:"capability,omitempty"`
	Afterwards bool   `json:"afterwards,omitempty"` // the call was made without a question, and judged after it
}

// Apply makes a change true.
func (s *Dispatch) Apply(ch Change) {
	if ch.Body.Setup != nil {
		s.Setup = *ch.Body.Setup
	}
	s.Now = ch.Body.Now
}
