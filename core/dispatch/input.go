package dispatch

import "github.com/fairlead-dev/fairlead/core/change"

// Input is an event that a dispatch decides.
type Input = change.Input[Event]

// Subject is what an input is about. Starts: a conversation may begin with it, or with an input that waits.
type Subject = change.Subject[Event]

// Start begins a dispatch (D1). Setup.Began is ignored.
type Start struct{ Setup Setup }

// UserInput is a person's input (D2). Match is the agent whose description matches the input; that agent
// gets it at once (D3). Without Match MAIN handles the input. If a conversation is open, the input waits; with
// Over, the open conversation is first closed as interrupted. Over is for an agent program that accepts an
// input and has not reported the end of the previous one.
type UserInput struct {
	Text  string
	Named []string
	Match *Match
	Over  bool
}

// Delegate gives an agent a task (D3), or lets an agent ask another one for help (D5). Conversation,
// here and below, is the conversation concerned, if the sender knows it: tasks are numbered per
// conversation, and the next one may have begun by now; 0: the open one.
type Delegate struct {
	Conversation int

	Agent   string
	Text    string // the request
	By      uint64 // the task that asks; 0: MAIN
	Call    string // the agent program's ID of the delegation; a repeated ID has no effect
	Trigger string // the reason, as text; empty: the agent's description
	Params  string // all parameters of the delegation, for the record
}

// Seen is a working agent with its program's ID for it. The ID is assigned to the oldest task of
// that agent without one. If there is none, the agent was called without Fairlead's knowledge, and
// gets a task now (D3).
type Seen struct{ Caller, Agent string }

// TaskEnded is the end of an agent's task, or its failure (D4, D5, D6). The task is found by Task,
// Caller or Call, whichever is given. Round only matters with Task: the end of an earlier round has
// no effect.
type TaskEnded struct {
	Conversation int

	Task   uint64
	Round  int
	Caller string
	Call   string
	OK     bool
	Result string
}

// MainEnded is the end of a round of MAIN, if a host runs an agent as MAIN (D7).
type MainEnded struct {
	Conversation int

	Round  int
	OK     bool
	Result string
}

// Respond closes the conversation: the user has the answer (D7). It is refused while agents have
// tasks. With Over it is accepted, and their results are no longer awaited.
type Respond struct {
	Conversation int

	Text    string
	Summary string // for messages.jsonl; empty: derived from the input
	Files   []File // in addition to the known ones
	Over    bool
}

// Deny records a tool call that was not allowed (D8, X10).
type Deny struct {
	Conversation int // 0: the open one, or none; an ended one is refused

	Caller     string
	Task       uint64 // for host fairlead; 0: see Caller
	Tool       string
	Call       string // the call, shortened, for people
	Row        string // D8 or X10
	Reason     string
	Delegate   string // the agent that has the permission, by its description; empty: none
	Capability string // the missing permission
	Afterwards bool   // the call was made without a question and judged afterwards
}

// Wrote records a file that an allowed tool call created (D9).
type Wrote struct {
	Conversation int

	Caller string
	Task   uint64
	File   File
}

// Message is the next message of the inbox (D6). Match is nil if no description matches; Ranking is
// the ranking, in JSON.
type Message struct {
	Name    string // of the file
	Text    string
	Match   *Match
	Ranking string
}

// Interrupt closes a conversation that will not be ended otherwise (D11).
type Interrupt struct {
	Conversation int

	Why string
}

// End ends the dispatch (D10).
type End struct{ Why string }

// Subject of each input is what it is about.
func (Start) Subject() Subject       { return Subject{Event: Started} }
func (UserInput) Subject() Subject   { return Subject{Event: InputCame, Starts: true} }
func (in Delegate) Subject() Subject { return Subject{Event: Delegated, Agent: in.Agent} }
func (in Seen) Subject() Subject     { return Subject{Event: CallerSeen, Agent: in.Agent} }
func (TaskEnded) Subject() Subject   { return Subject{Event: TaskOver, Starts: true} }
func (MainEnded) Subject() Subject   { return Subject{Event: RoundOver, Starts: true} }
func (Respond) Subject() Subject     { return Subject{Event: Responded, Starts: true} }
func (Deny) Subject() Subject        { return Subject{Event: CallDenied} }
func (Wrote) Subject() Subject       { return Subject{Event: FileWritten} }
func (Message) Subject() Subject     { return Subject{Event: MessageTaken, Starts: true} }
func (Interrupt) Subject() Subject   { return Subject{Event: Interrupted, Starts: true} }
func (End) Subject() Subject         { return Subject{Event: EndAsked} }
