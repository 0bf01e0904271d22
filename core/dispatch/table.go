package dispatch

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// Event is what happened to a dispatch. Together with the phase it determines the rule. The agent
// concerned is data, because there are as many as descriptions.
type Event string

const (
	Started          Event = "started"           // in mode orchestrator or interactive
	StartedQueue     Event = "started_queue"     // in mode response
	InputCame        Event = "input"             // no conversation is open
	InputWaits       Event = "input_waits"       // a conversation is open
	Delegated        Event = "delegated"         // by MAIN, or by a description that matches the input
	HelpAsked        Event = "help_asked"        // by an agent
	CallerSeen       Event = "caller_seen"       // the agent program's ID of a working agent
	RoundOver        Event = "round_over"        // an answer that is not the last: results follow
	TaskOver         Event = "task_over"         // the last open task
	TaskOverOthers   Event = "task_over_others"  // other tasks are open
	TaskOverAsker    Event = "task_over_asker"   // back to the agent that asked for help
	Responded        Event = "responded"         // the user has the answer
	CallDenied       Event = "call_denied"       // a tool call
	FileWritten      Event = "file_written"      // by a tool call that was allowed
	MessageTaken     Event = "message_taken"     // from the inbox
	MessageUnmatched Event = "message_unmatched" // no description matches
	MessageDone      Event = "message_done"
	Interrupted      Event = "interrupted" // a crash, a cancelled answer, or the end of the dispatch during a conversation
	EndAsked         Event = "end_asked"
)

// Act is a change that a rule makes to the data.
type Act string

const (
	TakeSetup  Act = "take_setup"
	Begin      Act = "begin_conversation" // with the next number
	Wait       Act = "keep_input"
	AddTask    Act = "add_task"
	NoteCaller Act = "note_caller"
	NextRound  Act = "next_round"
	DropTask   Act = "drop_task"
	CountDeny  Act = "count_denial"
	AddFile    Act = "add_file"
	Close      Act = "close_conversation"
	CloseAll   Act = "close_session"
)

func do(acts ...Act) []Act { return acts }

// Table contains all rules. The IDs are rows of SPEC.
var Table = table.Table[Phase, Event, Act]{
	None: {
		Started:      {ID: "D1", To: Ready, Do: do(TakeSetup)},
		StartedQueue: {ID: "D1", To: Queue, Do: do(TakeSetup), Why: "there is no MAIN in mode response"},
	},
	Ready: {
		InputCame:  {ID: "D2", To: Talking, Do: do(Begin)},
		CallDenied: {ID: "D8", To: Ready, Do: do(CountDeny)},
		EndAsked:   {ID: "D10", To: Closed, Do: do(CloseAll)},
	},
	Talking: {
		InputWaits:  {ID: "D2", To: Talking, Do: do(Wait), Why: "one conversation at a time; this input starts when the open one is closed"},
		Delegated:   {ID: "D3", To: Working, Do: do(AddTask)},
		RoundOver:   {ID: "D7", To: Talking, Do: do(NextRound), Why: "MAIN gets the results of what it delegated, then answers"},
		Responded:   {ID: "D7", To: Ready, Do: do(Close)},
		CallDenied:  {ID: "D8", To: Talking, Do: do(CountDeny)},
		FileWritten: {ID: "D9", To: Talking, Do: do(AddFile)},
		Interrupted: {ID: "D11", To: Ready, Do: do(Close)},
	},
	Working: {
		InputWaits:     {ID: "D2", To: Working, Do: do(Wait)},
		Delegated:      {ID: "D3", To: Working, Do: do(AddTask), Why: "a second agent in parallel; permissions depend on the caller"},
		CallerSeen:     {ID: "D3", To: Working, Do: do(NoteCaller)},
		HelpAsked:      {ID: "D5", To: Working, Do: do(AddTask)},
		RoundOver:      {ID: "D5", To: Working, Do: do(NextRound), Why: "the agent asked for help and gets the result"},
		TaskOver:       {ID: "D4", To: Talking, Do: do(DropTask)},
		TaskOverOthers: {ID: "D4", To: Working, Do: do(DropTask)},
		TaskOverAsker:  {ID: "D5", To: Working, Do: do(DropTask), Why: "back to the agent that asked"},
		Responded:      {ID: "D7", To: Ready, Do: do(Close), Why: "the program reports its answer, so agents without a seen end have ended"},
		CallDenied:     {ID: "D8", To: Working, Do: do(CountDeny)},
		FileWritten:    {ID: "D9", To: Working, Do: do(AddFile)},
		Interrupted:    {ID: "D11", To: Ready, Do: do(Close)},
	},
	Queue: {
		MessageTaken:     {ID: "D6", To: Serving, Do: do(Begin, AddTask)},
		MessageUnmatched: {ID: "D6", To: Queue, Why: "the message is kept with its ranking"},
		CallDenied:       {ID: "D8", To: Queue, Do: do(CountDeny)},
		EndAsked:         {ID: "D10", To: Closed, Do: do(CloseAll)},
	},
	Serving: {
		CallerSeen:  {ID: "D6", To: Serving, Do: do(NoteCaller)},
		MessageDone: {ID: "D6", To: Queue, Do: do(DropTask, Close)},
		CallDenied:  {ID: "D8", To: Serving, Do: do(CountDeny)},
		FileWritten: {ID: "D9", To: Serving, Do: do(AddFile)},
		Interrupted: {ID: "D11", To: Queue, Do: do(Close)},
	},
}
