// Package driver is the interface between Fairlead and the programs it runs.
//
// A driver translates between the two. For the team, every agent does the same things: it says and
// thinks something, calls a tool, asks for permission, reports usage, and stops. The driver maps
// them to the protocol of one program. It starts nothing itself: Driver.Launch describes how a process is
// started, and Converse reads the process's output (Wire.Output, from any offset, as often as
// needed) and sends it prompts and answers. A driver keeps no state that could be lost: after a
// restart, reading continues at the offset of the last known fact.
//
//	bytes ──▶ ReadLines ──▶ Facts ──▶ the team
//	bytes ◀── Wire.Send ◀── Prompt, Answer, Cancel
//
// An agent's output is untrusted input. Long lines are cut, text is made valid UTF-8, and what
// cannot be understood becomes a Faulted fact: it is kept and shown, and never ends the session.
//
// The one promise: the same bytes produce the same facts, however they are split into pieces and from
// whichever fact reading resumes.
package driver

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Agent is the part of an agent's configuration that a driver needs.
type Agent struct {
	Name      string
	Command   []string // exec, acp, claude, codex: the program and its arguments
	Script    string   // script: absolute path of the script file
	Workspace string   // absolute; the agent's working directory
	Env       []string // K=V, references already resolved: never log or journal it
	Model     string
	Mode      string // acp, claude, codex: the program's own permission mode; empty: the one that asks for permission
	MCP       MCP    // address of the team's tools; zero: not offered

	// OtherHost is the host for which the launch is prepared, if it is not this machine. Resolve finishes the launch there. Then
	// the launch has nothing of this machine's environment, and this machine is not looked at. Empty: this machine.
	OtherHost string
}

// ToolServer is the name under which agent programs see the tools of Fairlead: mcp__fairlead__turn_complete.
const ToolServer = "fairlead"

// MCP is the address of the team's tools for one session. The token identifies the agent and the
// session. It is only passed in the environment of the process.
type MCP struct {
	URL   string   // http://127.0.0.1:7466/mcp; empty: only Stdio reaches them, as on another host
	Token string   // a secret
	Stdio []string // a command that serves MCP on standard input and output, for programs that support nothing else
}

// Session is one execution of an agent's program.
type Session struct {
	ID      string // coder-17
	Kind    Kind
	Prompt  string // what it is to do; a command receives it only in a Turn, or if PromptIsTask is set
	Attempt int

	Images []string // paths of images that belong to the prompt; a program that takes no images gets the paths in the prompt only

	PromptIsTask bool // the prompt is the task: a program that takes no prompts receives it on standard input
	// Resume is the program's own ID of the conversation to resume (Conversation.ID of an earlier
	// session); empty: a new conversation. Drivers that cannot resume ignore it.
	Resume string
	Again  string // replaces Prompt if a conversation is resumed; empty: Prompt is used

	Channel string // of a Turn: the channel of the first turn; otherwise empty
	Turn    uint64 // of a Turn: the number of the first turn; 0: the first answer needs no turn
}

// Kind is the purpose of a session.
type Kind string

const (
	Work    Kind = "session"
	Cleanup Kind = "cleanup" // seed 000: run_cleanup
	Foreign Kind = "foreign" // a program that runs the loop of seed 000 itself
	Turn    Kind = "turn"    // turns in channels: the prompt is the first one, further ones may follow
	Lead    Kind = "lead"    // the session of the lead: it receives summons, wake-ups and its channels' turns, and keeps running
)

// FactKind is the kind of a fact.
type FactKind string

const (
	Said            FactKind = "said"
	Thought         FactKind = "thought"
	ToolCalled      FactKind = "tool_called"
	PermissionAsked FactKind = "permission_asked" // Fact.Ask holds the options
	UsageReported   FactKind = "usage_reported"
	Listening       FactKind = "listening" // every prompt is answered; the agent waits for the next one
	Stopped         FactKind = "stopped"
	Faulted         FactKind = "faulted" // a line that could not be understood; kept and shown, does not end the session

	// the program received the answer; Fact.Ask.ID is the question, Fact.Text the option
	PermissionAnswered  FactKind = "permission_answered"
	PermissionWithdrawn FactKind = "permission_withdrawn" // the program no longer needs an answer; Fact.Ask.ID
	ConversationNamed   FactKind = "conversation_named"   // the program's own ID of the conversation, also after a change
	RateLimited         FactKind = "rate_limited"         // the provider's rate limit applies until Fact.Until
	// the provider does not answer, and the program waits for it; Fact.Provider says why
	ProviderAway FactKind = "provider_away"
	// the agent has read a text of Conversation.Steer; Fact.ID, and the text in Fact.Text
	TextRead FactKind = "text_read"
)

// Fact is one thing that an agent did, in the same form for all drivers, and for the API. A line of a process that speaks
// process/driver/speech is one, too: without the offset, and with the fields of its kind only.
type Fact struct {
	Kind FactKind `json:"type" doc:"The kind of fact: said, thought, tool_called and so on; it determines the other fields"`

	// Offset is the number of bytes of output up to and including this fact; reading may resume here. If
	// one line produces several facts, only the last one has the offset of the line's end. The others
	// have the offset of its beginning, so that a reader that stops between them receives the whole line
	// again and loses nothing.
	Offset int64 `json:"offset,omitempty" doc:"Bytes of output up to and including this fact"`

	// valid UTF-8, without the line ending; at most slightly longer than LineBytesMax
	Text string `json:"text,omitempty" doc:"Of permission_answered: the chosen option"`
	Part bool   `json:"part,omitempty" doc:"Of said and thought: the text continues in the next fact of this kind"`
	// If it is not empty, a text that was said is not the agent's own words, and markers in it do not count.
	Tool string `json:"tool,omitempty" doc:"The tool that was called, or whose output this is"`

	Ask // permission_asked; of permission_answered, permission_withdrawn and text_read the ID

	// Args is a JSON object: the arguments of a tool, in Claude Code's vocabulary if the tool is one of
	// its tools (file_path, content, command, …). Cut names the arguments that are incomplete. It
	// contains "args" or "paths" if some of those are missing completely, and "tool" if the program does
	// not name the tool. Policies must not allow a call by an incomplete argument.
	Args json.RawMessage `json:"args,omitempty" doc:"The arguments of the tool; not in an answer of the API"`
	Cut  []string        `json:"cut,omitempty" doc:"The arguments that are incomplete"`

	change.Usage // usage_reported: since the last report, no running total

	// Input is how many bytes of standard input the agent had received by then; 0: unknown. If more was
	// written, the rest is not answered yet, and another Listening follows.
	Input int64 `json:"input,omitempty" doc:"Of listening: bytes of input that the agent had received"`

	*Stop       // stopped; otherwise nil
	Context int `json:"context_percent,omitempty" doc:"Of usage_reported and stopped: how full the model's context is, in percent; left out if unknown"`

	Until        time.Time    `json:"until,omitzero" doc:"Of rate_limited: when the limit resets; left out if unknown"`
	Provider     ProviderCode `json:"provider,omitempty" doc:"Of provider_away: why the provider does not answer"`
	Conversation *Conversed   `json:"conversation,omitempty" doc:"Of conversation_named"`

	// Raw is the JSON it was made from; valid JSON or nil. A reader has it from the line; what the line has is the message of
	// the agent's program: unchanged or, if that is too long or not JSON, a string with its beginning.
	Raw json.RawMessage `json:"raw,omitempty" doc:"What it was made from; not in an answer of the API"`
}

// Conversed describes the conversation of a session, as the program reports it.
type Conversed struct {
	ID      string `json:"id"`                // for Session.Resume
	Model   string `json:"model,omitempty"`   // in the program's own words
	Mode    string `json:"mode,omitempty"`    // in the program's own words
	Program string `json:"program,omitempty"` // its name and version
	Resumed bool   `json:"resumed,omitempty"` // it continues an earlier conversation

	// Enforced describes the program's restrictions in one line for people: "asks before it writes and
	// runs", or "asks nothing: only what its own settings forbid".
	Enforced string `json:"enforced,omitempty"`
}

// ProviderCode is why a provider has not answered.
type ProviderCode string

const (
	ProviderAuthentication ProviderCode = "authentication" // it rejects the credentials
	ProviderBilling        ProviderCode = "billing"        // it wants payment: the account has no credit or quota left
	ProviderRateLimit      ProviderCode = "rate_limit"
	ProviderNetwork        ProviderCode = "network"      // it is not reached
	ProviderUnavailable    ProviderCode = "unavailable"  // it fails, is overloaded, or does not say why
	ProviderContextFull    ProviderCode = "context_full" // the conversation is too long for its model
)

// Known reports whether it is one of the codes.
func (c ProviderCode) Known() bool {
	switch c {
	case ProviderAuthentication, ProviderBilling, ProviderRateLimit, ProviderNetwork, ProviderUnavailable, ProviderContextFull:
		return true
	}
	return false
}

// NeedsPerson reports whether only a person can end the trouble.
func (c ProviderCode) NeedsPerson() bool { return c == ProviderAuthentication || c == ProviderBilling }

// ProviderOfStatus is what an HTTP status of a provider says; empty: nothing of these.
func ProviderOfStatus(status int) ProviderCode {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ProviderAuthentication
	case status == http.StatusPaymentRequired:
		return ProviderBilling
	case status == http.StatusTooManyRequests:
		return ProviderRateLimit
	case status >= http.StatusInternalServerError && status < 600:
		return ProviderUnavailable
	}
	return ""
}

// Ask is a question for permission that waits for an answer. The subject is in Fact.Text and
// Fact.Tool, and the call's arguments are in Fact.Args.
type Ask struct {
	ID      string   `json:"id,omitempty"`
	Options []Option `json:"options,omitempty"`
	Paths   []string `json:"paths,omitempty"` // the files that it concerns, if the program names them; absolute
}

// Option is one possible answer. Several options may have the same kind: choose by ID.
type Option struct {
	ID    string `json:"id"`
	Kind  string `json:"kind,omitempty"`  // allow_once, allow_always, reject_once, reject_always, or the program's own word
	Label string `json:"label,omitempty"` // the agent's own words
}

// Stop is the terminal event of a conversation.
type Stop struct {
	OK     bool   `json:"ok" required:"false" doc:"Of stopped: the agent has done its work"`
	Reason string `json:"reason,omitempty"` // one of core/session, or another word: completed, cancelled, failed, refused, max_tokens, …
	Detail string `json:"detail,omitempty"`

	// ContextPercent is how much of the model's context the conversation filled at the end; 0: unknown. In a fact it is Context.
	ContextPercent int `json:"-"`

	// Alone is the whole text of a session in which nothing else shows that a model has answered: no tool
	// call, no question, no usage. It is empty if something does, or if the text is long.
	Alone string `json:"alone,omitempty"`
}

// ContextPercent returns the share of a model's context window that is filled; 0 if the window is unknown.
func ContextPercent(tokens, window float64) int {
	if !(window > 0) || !(tokens > 0) { // false for NaN
		return 0
	}
	return int(min(100*tokens/window, 100))
}

// Wire holds the two byte streams of a running process. The output can be read from any offset, as
// often as needed; input is written once.
type Wire interface {
	// Output returns the output of the process (standard output and error, in the order of arrival) from
	// an offset on. At the end it waits for more until the process's output is closed, then returns
	// io.EOF.
	Output(ctx context.Context, offset int64) (io.ReadCloser, error)
	Send(ctx context.Context, input []byte) error
	CloseInput(ctx context.Context) error
}

// Conversation is a driver's side of one session.
type Conversation interface {
	// Facts reads the agent's output from an offset on and yields facts until the output ends. Bytes
	// without a meaning to the driver yield a Faulted fact. Only a read error or the end of ctx yields
	// an error, which ends the sequence.
	Facts(ctx context.Context, from int64) iter.Seq2[Fact, error]

	// Prompt sends the agent a prompt; Cancel asks it to stop its current work. They return ErrNoInput
	// if the program takes no input: keep the prompt for the next session, or end the process.
	Prompt(ctx context.Context, text string) error
	Cancel(ctx context.Context) error

	// Steer sends a text that the agent reads during its current answer, at the latest after it. A TextRead
	// fact with the ID follows when the agent has read it; without that fact it has not, and the text belongs
	// into the next session. It returns ErrNoSteer if the program reads nothing during an answer.
	Steer(ctx context.Context, id, text string) error

	// Answer chooses one of the options of a PermissionAsked fact, by the ids of both. It returns
	// ErrNoAnswer if the agent never asks.
	Answer(ctx context.Context, ask, option string) error
}

// Capabilities is what the agents of a driver can do in one kind of session. The zero value is a program
// that gets everything at its start and is only listened to.
type Capabilities struct {
	// Input: Conversation.Prompt and Cancel reach the program while it runs. If false, both return a
	// NotSupportedError, and a session gets its only prompt at its start.
	Input bool
	// Prompts: the agent reads prompts after the first one. If false, each prompt needs a session of
	// its own, even if Input is true. Implies Input.
	Prompts bool
	// Steers: the agent reads a prompt that is sent during an answer within that answer, and Conversation.Steer
	// reaches it. If false, a prompt is kept until the answer is over. Implies Input.
	Steers bool
	// Resumes: a session with Session.Resume continues an earlier conversation.
	Resumes bool
	// Asks: the agent asks for permission, and Conversation.Answer reaches it. If false, it reports no
	// PermissionAsked fact, and Answer returns a NotSupportedError.
	Asks bool
	// Answers: a Listening or Stopped fact follows each answer. If false, only silence and the end of the
	// process show that an answer is complete.
	Answers bool
	// Messages: an answer may consist of several messages, and a fact of another kind than Said follows
	// each of them. Implies Answers.
	Messages bool
	// Probes: Driver.Probe can examine the program. If false, it returns a NotSupportedError.
	Probes bool
}

// NotSupportedError is returned by an operation that the Capabilities of a driver exclude.
type NotSupportedError struct {
	Reason string // a sentence without a period, such as "this agent takes no input while it runs"
}

// Error returns the reason.
func (e NotSupportedError) Error() string { return e.Reason }

// Errors of the operations that a driver may not support; compare with errors.Is.
var (
	ErrNoInput  error = NotSupportedError{"this agent takes no input while it runs"}
	ErrNoSteer  error = NotSupportedError{"this agent reads no text during its answer"}
	ErrNoAnswer error = NotSupportedError{"this agent does not ask for permission"}
	ErrNoProbe  error = NotSupportedError{"this driver cannot examine a program"}
)

// Probed is the result of probing a program.
type Probed struct {
	Program  string // name and version
	Path     string
	Speaks   string   // acp 1, stream-json, exec --json
	Resumes  bool     // it can resume an earlier conversation
	MCP      []string // transports for the team's tools: http, stdio
	Enforced string   // see Conversed.Enforced
	Warnings []string // what does not work, and how to fix it
}

// Driver starts one kind of agent, sends it input and interprets its output.
type Driver interface {
	Name() string

	// Check returns an error if this agent cannot be started, for example because its command does not
	// exist or its script is faulty. The error says how to fix it.
	Check(a Agent) error

	// Launch describes how the session's process is started. The result depends only on the arguments
	// and on this process's environment: the same call returns the same launch.
	Launch(a Agent, s Session) (spawn.Launch, error)

	Converse(a Agent, s Session, w Wire) Conversation

	// Capabilities says what this agent can do in a session of this kind. It may read files, such as
	// the agent's script, but starts nothing.
	Capabilities(a Agent, kind Kind) Capabilities

	// Probe examines the agent's program: whether it is installed, its version and what works. It
	// starts the program but no conversation, and needs no network. It returns ErrNoProbe if the
	// driver cannot do that.
	Probe(ctx context.Context, a Agent) (Probed, error)

	// Outcome evaluates a session that has ended. stop is nil if there was no terminal event. If there
	// were several, the last one counts.
	Outcome(s Session, exit session.Exit, stop *Stop) Outcome
}

// Outcome is the evaluation of a session that has ended.
type Outcome struct {
	OK  bool
	Why string // one line for people; empty if OK needs no explanation

	// Quote says that the last lines of the output explain the failure, because no event of the agent does.
	Quote bool
}
