package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/policy"
)

// FileName is the name of the configuration file in the repository's root folder.
const FileName = "fairlead.yaml"

//go:embed fairlead.schema.json
var schemaJSON []byte

// SchemaJSON returns the JSON Schema (draft 2020-12) of fairlead.yaml, for editors.
func SchemaJSON() []byte { return bytes.Clone(schemaJSON) }

// Defaults that other packages need; a test compares them with the tags.
const (
	ListenDefault = "127.0.0.1:7466"
	GraceDefault  = 10 * time.Second // between SIGTERM and SIGKILL
	PollDefault   = time.Minute
	TaskBranch    = "fairlead/{id}-{slug}"
)

const (
	LeadSeat = 4  // SPEC, Presence
	NoSeat   = -1 // the file gives the agent no seat
)

// RankerBuiltin selects the built-in word count as the ranker.
const RankerBuiltin = "builtin"

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

// InterruptMode says what happens to a person's message while an agent holds the turn.
type InterruptMode string

// The four modes (SPEC, Turn).
const (
	Queue     InterruptMode = "queue"
	Interrupt InterruptMode = "interrupt"
	Inject    InterruptMode = "inject"
	Parallel  InterruptMode = "parallel"
)

// Otherwise is the answer to a question that no person answered in time.
type Otherwise string

// The values of Otherwise.
const (
	OtherwiseDeny  Otherwise = "deny"
	OtherwiseAllow Otherwise = "allow"
)

// Resume says when a session continues the agent's last conversation.
type Resume string

// The values of Resume.
const (
	ResumeInterrupted Resume = "interrupted" // channel and crew sessions, and sessions that a crash or a reboot interrupted
	ResumeAlways      Resume = "always"      // also sessions of the control loop that ended normally
	ResumeNever       Resume = "never"
)

// The modes of a wall.
const (
	SandboxWorkspace = "workspace" // with what this machine holds; not started where writes are not held
	SandboxRequired  = "required"  // only if this machine holds every row
	SandboxAuto      = "auto"      // with what this machine holds; started in any case
	SandboxOff       = "off"       // none
)

// On reports whether there is to be a wall.
func (s AgentSandbox) On() bool { return s.Mode != "" && s.Mode != SandboxOff }

// ReadsOnly reports whether the mode of the agent's program lets it write nothing. Inside a wall, where codex has no sandbox
// of its own, the wall holds that.
func (a *Agent) ReadsOnly() bool { return a.Driver == DriverCodex && a.Mode == "read-only" }

// Bounds returns the four lists as rules of package policy.
func (p Permissions) Bounds() policy.Rules {
	return policy.Rules{CanWrite: p.CanWrite, CannotWrite: p.CannotWrite, CanExecute: p.CanExecute, CannotExecute: p.CannotExecute}
}

// Agent finds an agent by name.
func (c *Config) Agent(name string) (Agent, bool) {
	i := slices.IndexFunc(c.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return c.Agents[i], true
}

// Changes returns what differs between two configurations, one line for each agent, channel and section
// that was added, removed or changed. Equal settings in another order or at other lines are no change.
func Changes(before, now *Config) []string {
	lines := []string{}
	for _, r := range configRule().fields {
		was, is := reflect.ValueOf(before).Elem().Field(r.index), reflect.ValueOf(now).Elem().Field(r.index)
		switch {
		case r.item != nil && r.item.name != nil:
			lines = append(lines, changedEntries(strings.TrimSuffix(r.key, "s"), was, is)...)
		case !reflect.DeepEqual(was.Interface(), is.Interface()):
			lines = append(lines, r.key+" changed")
		}
	}
	return lines
}

// changedEntries compares two slices of structs by the first field, the name.
func changedEntries(kind string, before, now reflect.Value) (lines []string) {
	entries := func(of reflect.Value) map[string]any {
		all := map[string]any{}
		for i := range of.Len() {
			all[of.Index(i).Field(0).String()] = of.Index(i).Interface()
		}
		return all
	}
	was, is := entries(before), entries(now)
	for name, one := range was {
		if other, still := is[name]; !still {
			lines = append(lines, fmt.Sprintf("%s %s removed", kind, name))
		} else if !reflect.DeepEqual(one, other) {
			lines = append(lines, fmt.Sprintf("%s %s changed", kind, name))
		}
	}
	for name := range is {
		if _, known := was[name]; !known {
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
