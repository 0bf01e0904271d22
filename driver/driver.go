// Package driver is the seam between Fairlead and the programs it runs.
//
// A driver is an interpreter between two parties who share no language. To the
// team it speaks of one kind of thing: an agent that says, thinks, calls a tool,
// asks for permission, reports what it used, stops. To the program it speaks
// whatever that program understands. It starts nothing itself: Launch writes
// down how a process is to be started, and Converse reads what the process wrote
// (Wire.Output, from any offset, as often as wanted) and writes what it is told.
// So a driver has no memory that could be lost: who dies and comes back reads on
// from the offset of the last fact it knew.
//
//	bytes ──▶ ReadLines ──▶ Facts ──▶ the team
//	bytes ◀── Wire.Send ◀── Prompt, Answer, Cancel
//
// What comes out of an agent is hostile input. Lines are cut at a limit, text is
// made valid, and what cannot be understood is a Faulted fact: kept and shown,
// never fatal.
//
// The one promise: the same bytes give the same facts, however they were cut into
// pieces and from whichever fact reading was resumed.
package driver

import (
	"context"
	"encoding/json"
	"errors"
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
	Mode      string // acp, claude, codex: the program's own word for what it may do without asking; empty: the one that asks
	MCP       MCP    // where the agent finds our own tools; its zero value: nowhere
}

// MCP is where one session finds the tools of its team. The token names the agent and the
// session; it goes into the environment of the process, and nowhere else.
type MCP struct {
	URL   string   // http://127.0.0.1:7466/mcp; empty: none
	Token string   // a secret
	Stdio []string // a command that speaks MCP on standard input and output, for programs that know no other
}

// Session is one life of an agent's process.
type Session struct {
	ID      string // coder-17
	Kind    Kind
	Prompt  string // what it is to do; a command is told only in a Turn, or where Told says so
	Attempt int

	Told bool // the prompt is what it works for: a program that takes no prompts gets it on standard input
	// Resume is the program's own id of the conversation that is to go on (Conversation.ID of an
	// earlier session); empty: a new one begins. A driver that can resume nothing ignores it.
	Resume string

	Channel string // of a Turn: where it begins; empty for every other kind
	Turn    uint64 // the number of the turn it begins with; 0: it begins with an answer that needs none
}

// Kind says what a session is for.
type Kind string

const (
	Work    Kind = "session"
	Cleanup Kind = "cleanup" // seed 000: run_cleanup
	Foreign Kind = "foreign" // a program that runs the seed's loop itself
	Turn    Kind = "turn"    // a talk: its prompt is what is asked of it in a channel, further ones may follow
	Lead    Kind = "lead"    // a talk of the one that leads the team: it is told of summons and wakes, and of its channels, and stays
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
	PermissionAsked FactKind = "permission_asked" // Fact.Ask says what may be answered
	UsageReported   FactKind = "usage_reported"
	Listening       FactKind = "listening" // all that it was told is answered; it waits for the next prompt
	Stopped         FactKind = "stopped"
	Faulted         FactKind = "faulted" // a line that could not be understood: kept, shown, never fatal

	PermissionAnswered  FactKind = "permission_answered"  // the program was told; Fact.Ask.ID says of which question, Fact.Text which option
	PermissionWithdrawn FactKind = "permission_withdrawn" // the program does not want to know any more; Fact.Ask.ID
	ConversationNamed   FactKind = "conversation_named"   // the program's own name of the conversation, also where it has changed
	RateLimited         FactKind = "rate_limited"         // its provider takes no more until Fact.Until
)

// Fact is one thing an agent was seen to do. Every driver gives the same ones.
type Fact struct {
	Kind FactKind

	// Offset is the number of bytes of output up to and including this fact;
	// reading may resume here. Where one line makes several facts, only the last
	// one carries the line's end: the others carry its beginning, so that a reader
	// who stops between them is told them again and loses none.
	Offset int64

	Text  string // valid UTF-8, without the line's end; at most a little over LineBytesMax
	Part  bool   // Said, Thought: the text goes on in the next fact of this kind, on the same line
	Tool  string // which tool is called, or (Said) whose output this is: not the agent's own words, no place for markers
	Ask   Ask    // PermissionAsked
	Usage Usage  // UsageReported
	Stop  Stop   // Stopped

	Conversation Conversed // ConversationNamed
	Until        time.Time // RateLimited; zero: it is not said until when

	// Input is, of Listening, how many bytes of its standard input the agent had taken
	// by then; 0: it does not say. Where more was written, what was written meanwhile is
	// still to be answered, and it will listen once more.
	Input int64

	Raw json.RawMessage // what it was made of, where that was JSON; valid JSON or nil
}

// Conversed is what a program says of the conversation that a session holds with it.
type Conversed struct {
	ID      string `json:"id"`                // by which it is resumed
	Model   string `json:"model,omitempty"`   // in the program's own words
	Mode    string `json:"mode,omitempty"`    // the same
	Program string `json:"program,omitempty"` // its name and version
	Resumed bool   `json:"resumed,omitempty"` // it goes on with what was said before

	// Enforced is what holds this program, in one line for people: asks before it writes and runs;
	// asks nothing: only what its own settings forbid.
	Enforced string `json:"enforced,omitempty"`
}

// Ask is a question for permission that waits for an answer. What is asked for is Fact.Text, Fact.Tool
// and the call's arguments in Fact.Raw, under args.
type Ask struct {
	ID      string   `json:"id"`
	Options []Option `json:"options,omitempty"`
	Paths   []string `json:"paths,omitempty"` // which files it is about, as far as the program says; absolute
}

// Option is one answer an agent offers. Several may share a kind: choose by ID.
type Option struct {
	ID    string `json:"id"`
	Kind  string `json:"kind,omitempty"`  // allow_once, allow_always, reject_once, reject_always, or the agent's own word
	Label string `json:"label,omitempty"` // the agent's own words
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

// Reasons of a Stop that decide what comes next. Every driver uses these words for them; all others are
// for people.
const (
	ReasonRateLimited      = "rate_limited"      // the provider takes no more for now: nobody has failed
	ReasonNotResumed       = "not_resumed"       // the program does not know the conversation that was to go on; nothing was done
	ReasonHeldElsewhere    = "held_elsewhere"    // a background service of the program's own holds it: it must not go on twice
	ReasonContextExhausted = "context_exhausted" // the conversation is too long for its model: to go on with it will not help
	ReasonNotSignedIn      = "not_signed_in"     // the provider refuses its key: trying again will not help, somebody has to sign in
	ReasonDied             = "died"              // the program ended in the middle of its work: its conversation can be gone on with
)

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
	// An error ends the sequence: reading failed, or ctx is done; nothing else.
	Facts(ctx context.Context, from int64) iter.Seq2[Fact, error]

	// Prompt tells the agent something; Cancel asks it to stop what it is doing.
	// ErrNoInput where the program takes none: keep the prompt for the next
	// session, end the process where it must stop.
	Prompt(ctx context.Context, text string) error
	Cancel(ctx context.Context) error
}

// Talker is a Driver whose agents can be told something while they run. A program
// that is told everything at its start has nothing to say to this, so it is an
// interface of its own; ask TakesInput.
type Talker interface {
	// TakesInput says whether Conversation.Prompt reaches the agent, also in the
	// middle of an answer. It is the same for every agent of the driver.
	TakesInput() bool
}

// TakesInput says whether the agents of a driver can be told something while they
// run. Where they cannot, every errand needs a session of its own, and Prompt and
// Cancel give ErrNoInput.
func TakesInput(d Driver) bool {
	t, ok := d.(Talker)
	return ok && t.TakesInput()
}

// Hears says whether one agent reads what it is told while it runs, in a talk in channels.
func Hears(d Driver, a Agent) bool { return HearsAs(d, a, Turn) }

// HearsAs says whether one agent reads what it is told while it runs, in a session of this kind. A
// driver whose agents differ in that says so of each by a method Hears(Agent) bool, or, where
// they differ by the kind of session, too, by HearsAs(Agent, Kind) bool.
func HearsAs(d Driver, a Agent, kind Kind) bool {
	if of, ok := d.(interface{ HearsAs(Agent, Kind) bool }); ok && !of.HearsAs(a, kind) {
		return false
	}
	if of, ok := d.(interface{ Hears(Agent) bool }); ok && !of.Hears(a) {
		return false
	}
	return TakesInput(d)
}

// Steers says whether an agent that is told something in the middle of an answer hears it there. Where
// it does not, what is said meanwhile is kept for it until the answer is over.
func Steers(d Driver) bool {
	if s, ok := d.(interface{ Steers() bool }); ok {
		return s.Steers()
	}
	return TakesInput(d)
}

// Resumer is a Driver that can go on with an earlier conversation, by Session.Resume.
type Resumer interface {
	Resumes(a Agent) bool
}

// Prober is a Driver that can look at a program: is it there, which version, what works? It starts the
// program and no conversation, and needs no network.
type Prober interface {
	Probe(ctx context.Context, a Agent) (Probed, error)
}

// Probed is what a look at a program has found.
type Probed struct {
	Program  string // name and version
	Path     string
	Speaks   string   // acp 1, stream-json, exec --json
	Resumes  bool     // it can go on with an earlier conversation
	MCP      []string // how it takes our tools: http, stdio
	Enforced string   // as Conversed.Enforced
	Warnings []string // what does not work, and what to do
}

// Answerer is a Conversation whose agent asks for permission. A program that
// never asks has nothing to answer, so it is an interface of its own.
type Answerer interface {
	// Answer chooses one of the options of a PermissionAsked fact.
	Answer(ctx context.Context, ask, option string) error
}

// ErrNoInput says that a program is not told anything while it runs.
var ErrNoInput = errors.New("this agent takes no input while it runs")

// Driver starts one kind of agent, tells it things and understands what it says.
type Driver interface {
	Name() string

	// Check finds what would stop this agent from being started: a command that
	// does not exist, a script with a fault. The error says what to do.
	Check(a Agent) error

	// Launch says how the session's process is started. It only depends on what it
	// is given and on this process's own environment: asked again, it says the same.
	Launch(a Agent, s Session) (Launch, error)

	Converse(a Agent, s Session, w Wire) Conversation

	// Outcome judges a session that ended; stop is nil where no terminal event
	// came. Of several terminal events the last one counts.
	Outcome(s Session, exit Exit, stop *Stop) Outcome
}

// Outcome is the judgement on a session that ended.
type Outcome struct {
	OK  bool
	Why string // one line, for people; empty where OK needs no words
}
