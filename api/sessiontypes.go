package api

import (
	"time"

	"github.com/fairlead-dev/fairlead/policy"
)

// DispatchSession is one session folder in a list (SPEC Dispatch).
type DispatchSession struct {
	Name          string     `json:"name" example:"20261121_153005" doc:"The folder's name; two of one name have a piece of the path's hash behind it"`
	Path          string     `json:"path" doc:"The folder"`
	Mode          string     `json:"mode" doc:"orchestrator, interactive or response"`
	Host          string     `json:"host" doc:"Who carries out what it decides: none (people and programs say what happens), claude (by hooks), fairlead (agents of fairlead.yaml)"`
	Phase         string     `json:"phase" doc:"ready, talking (MAIN has a conversation), working, queue and serving (mode response), closed"`
	State         string     `json:"state" doc:"Who is in charge: MAIN, QUEUE or an agent's name"`
	Began         *time.Time `json:"began" doc:"UTC; null where it cannot be read"`
	ChangedAt     *time.Time `json:"changed_at" doc:"When its history last grew"`
	Ended         string     `json:"ended" doc:"Why it is closed; empty while it is not"`
	Conversation  string     `json:"conversation" doc:"The one that is open: conv_002; empty: none"`
	Conversations int        `json:"conversations" doc:"How many were begun"`
	Waiting       int        `json:"waiting" doc:"Inputs that wait for the end of the open one"`
	Denied        int        `json:"denied" doc:"Tool calls that were not allowed, so far"`
	Fault         string     `json:"fault" doc:"Why its history cannot be read; then most of the rest is empty"`
}

// DispatchSessions is the answer with every session of the repository.
type DispatchSessions struct {
	Sessions []DispatchSession `json:"sessions" nullable:"false" doc:"The open ones first, then the newest"`
	LeftOut  int               `json:"left_out" doc:"Older ones that are not listed"`
}

// DispatchLine is one line of a session's history.
type DispatchLine struct {
	Line         uint64    `json:"line" doc:"Which change of the session it is, from 1"`
	At           time.Time `json:"at" doc:"UTC"`
	Row          string    `json:"row" example:"D3" doc:"The rule that made it; empty where another program wrote a line that no rule knows"`
	Type         string    `json:"type" doc:"As state.jsonl has it: session_init, conversation_start, input_waiting, transition, agent_seen, round_end, denied, file_written, conversation_end, unmatched, session_end"`
	From         string    `json:"from" doc:"Who was in charge before"`
	To           string    `json:"to" doc:"Who is in charge afterwards"`
	Shown        string    `json:"shown" example:"[MAIN → FULLSTACK_ENGINEER]" doc:"As people are shown it, where another one is in charge; empty else"`
	Trigger      string    `json:"trigger" doc:"What for, in words"`
	Conversation string    `json:"conversation" doc:"That it is about; empty: none"`
	Actor        Actor     `json:"actor" doc:"Who told the session so"`
	Foreign      bool      `json:"foreign" doc:"Another program wrote the line"`
}

// DispatchDenial is a tool call that was not allowed, and what was done instead.
type DispatchDenial struct {
	At           time.Time     `json:"at"`
	Conversation string        `json:"conversation"`
	By           string        `json:"by" doc:"The state that it came from"`
	Tool         string        `json:"tool"`
	Call         string        `json:"call" doc:"What it was to do, shortened"`
	Row          string        `json:"row" doc:"D8: MAIN may not; D9: this agent may not; X10: nobody releases himself"`
	Reason       string        `json:"reason"`
	Delegate     string        `json:"delegate_to" doc:"The agent that could, by its description; empty: none fits"`
	Capability   string        `json:"capability" doc:"What is missing"`
	Then         *DispatchLine `json:"then" doc:"The next transition of that conversation; null: there was none"`
}

// DispatchAgent is a state beside MAIN, and when it is to be called.
type DispatchAgent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file" doc:"Where it was found"`
}

// DispatchTask is an agent in charge of something.
type DispatchTask struct {
	ID    uint64    `json:"id"`
	Agent string    `json:"agent"`
	By    string    `json:"by" doc:"The agent that asked for it; empty: MAIN, or the input itself"`
	Text  string    `json:"text" doc:"What it is to do"`
	Began time.Time `json:"began"`
}

// DispatchWaiting is an input that came while another one was open.
type DispatchWaiting struct {
	Text  string    `json:"text"`
	Agent string    `json:"agent" doc:"Whose description fits; empty: nobody's"`
	At    time.Time `json:"at"`
}

// DispatchFile is a file that a conversation made.
type DispatchFile struct {
	Path    string `json:"path"`
	Output  string `json:"output" doc:"Its name below outputs/, where it lies there; empty: elsewhere, since the input named that place"`
	Summary string `json:"summary"`
}

// DispatchConversation is one input with its answer, in a list.
type DispatchConversation struct {
	N         int            `json:"n" doc:"Its number"`
	ID        string         `json:"id" example:"conv_002"`
	Began     *time.Time     `json:"began"`
	Summary   string         `json:"summary"`
	Open      bool           `json:"open"`
	Agents    []string       `json:"agents" nullable:"false" doc:"Who was in charge of it, beside MAIN"`
	Files     []DispatchFile `json:"files" nullable:"false"`
	MoreFiles int            `json:"more_files" doc:"That were made beside these"`
}

// DispatchRanking is why an input went to whom it went.
type DispatchRanking struct {
	Input   string         `json:"input" doc:"Shortened"`
	Ranking policy.Ranking `json:"ranking"`
}

// DispatchLayer is one of the things that keep MAIN from what it may not do.
type DispatchLayer struct {
	Name  string `json:"name" doc:"rules, sandbox, check"`
	Holds bool   `json:"holds"`
	Text  string `json:"text" doc:"How, or why not"`
}

// DispatchView is one session in full.
type DispatchView struct {
	Session       DispatchSession        `json:"session"`
	Lines         []DispatchLine         `json:"lines" nullable:"false" doc:"How it came to be as it is: the oldest first, the newest 200"`
	LinesLeftOut  int                    `json:"lines_left_out" doc:"Older ones, in state.jsonl"`
	Permissions   policy.Rules           `json:"permissions" doc:"Of the state that it is in"`
	Agents        []DispatchAgent        `json:"agents" nullable:"false" doc:"The states beside MAIN, as they were found when it began"`
	AtWork        []DispatchTask         `json:"at_work" nullable:"false" doc:"The one that began last is last"`
	Conversations []DispatchConversation `json:"conversations" nullable:"false" doc:"The newest first; 200 at most"`
	Denials       []DispatchDenial       `json:"denials" nullable:"false" doc:"The newest first; 50 at most"`
	Waiting       []DispatchWaiting      `json:"waiting" nullable:"false" doc:"In line"`
	Ranking       *DispatchRanking       `json:"ranking" doc:"Of the last input; null where nothing was said"`
	Layers        []DispatchLayer        `json:"layers" nullable:"false" doc:"Host fairlead: what held MAIN to its permissions in its last session"`
	WaitsFor      []string               `json:"waits_for" nullable:"false" doc:"Host fairlead: what keeps an agent from beginning its work"`
	Notes         []string               `json:"notes" nullable:"false" doc:"What people should know of its files"`
}

// DispatchOutput is a file below a conversation's outputs.
type DispatchOutput struct {
	Name      string    `json:"name" doc:"Below outputs/"`
	Bytes     int64     `json:"bytes"`
	ChangedAt time.Time `json:"changed_at"`
}

// DispatchTalk is one conversation in full.
type DispatchTalk struct {
	N               int              `json:"n" doc:"Its number"`
	ID              string           `json:"id" example:"conv_002"`
	Began           *time.Time       `json:"began"`
	Summary         string           `json:"summary"`
	Open            bool             `json:"open"`
	Agents          []string         `json:"agents" nullable:"false"`
	Files           []DispatchFile   `json:"files" nullable:"false"`
	MoreFiles       int              `json:"more_files"`
	Dialogue        string           `json:"dialogue" doc:"What stands in dialogue.md, as text: whatever was said, thought and done"`
	DialogueLeftOut int64            `json:"dialogue_left_out" doc:"Bytes of its beginning that are not here"`
	Outputs         []DispatchOutput `json:"outputs" nullable:"false"`
	OutputsLeftOut  int              `json:"outputs_left_out"`
	Notes           []string         `json:"notes" nullable:"false"`
}

// DispatchTold is the answer to an input.
type DispatchTold struct {
	ConversationID string       `json:"conversation_id" doc:"That the input began; empty: it waits"`
	State          string       `json:"state" doc:"Who is in charge of it"`
	Workspace      string       `json:"workspace" doc:"Where files go"`
	Waiting        int          `json:"waiting" doc:"Inputs in line, this one among them; 0: it has begun"`
	Now            DispatchView `json:"now"`
}

// PolicyVerdict says whether a state may make a tool call.
type PolicyVerdict struct {
	Decision   string `json:"decision" enum:"allow,deny"`
	Reason     string `json:"reason" doc:"Of a denial: what is missing and what to do; of an allowance: what was not understood, or empty"`
	DelegateTo string `json:"delegate_to" doc:"Of a denial: the agent whose description fits best; empty: none fits"`
	Row        string `json:"row" doc:"D8: MAIN may not; D9: what agents may decides; D10: the session is closed; X10: no model may. Empty: MAIN may"`
}
