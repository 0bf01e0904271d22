package config

import (
	"slices"
	"time"
)

// FileName is the name of the configuration at the root of a repository.
const FileName = "fairlead.yaml"

// What holds where the file is silent.
const (
	ListenDefault      = "127.0.0.1:7466"
	TeamSizeDefault    = 8                // nine seats less the lead's (SPEC P1)
	FailuresMaxDefault = 5                // SPEC C16
	BackoffFirst       = time.Second      // SPEC C16
	BackoffMax         = 60 * time.Second // SPEC C16
	GraceDefault       = 10 * time.Second // between the polite signal and the other one
	MaxRoundsDefault   = 3                // SPEC, Turn
	WaitTimeoutDefault = 300 * time.Second
	StatusTimeout      = 30 * time.Second // SPEC, Presence: silence that ends "in progress"
	HatchTimeout       = 5 * time.Minute  // SPEC P7
	LeadSeat           = 4                // SPEC, Presence
	PermissionTimeout  = 30 * time.Minute // a person who is at work has looked by then; who is not would be waited for all night
	NoSeat             = -1               // the agent has no seat in the file
)

// Config is what a fairlead.yaml says, with every default filled in.
type Config struct {
	File string // as it is named in messages: fairlead.yaml
	Dir  string // absolute, symbolic links resolved; the folder of the file

	Version    int
	Team       Team
	Agents     []Agent // in file order
	Channels   []Channel
	Dispatch   Dispatch
	TurnConfig TurnConfig
	Notify     Notify
	Listen     string   // host:port, loopback
	Workflows  []string // absolute paths

	// Notes are what is allowed and yet worth telling a person. They stop nothing.
	Notes []Fault
}

// Agent finds an agent by name.
func (c *Config) Agent(name string) (Agent, bool) {
	i := slices.IndexFunc(c.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return c.Agents[i], true
}

// Team is what concerns all agents together.
type Team struct {
	Lead          string        // whose markers count; may be nobody of this file
	Size          int           // seats that SUMMON fills, 1 to 8
	StatusTimeout time.Duration // of the lead's silence (SPEC P8)
	HatchTimeout  time.Duration // of a placeholder without a name (SPEC P7)
	Hold          bool          // held when first started
	Limits        Limits        // tokens and cost are counted over all agents together
}

// Limits are what an agent or a team may use (SPEC X9). Zero is no limit.
type Limits struct {
	Session       time.Duration // wall clock of one session
	TokensPerDay  int64         // in and out
	CostPerDayUSD float64
}

// The drivers there are.
const (
	DriverScript = "script"
	DriverExec   = "exec"
	DriverACP    = "acp"
	DriverClaude = "claude"
	DriverCodex  = "codex"
)

// Loop says who runs an agent's loop of sessions.
type Loop string

// Who may run an agent's loop.
const (
	LoopFairlead Loop = "fairlead"
	LoopForeign  Loop = "foreign" // the agent's own program follows agent_state.json
)

// Agent is one agent of the team.
type Agent struct {
	Name          string
	Description   string
	Driver        string   // one of the Driver constants
	Command       []string // may be empty for script and a foreign loop
	Script        string   // absolute path; only with DriverScript
	Workspace     string   // absolute, symbolic links resolved; no two agents share one; may not exist yet
	Loop          Loop
	Env           Env
	SessionPrompt string
	CleanupPrompt string
	CleanupEvery  int           // a cleanup session after so many continuous ones; 0 never
	TurnTimeout   time.Duration // turnConfig's where the agent has none
	Model         string        // empty: the program's own choice
	Seat          int           // 0 to 8, or NoSeat
	Limits        Limits        // Session is the team's where the agent has none
	Mode          string        // the program's own word; empty: the one in which it asks
	Resume        Resume
	MCP           bool // whether it is offered the team's tools
	Permissions   Permissions
	Sandbox       AgentSandbox
	FailuresMax   int
	Backoff       Backoff
	Grace         time.Duration
	Line          int // of its name in the file, so that later findings can say where
}

// Backoff is the wait between failed sessions. It doubles from First to Max.
type Backoff struct {
	First, Max time.Duration
}

// InterruptMode says what happens to a person's message while an agent holds the turn.
type InterruptMode string

// The four ways a person's message reaches a channel (SPEC, Turn).
const (
	Queue     InterruptMode = "queue"
	Interrupt InterruptMode = "interrupt"
	Inject    InterruptMode = "inject"
	Parallel  InterruptMode = "parallel"
)

// Channel is where agents take turns.
type Channel struct {
	Name               string
	Agents             []string // agents of this file, in the order of the first round
	Lead               string   // who answers a person that interrupts; empty, or no agent of this file: whoever has the turn
	HumanInterruptMode InterruptMode
	MaxRounds          int // rounds after a person's message; 0 no limit
	WaitTimeout        time.Duration
}

// Dispatch is how sessions go in which one agent coordinates (seed 002, SPEC D1 to D11).
type Dispatch struct {
	Main      string   // the agent of this file that is MAIN; empty: nobody is
	Ranker    string   // the agent of this file that is asked whose work an input is; empty: nobody, words are counted
	Threshold float64  // the score below which MAIN keeps an input; zero: the ranking's own
	Tools     []string // names or globs of tools that MAIN may use though they are not known
	Sandbox   Sandbox
	Commits   bool // whether agents may have git write its records: add and commit
}

// RankerBuiltin is how a file says that words are counted, and nobody is asked.
const RankerBuiltin = "builtin"

// Sandbox says whether the kernel keeps MAIN's process from writing.
type Sandbox string

// What a file may ask for.
const (
	SandboxAuto     Sandbox = "auto"     // where the kernel can
	SandboxOff      Sandbox = "off"      // never
	SandboxRequired Sandbox = "required" // or MAIN is not started
)

// TurnConfig has the six fields of the turn seed, in its spelling and its order.
type TurnConfig struct {
	DefaultTimeoutSeconds    int           `json:"defaultTimeoutSeconds"`
	HumanInterruptMode       InterruptMode `json:"humanInterruptMode"`
	AnnounceTimeouts         bool          `json:"announceTimeouts"`
	AnnounceDisconnects      bool          `json:"announceDisconnects"`
	AutoDetectTurnEnd        bool          `json:"autoDetectTurnEnd"`
	AutoDetectSilenceSeconds int           `json:"autoDetectSilenceSeconds"`
}

// Notify is whom to tell when something waits for a person.
type Notify struct {
	Webhook Secret // empty: nobody
	Desktop bool   // a notice on the screen of whoever started us
}
