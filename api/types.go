package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Change is one fact of the journal as programs read it.
type Change struct {
	Seq     uint64       `json:"seq" doc:"Position in the journal, from 1, without gaps"`
	Time    time.Time    `json:"time" doc:"UTC"`
	Machine string       `json:"machine" doc:"The machine that made the change: control, session, crew, turn, run, team, question"`
	Entity  string       `json:"entity" example:"control/coder" doc:"The entity that changed: MACHINE/NAME"`
	Row     string       `json:"row" example:"C5" doc:"The row id of the transition"`
	From    string       `json:"from" doc:"State before"`
	To      string       `json:"to" doc:"State afterwards"`
	Trigger string       `json:"trigger" doc:"What happened"`
	Actor   change.Actor `json:"actor" doc:"The actor that caused it"`
	Data    Raw          `json:"data" doc:"The data of the change; null if it has none"`
}

// Raw is JSON that is passed through as it is.
type Raw json.RawMessage

// MarshalJSON returns the value unchanged; an empty value is null.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps the value unchanged.
func (r *Raw) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// Schema describes any JSON value.
func (Raw) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Any JSON value"}
}

// ChangeOf converts a journal change.
func ChangeOf(c journal.Change) Change {
	return Change{
		Seq: c.Seq, Time: c.Time.UTC(), Machine: c.Machine, Entity: c.Entity, Row: c.Row, From: c.From, To: c.To,
		Trigger: c.Trigger, Actor: c.Actor, Data: Raw(c.Data),
	}
}

// About reports whether a change is about what an agent did: its orders, sessions, questions and turns. Every change is
// about the empty name.
func (c Change) About(agent string) bool {
	if agent == "" || c.Entity == "control/"+agent || strings.HasPrefix(c.Entity+"/", "session/"+agent+"/") ||
		c.Actor.Kind == "agent" && c.Actor.ID == agent {
		return true
	}
	var about struct {
		Question struct {
			Question struct {
				Agent string `json:"agent"`
			} `json:"question"`
		} `json:"question"`
		Turn struct {
			Agent string `json:"agent"`
		} `json:"turn"`
	}
	if !strings.HasPrefix(c.Entity, "question/") && c.Machine != "turn" {
		return false
	}
	if json.Unmarshal(c.Data, &about) != nil {
		return false // unreadable data names no agent
	}
	return about.Question.Question.Agent == agent || about.Turn.Agent == agent
}

// Refusal explains why the present state does not allow a request.
type Refusal struct {
	Subject string   `json:"subject" doc:"What refuses: an agent, the team"`
	Event   string   `json:"event" doc:"The request"`
	State   string   `json:"state" doc:"The current state"`
	Row     string   `json:"row" doc:"The row id of the rule that forbids it; empty if no rule matches"`
	Reason  string   `json:"reason" doc:"In words"`
	Takes   []string `json:"takes" nullable:"false" doc:"The requests that are allowed now"`
}

func refusalOf(r *table.Refusal) *Refusal {
	wire := Refusal(*r)
	if wire.Takes == nil {
		wire.Takes = []string{}
	}
	return &wire
}

// Commanded is the answer to an order to an agent.
type Commanded struct {
	Seq   uint64         `json:"seq" doc:"The last change that the order made; it is durable"`
	Agent view.AgentView `json:"agent"`
}

// Held is the answer to hold and release.
type Held struct {
	Seq  uint64 `json:"seq"`
	Hold bool   `json:"hold"`
}

// Page is a part of the journal.
type Page struct {
	Changes []Change `json:"changes" nullable:"false"`
	Head    uint64   `json:"head" doc:"The last sequence of the whole journal"`
	Next    uint64   `json:"next,omitempty" doc:"More may fit: continue with it as after. Absent: this is all"`
}

// Facts is the answer with a session's facts, the newest last.
type Facts struct {
	Facts []driver.Fact `json:"facts" nullable:"false"`
}

// Status is the daemon's status.
type Status struct {
	Version     string        `json:"version"`
	PID         int           `json:"pid"`
	StartedAt   time.Time     `json:"started_at"`
	UptimeMS    int64         `json:"uptime_ms"`
	Dir         string        `json:"dir" doc:"The repository"`
	Journal     JournalStatus `json:"journal"`
	Subscribers int           `json:"subscribers" doc:"Current watchers of the journal"`
	ReloadFault string        `json:"reload_fault,omitempty" doc:"Why the daemon did not start with a changed fairlead.yaml and runs with the one before"`
}

// JournalStatus describes the journal.
type JournalStatus struct {
	Head    uint64 `json:"head" doc:"The last sequence"`
	Backend string `json:"backend" doc:"The journal's store"`
}

// Leader says whether the daemon that answers knows the present state of the team. Only in a team of several hosts it may not.
type Leader struct {
	Leads bool `json:"leads" doc:"This daemon leads the team, as far as it knows"`

	// NoLeaderSince is nil if the daemon leads or has a connection to the leader.
	NoLeaderSince *time.Time `json:"no_leader_since" doc:"Since then no leader answers this daemon; or it leads, and most engine hosts do not answer it. null: the state is the present one"`
	AsOf          *time.Time `json:"as_of" doc:"Until then this machine knows what happened; null: it is not known, or it has no journal"`

	OtherConfig *OtherConfig `json:"other_config,omitempty" doc:"Of an engine host: its fairlead.yaml is not the one with which the team is or was led, so it does not lead"`
	NoStore     string       `json:"no_store,omitempty" doc:"Of an engine host: why its server has no store now, as after the disk was full or when its files are damaged, and what it waits for"`
}

// OtherConfig is why an engine host does not lead that could otherwise.
type OtherConfig struct {
	Leader string `json:"leader" doc:"The host that leads or led, with another fairlead.yaml"`
	Ref    string `json:"ref,omitempty" doc:"Where the file of that host is in the repository here; empty: it has not arrived"`
}

// Stopping is the answer to down.
type Stopping struct {
	Stopping  bool   `json:"stopping"`
	Unwritten string `json:"unwritten,omitempty" doc:"What is not in the journal, because most of the engine hosts do not answer: the daemon ends all the same"`
}

// ReloadBody confirms a changed fairlead.yaml.
type ReloadBody struct {
	Governing string `json:"governing,omitempty" doc:"The hash of the changed files, as the inbox has it: a person has looked at the change and wants it"`
	Over      string `json:"over,omitempty" doc:"The hash of the files before the change; if they were not in force, the change is not confirmed by this"`
}

// Reloaded is the answer to reload. If something changed, the daemon restarts in its own process after
// this answer: connections end, and agents keep working.
type Reloaded struct {
	Changes []string `json:"changes" nullable:"false" doc:"One line for each agent, channel or section that was added, removed or changed; empty: nothing"`
	Head    uint64   `json:"head" doc:"The sequence of the last change before the restart; the restart is the first daemon_started after it"`
	Leader  string   `json:"leader,omitempty" doc:"The host that loads it, if another one can lead, too. If the first daemon_started is of another host, this one has lost the lead and the team does not have the change"`
}

// Output is a piece of a session's output, as text.
type Output struct {
	Offset int64  `json:"offset" doc:"Offset of the first byte"`
	End    int64  `json:"end" doc:"Offset after the last byte; resume here"`
	Text   string `json:"text" doc:"UTF-8; invalid bytes are replaced"`
}

// Ended is the last message of an output stream.
type Ended struct {
	Outcome string `json:"outcome" doc:"ok, failed, cannot_start, lost, withdrawn, cancelled, rate_limited, conversation_lost; empty if the session ended too long ago"`
	Why     string `json:"why"`
}

// Bye is the last message of a stream that ends before its subject.
type Bye struct {
	Reason string `json:"reason" enum:"stopping,failed"`
	Detail string `json:"detail" doc:"The reason in words, and what to do"`
}

// Encode writes JSON on one line, without escaping HTML; what a terminal obeys is escaped.
func Encode(v any) []byte {
	return encode.Shown(bytes.ToValidUTF8(encode.JSON(v), []byte("\uFFFD")))
}

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
	Line         uint64       `json:"line" doc:"Number of the change in the session, from 1"`
	At           time.Time    `json:"at" doc:"UTC"`
	Row          string       `json:"row" example:"D3" doc:"The row id of the transition; empty if another program wrote a line that matches no rule"`
	Type         string       `json:"type" doc:"The type in state.jsonl: session_init, conversation_start, input_waiting, transition, agent_seen, round_end, denied, file_written, conversation_end, unmatched, session_end"`
	From         string       `json:"from" doc:"The state before"`
	To           string       `json:"to" doc:"The state afterwards"`
	Shown        string       `json:"shown" example:"[MAIN → FULLSTACK_ENGINEER]" doc:"The transition as shown to people; empty if the state did not change"`
	Trigger      string       `json:"trigger" doc:"The reason, in words"`
	Conversation string       `json:"conversation" doc:"The conversation that it is about; empty: none"`
	Actor        change.Actor `json:"actor" doc:"The actor that reported it"`
	Foreign      bool         `json:"foreign" doc:"Another program wrote the line"`
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

// DispatchDialogue is one conversation in full.
type DispatchDialogue struct {
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
