package api

import (
	"time"

	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/rank"
)

// DispatchSession is one session folder in a list (SPEC Dispatch).
type DispatchSession struct {
	Name          string     `json:"name" example:"20261121_153005" doc:"The folder's name; if two have the same name, a part of the path's hash is appended"`
	Path          string     `json:"path" doc:"The folder"`
	Mode          string     `json:"mode" doc:"orchestrator, interactive or response"`
	Host          string     `json:"host" doc:"What carries out its decisions: none (people and programs report what happens), claude (by hooks), fairlead (agents of fairlead.yaml)"`
	Phase         string     `json:"phase" doc:"ready, talking (MAIN has a conversation), working, queue and serving (mode response), closed"`
	State         string     `json:"state" doc:"The current state: MAIN, QUEUE or an agent's name"`
	Began         *time.Time `json:"began" doc:"UTC; null if it cannot be read"`
	ChangedAt     *time.Time `json:"changed_at" doc:"When its history last grew"`
	Ended         string     `json:"ended" doc:"Why it is closed; empty while it is open"`
	Conversation  string     `json:"conversation" doc:"The open conversation: conv_002; empty: none"`
	Conversations int        `json:"conversations" doc:"The number of conversations so far"`
	Waiting       int        `json:"waiting" doc:"Inputs that wait for the end of the open conversation"`
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
	Line         uint64    `json:"line" doc:"Number of the change in the session, from 1"`
	At           time.Time `json:"at" doc:"UTC"`
	Row          string    `json:"row" example:"D3" doc:"The row id of the transition; empty if another program wrote a line that matches no rule"`
	Type         string    `json:"type" doc:"The type in state.jsonl: session_init, conversation_start, input_waiting, transition, agent_seen, round_end, denied, file_written, conversation_end, unmatched, session_end"`
	From         string    `json:"from" doc:"The state before"`
	To           string    `json:"to" doc:"The state afterwards"`
	Shown        string    `json:"shown" example:"[MAIN → FULLSTACK_ENGINEER]" doc:"The transition as shown to people; empty if the state did not change"`
	Trigger      string    `json:"trigger" doc:"The reason, in words"`
	Conversation string    `json:"conversation" doc:"The conversation that it is about; empty: none"`
	Actor        Actor     `json:"actor" doc:"The actor that reported it"`
	Foreign      bool      `json:"foreign" doc:"Another program wrote the line"`
}

// DispatchDenial is a tool call that was denied, and what happened next.
type DispatchDenial struct {
	At           time.Time     `json:"at"`
	Conversation string        `json:"conversation"`
	By           string        `json:"by" doc:"The state that made the call"`
	Tool         string        `json:"tool"`
	Call         string        `json:"call" doc:"The call, shortened"`
	Row          string        `json:"row" doc:"D8: MAIN may not; D9: this agent may not; X10: an agent may not lift its own restrictions"`
	Reason       string        `json:"reason"`
	Delegate     string        `json:"delegate_to" doc:"The agent that could, by its description; empty: none fits"`
	Capability   string        `json:"capability" doc:"What is missing"`
	Then         *DispatchLine `json:"then" doc:"The next transition of that conversation; null: there was none"`
}

// DispatchAgent is an agent of a session, and when it should be called.
type DispatchAgent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file" doc:"The file of its description"`
}

// DispatchTask is an agent's current task.
type DispatchTask struct {
	ID    uint64    `json:"id"`
	Agent string    `json:"agent"`
	By    string    `json:"by" doc:"The agent that asked for it; empty: MAIN, or the input itself"`
	Text  string    `json:"text" doc:"The task"`
	Began time.Time `json:"began"`
}

// DispatchWaiting is an input that arrived while a conversation was open.
type DispatchWaiting struct {
	Text  string    `json:"text"`
	Agent string    `json:"agent" doc:"The agent whose description fits; empty: none"`
	At    time.Time `json:"at"`
}

// DispatchFile is a file that a conversation made.
type DispatchFile struct {
	Path    string `json:"path"`
	Output  string `json:"output" doc:"Its name below outputs/; empty: the file is elsewhere, at a place that the input named"`
	Summary string `json:"summary"`
}

// DispatchConversation is one input with its answer, in a list.
type DispatchConversation struct {
	N         int            `json:"n" doc:"Its number"`
	ID        string         `json:"id" example:"conv_002"`
	Began     *time.Time     `json:"began"`
	Summary   string         `json:"summary"`
	Open      bool           `json:"open"`
	Agents    []string       `json:"agents" nullable:"false" doc:"The agents that were in charge of it, besides MAIN"`
	Files     []DispatchFile `json:"files" nullable:"false"`
	MoreFiles int            `json:"more_files" doc:"Number of further files"`
}

// DispatchRanking explains why an input went to an agent.
type DispatchRanking struct {
	Input   string       `json:"input" doc:"Shortened"`
	Ranking rank.Ranking `json:"ranking"`
}

// DispatchLayer is one of the mechanisms that enforce MAIN's permissions.
type DispatchLayer struct {
	Name  string `json:"name" doc:"rules, sandbox, check"`
	Holds bool   `json:"holds"`
	Text  string `json:"text" doc:"How, or why not"`
}

// DispatchView is one session in full.
type DispatchView struct {
	Session       DispatchSession        `json:"session"`
	Lines         []DispatchLine         `json:"lines" nullable:"false" doc:"The history: the newest 200 lines, oldest first"`
	LinesLeftOut  int                    `json:"lines_left_out" doc:"Older ones, in state.jsonl"`
	Permissions   policy.Rules           `json:"permissions" doc:"The permissions of the current state"`
	Agents        []DispatchAgent        `json:"agents" nullable:"false" doc:"The agents as they were described when the session started"`
	AtWork        []DispatchTask         `json:"at_work" nullable:"false" doc:"Current tasks, the newest last"`
	Conversations []DispatchConversation `json:"conversations" nullable:"false" doc:"The newest first; 200 at most"`
	Denials       []DispatchDenial       `json:"denials" nullable:"false" doc:"The newest first; 50 at most"`
	Waiting       []DispatchWaiting      `json:"waiting" nullable:"false" doc:"In line"`
	Ranking       *DispatchRanking       `json:"ranking" doc:"Of the last input; null where nothing was said"`
	Layers        []DispatchLayer        `json:"layers" nullable:"false" doc:"Host fairlead: the mechanisms that enforced MAIN's permissions in its last session"`
	WaitsFor      []string               `json:"waits_for" nullable:"false" doc:"Host fairlead: what an agent waits for before it can begin"`
	Notes         []string               `json:"notes" nullable:"false" doc:"Remarks about the session's files"`
}

// DispatchOutput is a file below a conversation's outputs.
type DispatchOutput struct {
	Name      string    `json:"name" doc:"Below outputs/"`
	Bytes     int64     `json:"bytes"`
	ChangedAt time.Time `json:"changed_at"`
}

// DispatchTalk is one conversation in full.
type DispatchTalk struct {
	DispatchConversation
	Dialogue        string           `json:"dialogue" doc:"The text of dialogue.md: what was said, thought and done"`
	DialogueLeftOut int64            `json:"dialogue_left_out" doc:"Bytes of its beginning that are not here"`
	Outputs         []DispatchOutput `json:"outputs" nullable:"false"`
	OutputsLeftOut  int              `json:"outputs_left_out"`
	Notes           []string         `json:"notes" nullable:"false"`
}

// DispatchInputResult is the answer to an input.
type DispatchInputResult struct {
	ConversationID string       `json:"conversation_id" doc:"The conversation that the input began; empty: the input waits"`
	State          string       `json:"state" doc:"The state that handles it"`
	Workspace      string       `json:"workspace" doc:"The folder for files"`
	Waiting        int          `json:"waiting" doc:"Waiting inputs including this one; 0: it has begun"`
	Now            DispatchView `json:"now"`
}

// PolicyVerdict says whether a state may make a tool call.
type PolicyVerdict struct {
	Decision   string `json:"decision" enum:"allow,deny"`
	Reason     string `json:"reason" doc:"For a denial: what is missing and what to do. For an allowed call: what was not understood, or empty"`
	DelegateTo string `json:"delegate_to" doc:"For a denial: the agent whose description fits best; empty: none fits"`
	Row        string `json:"row" doc:"D8: MAIN may not; D9: the agent's permissions decide; D10: the session is closed; X10: no model may. Empty: MAIN may"`
}
