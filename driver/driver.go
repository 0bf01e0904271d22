package driver

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"
)

// Agent is what a driver needs to know of an agent's configuration.
type Agent struct {
	Name      string
	Command   []string // exec, acp, claude, codex: the program and its arguments
	Script    string   // script: absolute path of the file that is played
	Workspace string   // absolute; the agent's working directory
	Env       []string // K=V, references already resolved: never log it, never journal it
	Model     string
}

// Session is one life of an agent's process.
type Session struct {
	ID      string // coder-17
	Kind    Kind
	Prompt  string // empty for a driver without conversations
	Attempt int
}

// Kind says what a session is for.
type Kind string

const (
	Work    Kind = "session"
	Cleanup Kind = "cleanup" // seed 000: run_cleanup
	Foreign Kind = "foreign" // a program that runs the seed's loop itself
)

// Launch is how a process is started. Names of variables may be shown; values never.
type Launch struct {
	Argv      []string
	Dir       string
	Env       []string // the whole environment of the process
	Input     []byte   // the first bytes on standard input, delivered with the start
	KeepStdin bool     // keep standard input open after Input for Prompt, Answer and Cancel
}

// FactKind is what kind of thing an agent was seen to do.
type FactKind string

const (
	Said            FactKind = "said"
	Thought         FactKind = "thought"
	ToolCalled      FactKind = "tool_called"
	PermissionAsked FactKind = "permission_asked"
	UsageReported   FactKind = "usage_reported"
	Stopped         FactKind = "stopped"
	Faulted         FactKind = "faulted" // a line that could not be understood: kept, shown, never fatal
)

// Fact is one thing an agent was seen to do. Every driver gives the same ones.
type Fact struct {
	Kind   FactKind
	Offset int64 // bytes of output up to and including this fact; reading may resume here
	Text   string
	Tool   string
	Usage  Usage
	Stop   Stop
	Raw    json.RawMessage // what it was made of, where that was JSON
}

// Usage is what was used since the last report, not a running total.
type Usage struct {
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`
}

// Stop is the terminal event of a conversation.
type Stop struct {
	OK     bool
	Reason string // completed, cancelled, failed, refused, max_tokens, …
	Detail string
}

// Exit is how a process ended, as the system says it.
type Exit struct {
	Code   int    // -1 where a signal ended it
	Signal string // SIGKILL, …; empty where it exited
	At     time.Time
}

// Wire is the two byte streams of a running process. The output can be read
// from any offset, as often as wanted; input is written once.
type Wire interface {
	// Output yields what the process writes (standard output and error, as they
	// came) from an offset on; at the end it waits for more until the process's
	// output is closed, then gives io.EOF.
	Output(ctx context.Context, offset int64) (io.ReadCloser, error)
	Send(ctx context.Context, input []byte) error
	CloseInput(ctx context.Context) error
}

// Conversation is a driver at work on one session.
type Conversation interface {
	// Facts reads the agent's output from an offset on and yields what it means,
	// until the output ends. Bytes that mean nothing to the driver are a Faulted fact.
	Facts(ctx context.Context, from int64) iter.Seq2[Fact, error]
	Prompt(ctx context.Context, text string) error
	Cancel(ctx context.Context) error
}

// Driver starts one kind of agent, tells it things and understands what it says.
type Driver interface {
	Name() string

	// Check finds what would stop this agent from being started: a command that
	// does not exist, a script with a fault. The error says what to do.
	Check(a Agent) error

	Launch(a Agent, s Session) (Launch, error)
	Converse(a Agent, s Session, w Wire) Conversation

	// Outcome judges a session that ended; stop is nil where no terminal event came.
	Outcome(s Session, exit Exit, stop *Stop) Outcome
}

// Outcome is the judgement on a session that ended.
type Outcome struct {
	OK  bool
	Why string // one line, for people; empty where OK needs no words
}
