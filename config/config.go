package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/origin"
)

// FileName is the name of the configuration file in the repository's root folder.
const FileName = "fairlead.yaml"

// Defaults.
const (
	ListenDefault       = "127.0.0.1:7466"
	TeamSizeDefault     = 8                // nine seats without the lead's (SPEC P1)
	FailuresMaxDefault  = 5                // SPEC C16
	BackoffFirst        = time.Second      // SPEC C16
	BackoffMax          = 60 * time.Second // SPEC C16
	GraceDefault        = 10 * time.Second // between SIGTERM and SIGKILL
	ReportWithinDefault = 5 * time.Minute
	MaxRoundsDefault    = 3 // SPEC, Turn
	WaitTimeoutDefault  = 300 * time.Second
	StatusTimeout       = 30 * time.Second // SPEC, Presence: silence of the lead that ends "in progress"
	HatchTimeout        = 5 * time.Minute  // SPEC P7
	LeadSeat            = 4                // SPEC, Presence
	PermissionTimeout   = 30 * time.Minute // enough for a person at work; without a person, the agent must not wait all night
	NoSeat              = -1               // the file gives the agent no seat
)

// Config is the content of fairlead.yaml with every default filled in.
type Config struct {
	File string // as messages name it: fairlead.yaml
	Sum  string // identity of the file's content
	Dir  string // absolute, symbolic links resolved; the folder of the file

	Version    int
	Team       Team
	Agents     []Agent // in file order
	Channels   []Channel
	Dispatch   Dispatch
	Tasks      Tasks
	TurnConfig TurnConfig
	Notify     Notify
	Listen     string          // host:port, loopback
	Origins    []origin.Origin // where the page is opened through a tunnel or a reverse proxy
	Workflows  []string        // absolute paths

	// Notes are warnings: allowed settings that a person should know about.
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

// Team holds the settings that concern all agents together.
type Team struct {
	Lead          string        // the agent whose crew markers count; may be a name that is not in this file
	Size          int           // seats that a summon fills, 1 to 8
	StatusTimeout time.Duration // for the lead's silence (SPEC P8)
	HatchTimeout  time.Duration // for an agent that was summoned and has not registered (SPEC P7)
	Hold          bool          // on hold when the team is created
	Limits        Limits        // tokens and cost are summed over all agents
	DiskBytes     int64         // that .fairlead should not exceed; 0: no limit
}

// Limits bound what an agent or the team may use (SPEC X9). Zero means no limit.
type Limits struct {
	Session       time.Duration // wall-clock time of one session
	TokensPerDay  int64         // input and output tokens
	CostPerDayUSD float64
}

// The drivers.
const (
	DriverScript = "script"
	DriverExec   = "exec"
	DriverACP    = "acp"
	DriverClaude = "claude"
	DriverCodex  = "codex"
)

// Loop says which program decides when an agent's sessions start.
type Loop string

// The programs that can run an agent's loop.
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
	CleanupEvery  int           // number of continuous sessions between cleanup sessions; 0: no cleanup sessions
	TurnTimeout   time.Duration // defaults to turnConfig's
	Model         string        // empty: the program's default
	Seat          int           // 0 to 8, or NoSeat
	Limits        Limits        // Session defaults to the team's
	Mode          string        // the program's own word for its permission mode; empty: the mode in which it asks
	Resume        Resume
	MCP           bool // whether the agent is offered the team's MCP tools
	Permissions   Permissions
	Sandbox       AgentSandbox
	FailuresMax   int
	Instances     int // sessions at the same time; 1: as without the key
	Ports         int // TCP ports that each session leases; 0: none
	Host          AgentHost
	Backoff       Backoff
	Grace         time.Duration
	ReportWithin  time.Duration // a foreign loop without a command works while its file changes within this time
	Line          int           // line of the agent's name in the file, for later messages
}

// AgentHost says on which machines of the team an agent's steps may run.
type AgentHost struct {
	Any    bool     // on others than the daemon's, too
	Labels []string // that the machine must have
	OnLost string   // restart, wait or ask; empty: restart
}

// Backoff is the wait between failed sessions. It doubles from First up to Max.
type Backoff struct {
	First, Max time.Duration
}

// InterruptMode says what happens to a person's message while an agent holds the turn.
type InterruptMode string

// The four modes (SPEC, Turn).
const (
	Queue     InterruptMode = "queue"
	Interrupt InterruptMode = "interrupt"
	Inject    InterruptMode = "inject"
	Parallel  InterruptMode = "parallel"
)

// Channel is a channel in which agents take turns.
type Channel struct {
	Name               string
	Agents             []string // agents of this file, in the order of the first round
	Lead               string   // the agent that answers a person who interrupts; empty or not in this file: the agent that has the turn
	HumanInterruptMode InterruptMode
	MaxRounds          int // rounds after a person's message; 0: no limit
	WaitTimeout        time.Duration
}

// Tasks holds the settings of `fairlead task`.
type Tasks struct {
	Base   string   // the branch on which tasks land; empty: the current one
	Copy   []string // untracked files and folders, relative to the workspace, that a task's folder needs
	Setup  []string // commands that prepare a task's folder
	Checks []string // commands that must succeed before a task is shown and lands
	Land   string   // squash, merge or rebase
	// Governing are patterns of more files that need a separate yes.
	Governing []string
	Branch    string // name of a task's branch, with {id} and {slug}
	Flow      string // a workflow that replaces the built-in one; absolute; empty: built-in
	Remote    string // the git remote for pull requests and issues; empty: origin
	PR        PullRequests
	From      []Intake // issues that become tasks by themselves, by label
	Most      int      // tasks from issues at once

	Reviewer  string        // the agent that reviews each task; empty: none
	Timeout   time.Duration // for each command of Setup and Checks
	DiskBytes int64         // that the folders of tasks may take; 0: no limit
}

// PullRequests holds the settings of `land: pr`.
type PullRequests struct {
	Poll time.Duration // how often a pull request is looked at while something changes
	Ask  string        // once, or every_round: when a person is asked before a push
}

// Intake says which agent gets the issues with a label.
type Intake struct{ Label, Agent string }

// The defaults of tasks.pr.poll, tasks.pr.ask and tasks.most.
const (
	PollDefault = time.Minute
	PollLeast   = 15 * time.Second
	AskOnce     = "once"
	MostDefault = 3
)

// Dispatch holds the settings of dispatch (seed 002, SPEC D1 to D11).
type Dispatch struct {
	Main      string   // the agent of this file that coordinates; empty: none
	Ranker    string   // the agent of this file that ranks agents for an input; empty: the built-in word count
	Threshold float64  // the least score with which an agent gets an input; 0: the ranking's default
	Tools     []string // names or globs of tools that MAIN may use although Fairlead does not know them
	Hooks     []string // commands of hooks in Claude Code that do not replace shell commands
	Sandbox   AgentSandbox
	Commits   bool // whether agents may run git add and git commit
}

// RankerBuiltin selects the built-in word count as the ranker.
const RankerBuiltin = "builtin"

// TurnConfig has the six fields of seed 003, in its spelling and order.
type TurnConfig struct {
	DefaultTimeoutSeconds    int           `json:"defaultTimeoutSeconds"`
	HumanInterruptMode       InterruptMode `json:"humanInterruptMode"`
	AnnounceTimeouts         bool          `json:"announceTimeouts"`
	AnnounceDisconnects      bool          `json:"announceDisconnects"`
	AutoDetectTurnEnd        bool          `json:"autoDetectTurnEnd"`
	AutoDetectSilenceSeconds int           `json:"autoDetectSilenceSeconds"`
}

// Changes returns what differs between two configurations, one line for each agent, channel and section
// that was added, removed or changed. Equal settings in another order or at other lines are no change.
func Changes(before, now *Config) []string {
	lines := []string{}
	changed := func(what string, before, now any) {
		if !reflect.DeepEqual(before, now) {
			lines = append(lines, what+" changed")
		}
	}
	changed("team", before.Team, now.Team)
	lines = append(lines, named("agent", byName(before.Agents, agentName), byName(now.Agents, agentName))...)
	lines = append(lines, named("channel", byName(before.Channels, channelName), byName(now.Channels, channelName))...)
	changed("dispatch", before.Dispatch, now.Dispatch)
	changed("tasks", before.Tasks, now.Tasks)
	changed("turnConfig", before.TurnConfig, now.TurnConfig)
	changed("notify", before.Notify, now.Notify)
	changed("listen", before.Listen, now.Listen)
	changed("origins", before.Origins, now.Origins)
	changed("workflows", before.Workflows, now.Workflows)
	return lines
}

func agentName(a *Agent) string { a.Line = 0; return a.Name }

func channelName(c *Channel) string { return c.Name }

// byName maps the elements of a list to copies without their lines.
func byName[T any](list []T, name func(*T) string) map[string]T {
	all := make(map[string]T, len(list))
	for _, one := range list {
		all[name(&one)] = one
	}
	return all
}

func named[T any](kind string, before, now map[string]T) (lines []string) {
	for name, was := range before {
		is, still := now[name]
		switch {
		case !still:
			lines = append(lines, fmt.Sprintf("%s %s removed", kind, name))
		case !reflect.DeepEqual(was, is):
			lines = append(lines, fmt.Sprintf("%s %s changed", kind, name))
		}
	}
	for name := range now {
		if _, known := before[name]; !known {
			lines = append(lines, fmt.Sprintf("%s %s added", kind, name))
		}
	}
	slices.Sort(lines)
	return lines
}

var (
	//go:embed starter/solo.yaml
	starterConfig []byte
	//go:embed starter/starter.script.yaml
	starterScript []byte
)

// StarterKind names one of the files that `fairlead init` writes.
type StarterKind string

// The files that init writes. Each kind is its file's name.
const (
	StarterConfig StarterKind = FileName
	StarterScript StarterKind = "starter.script.yaml"
)

// StarterKinds returns all kinds in the order in which to write them: the configuration last, because it
// names the script.
func StarterKinds() []StarterKind { return []StarterKind{StarterScript, StarterConfig} }

// Starter returns the commented file that `fairlead init` writes. Together the files load without faults and
// give a working team.
func Starter(kind StarterKind) []byte {
	switch kind {
	case StarterConfig:
		return bytes.Clone(starterConfig)
	case StarterScript:
		return bytes.Clone(starterScript)
	default:
		panic("config: there is no starter file " + string(kind))
	}
}
