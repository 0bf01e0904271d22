package config

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/policy"
)

// Permissions say what an agent may do. Its bounds are the fields of seed 002 (policy.Within explains them);
// Allow and Deny answer its program's questions. A nil list sets no bound; an empty list of what it can do
// permits nothing.
type Permissions struct {
	CanWrite      []string
	CannotWrite   []string
	CanExecute    []string
	CannotExecute []string

	Allow     []string      // patterns (policy.ParsePattern) that are answered with yes
	Deny      []string      // patterns that are answered with no; Deny wins over Allow
	Timeout   time.Duration // how long to wait for a person if no pattern matches; 0: without limit
	Otherwise Otherwise     // the answer after Timeout
}

// Bounds returns the four lists as rules of package policy.
func (p Permissions) Bounds() policy.Rules {
	return policy.Rules{CanWrite: p.CanWrite, CannotWrite: p.CannotWrite, CanExecute: p.CanExecute, CannotExecute: p.CannotExecute}
}

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

const mcpOff = "off"

func (c *checker) permissions(n *file.YAMLNode) Permissions {
	p := Permissions{
		CanWrite:      c.bound(n.Get("can_write"), false),
		CannotWrite:   c.bound(n.Get("cannot_write"), false),
		CanExecute:    c.bound(n.Get("can_execute"), true),
		CannotExecute: c.bound(n.Get("cannot_execute"), true),
		Allow:         c.rules(n.Get("allow")),
		Deny:          c.rules(n.Get("deny")),
		Timeout:       c.duration(n.Get("timeout"), PermissionTimeout, true),
		Otherwise:     Otherwise(textOf(n.Get("otherwise"))),
	}
	if p.Otherwise == "" {
		p.Otherwise = OtherwiseDeny
	}
	if p.Otherwise == OtherwiseAllow && p.Timeout == 0 {
		c.note(n.Get("otherwise").Place, n.Get("otherwise").Path, "has no effect: with timeout 0s, the agent waits for a person without a limit")
	}
	return p
}

// bound reads one list of an agent's bounds and reports entries that cannot be checked against a call. An
// empty list is returned as an empty, non-nil list.
func (c *checker) bound(n *file.YAMLNode, executes bool) []string {
	if n == nil || n.Kind != file.YAMLList {
		return nil
	}
	entries := []string{}
	for _, item := range itemsOf(n) {
		if err := policy.ParseBound(item.Text, executes); err != nil && item.Kind == file.YAMLText {
			c.add(item.Place, item.Path, "%s", err)
		}
	}
	return append(entries, textsOf(n)...)
}

// rules reads a list of patterns and reports those that cannot be checked against a call.
func (c *checker) rules(n *file.YAMLNode) []string {
	for _, item := range itemsOf(n) {
		if item.Kind != file.YAMLText {
			continue
		}
		if _, err := policy.ParsePattern(item.Text); err != nil {
			c.add(item.Place, item.Path, "%s", err)
		} else if tool, _, _ := strings.Cut(item.Text, "("); !slices.Contains(tools, tool) {
			if hint := didYouMean(tool, tools); hint != "" {
				c.note(item.Place, item.Path, "no supported program has a tool %s%s", quoteShort(tool), hint)
			}
		}
	}
	return textsOf(n)
}

// tools are the tool names that are common to the supported programs.
var tools = []string{"Write", "Edit", "MultiEdit", "NotebookEdit", "Read", "Bash", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "Task"}

// conversation reports settings that need a program with conversations.
func (c *checker) conversation(n *file.YAMLNode, a Agent) {
	what := "driver " + a.Driver
	switch {
	case a.Loop == LoopForeign:
		what = "loop foreign"
	case a.Driver == DriverACP, a.Driver == DriverClaude, a.Driver == DriverCodex, a.Driver == "":
		return
	}
	for _, key := range []string{"mode", "resume"} {
		if f := n.Field(key); f != nil {
			c.add(f.Place, f.Value.Path, "has no effect with %s; remove it, or use driver acp, claude or codex", what)
		}
	}
}
