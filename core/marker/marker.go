package marker

// Kind is what a marker is about.
type Kind string

// The markers that there are. The first two are the lead's (seed 001), the next is of an
// agent that plays a workflow's step (SPEC, Workflow), the next three end or pause a turn in
// a channel (seed 003; SPEC, Turn), the last is of who is in charge in a session, and wants
// another agent to be (SPEC, Dispatch: D3, D5).
const (
	AgentStatus     Kind = "agent_status"     // [AGENT_STATUS] {"agents":[…]}
	AgentRegistered Kind = "agent_registered" // [AGENT_REGISTERED] {"name":…}
	RunReport       Kind = "run_report"       // <<<RUN_REPORT_JSON … RUN_REPORT_JSON>>>
	TurnComplete    Kind = "turn_complete"    // TURN_COMPLETE, the last word of a line (EndsInWord)
	TurnPass        Kind = "turn_pass"        // TURN_PASS, likewise
	TurnWait        Kind = "turn_wait"        // TURN_WAIT, likewise
	Delegate        Kind = "delegate"         // [DELEGATE] {"to":…,"task":…}
)

const (
	jsonBytesMax  = 1 << 20 // a soul is some pages; what is longer than a book is a mistake, or an attack
	jsonDepthMax  = 64      // no marker nests deeper than five
	gapBytesMax   = 64      // white space between a tag and its object
	quoteBytesMax = 4 << 10 // of a broken marker's text: enough to see what was meant
)

// Marker is one marker as it stood in the stream.
type Marker struct {
	Kind   Kind
	JSON   []byte // its JSON object; empty for a turn's word and for a broken marker
	Text   string // how it was written, at most 4 KiB of it
	Fault  string // what is wrong with it; empty: nothing
	Offset int64  // of its first byte in the stream
}

// Piece is the next part of a stream: conversation, or a marker.
type Piece struct {
	Text   []byte
	Marker *Marker // nil: conversation
}

// opening is what a marker begins with.
type opening struct {
	tag   string
	kind  Kind
	asked bool // it is a marker only where Only names it: in other streams the same words are conversation
}

var (
	report   = opening{tag: "<<<RUN_REPORT_JSON", kind: RunReport}
	openings = []opening{
		{tag: "[AGENT_STATUS]", kind: AgentStatus},
		{tag: "[AGENT_REGISTERED]", kind: AgentRegistered},
		report,
		{tag: "TURN_COMPLETE", kind: TurnComplete},
		{tag: "TURN_PASS", kind: TurnPass},
		{tag: "TURN_WAIT", kind: TurnWait},
		{tag: "[DELEGATE]", kind: Delegate, asked: true},
	}
)

const reportEnd = "RUN_REPORT_JSON>>>"
