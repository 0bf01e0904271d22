package config

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/policy"
)

// Permissions are what an agent may do: its bounds, what it may write and execute at all in the fields of
// the dispatch seed (policy.Within says how they are read), and what its program is answered when it
// asks. A nil list says nothing; an empty one of what it can do lets it do none of it.
type Permissions struct {
	CanWrite      []string
	CannotWrite   []string
	CanExecute    []string
	CannotExecute []string

	Allow     []string      // patterns (policy.ParsePattern takes each of them) of what is answered with yes
	Deny      []string      // and with no; a denial wins
	Timeout   time.Duration // for how long a person is waited for where no pattern answers; 0: for ever
	Otherwise Otherwise     // the answer when that time is up
}

// Bounds are the four lists of what it may do at all.
func (p Permissions) Bounds() policy.Rules {
	return policy.Rules{CanWrite: p.CanWrite, CannotWrite: p.CannotWrite, CanExecute: p.CanExecute, CannotExecute: p.CannotExecute}
}

// Otherwise is what a question is answered with when nobody has answered it.
type Otherwise string

// The two answers that need nobody.
const (
	OtherwiseDeny  Otherwise = "deny"
	OtherwiseAllow Otherwise = "allow"
)

// Resume says when a session goes on with the agent's last conversation.
type Resume string

// When that may be.
const (
	ResumeInterrupted Resume = "interrupted" // talks, and what a crash or a reboot cut off
	ResumeAlways      Resume = "always"      // control sessions that ended well, too
	ResumeNever       Resume = "never"
)

const mcpOff = "off"

func (c *checker) permissions(n *node) Permissions {
	p := Permissions{
		CanWrite:      c.bound(n.get("can_write"), false),
		CannotWrite:   c.bound(n.get("cannot_write"), false),
		CanExecute:    c.bound(n.get("can_execute"), true),
		CannotExecute: c.bound(n.get("cannot_execute"), true),
		Allow:         c.rules(n.get("allow")),
		Deny:          c.rules(n.get("deny")),
		Timeout:       c.duration(n.get("timeout"), PermissionTimeout, true),
		Otherwise:     Otherwise(textOf(n.get("otherwise"))),
	}
	if p.Otherwise == "" {
		p.Otherwise = OtherwiseDeny
	}
	if p.Otherwise == OtherwiseAllow && p.Timeout == 0 {
		c.note(n.get("otherwise").place, n.get("otherwise").path, "never comes to pass: with timeout 0s a person is waited for as long as it takes")
	}
	return p
}

// bound reads one list of an agent's bounds, and reports entries that nobody could hold against a call.
// A list that is there and empty is no nil list.
func (c *checker) bound(n *node, executes bool) []string {
	if n == nil || n.kind != list {
		return nil
	}
	entries := []string{}
	for _, item := range itemsOf(n) {
		if err := policy.ParseBound(item.text, executes); err != nil && item.kind == text {
			c.add(item.place, item.path, "%s", err)
		}
	}
	return append(entries, textsOf(n)...)
}

// rules reads a list of patterns, and reports those that nobody could hold against a call.
func (c *checker) rules(n *node) []string {
	for _, item := range itemsOf(n) {
		if item.kind != text {
			continue
		}
		if _, err := policy.ParsePattern(item.text); err != nil {
			c.add(item.place, item.path, "%s", err)
		} else if tool, _, _ := strings.Cut(item.text, "("); !slices.Contains(tools, tool) {
			if hint := didYouMean(tool, tools); hint != "" {
				c.note(item.place, item.path, "a tool %s is known of no program%s", quoteShort(tool), hint)
			}
		}
	}
	return textsOf(n)
}

// tools are the names that every program's tools are known by, as far as one fits.
var tools = []string{"Write", "Edit", "MultiEdit", "NotebookEdit", "Read", "Bash", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "Task"}

// conversation reports what only a program with conversations could heed.
func (c *checker) conversation(n *node, a Agent) {
	what := "driver " + a.Driver
	switch {
	case a.Loop == LoopForeign:
		what = "loop foreign"
	case a.Driver == DriverACP, a.Driver == DriverClaude, a.Driver == DriverCodex, a.Driver == "":
		return
	}
	for _, key := range []string{"mode", "resume"} {
		if f := n.field(key); f != nil {
			c.add(f.place, f.value.path, "means nothing to %s; take it out, or use driver acp, claude or codex", what)
		}
	}
}
