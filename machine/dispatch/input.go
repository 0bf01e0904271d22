package dispatch

// Input is what a session can be told.
type Input interface{ dispatch() }

// Start begins a session (D1). Setup.Began is not looked at.
type Start struct{ Setup Setup }

// UserInput is what a person says (D2). Match: the agent whose description fits and which takes it at
// once (D3); nil: MAIN keeps it. Over: an open conversation is closed as interrupted first, as where
// an agent program takes an input without having said that it was done; else it waits.
type UserInput struct {
	Text  string
	Named []string
	Match *Match
	Over  bool
}

// Delegate puts an agent in charge (D3), or lets one ask another for help (D5). Conversation, here and
// in what follows: which one it is about, by who knows it: the tasks of each are counted from 1, and the
// next one may have begun by now; 0: the one that is open.
type Delegate struct {
	Conversation int

	Agent   string
	Text    string // what it is to do
	By      uint64 // the task that asks; 0: MAIN
	Call    string // the agent program's id of the delegation; the same one twice is one
	Trigger string // in words, for the line; empty: the agent's description
	Params  string // everything that the delegation said, for the record
}

// Seen is an agent at work, by the id that its program has for it: it is bound to the oldest task of
// that agent that nobody claimed. Where there is none it was called past us, and is in charge since
// now (D3).
type Seen struct{ Caller, Agent string }

// TaskEnded is an agent that is done, or failed (D4, D5, D6). It is found by Task, by Caller or by
// Call, whichever is given. Round is looked at with Task alone: an end of a round before is no news.
type TaskEnded struct {
	Conversation int

	Task   uint64
	Round  int
	Caller string
	Call   string
	OK     bool
	Result string
}

// MainEnded is MAIN done with a round, where a host has an agent be MAIN (D7).
type MainEnded struct {
	Conversation int

	Round  int
	OK     bool
	Result string
}

// Respond closes the conversation: the user has the answer (D7). Over: also while agents are at work,
// of whom nobody will hear any more; else that is refused.
type Respond struct {
	Conversation int

	Text    string
	Summary string // for messages.jsonl; empty: made of the input
	Files   []File // beside those that are known
	Over    bool
}

// Deny records a tool call that was not allowed (D8, X10).
type Deny struct {
	Conversation int // 0: the open one, or none; one that is over: a refusal

	Caller     string
	Task       uint64 // of host fairlead; 0: see Caller
	Tool       string
	Call       string // what it was to do, shortened, for people
	Row        string // D8 or X10
	Reason     string
	Delegate   string // the agent that could, by its description; empty: none fits
	Capability string // what is missing
	Afterwards bool   // the call was made without a question, and judged after it
}

// Wrote records a file that an allowed tool call made (D9).
type Wrote struct {
	Conversation int

	Caller string
	Task   uint64
	File   File
}

// Message is the next one of the inbox (D6). Match nil: nobody's description fits; Ranking says how
// they were ranked, in JSON.
type Message struct {
	Name    string // of the file
	Text    string
	Match   *Match
	Ranking string
}

// Interrupt closes a conversation that nobody will end any more (D11).
type Interrupt struct {
	Conversation int

	Why string
}

// End ends the session (D10).
type End struct{ Why string }

func (Start) dispatch()     {}
func (UserInput) dispatch() {}
func (Delegate) dispatch()  {}
func (Seen) dispatch()      {}
func (TaskEnded) dispatch() {}
func (MainEnded) dispatch() {}
func (Respond) dispatch()   {}
func (Deny) dispatch()      {}
func (Wrote) dispatch()     {}
func (Message) dispatch()   {}
func (Interrupt) dispatch() {}
func (End) dispatch()       {}
