package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestConversation checks the settings of a program's conversation and their defaults.
func TestConversation(t *testing.T) {
	cfg, err := Load(folder(t, map[string]string{FileName: `version: 1
agents:
  coder:
    driver: acp
    command: [opencode, acp]
    mode: build
    resume: always
    mcp: off
    permissions:
      can_write: ["*.go"]
      allow: ["Bash(git status*)", "Write(src/**)", Read, "mcp__fairlead__*"]
      deny: ["Bash(rm *)"]
      timeout: 0s
      otherwise: allow
    workspace: a
  quiet: {driver: claude, workspace: b, permissions: {allow: [Raed, own_tool]}}
`}), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	coder, quiet := cfg.Agents[0], cfg.Agents[1]
	if coder.Mode != "build" || coder.Resume != ResumeAlways || coder.MCP {
		t.Errorf("coder has mode %q, resume %q, mcp %v", coder.Mode, coder.Resume, coder.MCP)
	}
	want := Permissions{
		CanWrite: []string{"*.go"},
		Allow:    []string{"Bash(git status*)", "Write(src/**)", "Read", "mcp__fairlead__*"},
		Deny:     []string{"Bash(rm *)"}, Otherwise: OtherwiseAllow,
	}
	if diff := cmp.Diff(want, coder.Permissions); diff != "" {
		t.Errorf("coder: -want +got\n%s", diff)
	}
	if len(quiet.Command) != 1 || quiet.Command[0] != "claude" {
		t.Errorf("quiet is started as %q", quiet.Command)
	}
	if quiet.Mode != "" || quiet.Resume != ResumeInterrupted || !quiet.MCP || quiet.Permissions.Timeout != 30*time.Minute ||
		quiet.Permissions.Otherwise != OtherwiseDeny {
		t.Errorf("quiet has %+v", quiet)
	}
	var notes []string
	for _, n := range cfg.Notes {
		notes = append(notes, n.Error())
	}
	if diff := cmp.Diff([]string{
		"fairlead.yaml:14:18: agents.coder.permissions.otherwise: has no effect: with timeout 0s, the agent waits for a person without a limit",
		"fairlead.yaml:16:63: agents.quiet.permissions.allow[0]: no supported program has a tool \"Raed\" (did you mean Read?)",
	}, notes); diff != "" {
		t.Errorf("notes: -want +got\n%s", strings.TrimSpace(diff))
	}
}

// TestBoundLists checks how bounds are written; an empty list differs from an absent one.
func TestBoundLists(t *testing.T) {
	cfg, err := Load(folder(t, map[string]string{FileName: `version: 1
agents:
  free: {command: [a]}
  bound:
    command: [a]
    permissions: {can_write: [], cannot_write: [docs], can_execute: [go], cannot_execute: [git push]}
`}), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	free, bound := cfg.Agents[0], cfg.Agents[1]
	if b := free.Permissions.Bounds(); b.CanWrite != nil || b.CanExecute != nil {
		t.Errorf("the agent without bounds has %+v", b)
	}
	if b := bound.Permissions.Bounds(); b.CanWrite == nil || len(b.CanWrite) > 0 || len(b.CannotWrite) != 1 || len(b.CanExecute) != 1 ||
		b.CannotExecute[0] != "git push" {
		t.Errorf("the bounds are %+v", b)
	}
	_, err = Load(folder(t, map[string]string{FileName: `version: 1
agents:
  d: {command: [a], permissions: {can_write: ["", "a/../b", "[x"], can_execute: ["Bash(go *)"]}}
`}), environment(nil))
	if err == nil {
		t.Fatal("the file is accepted")
	}
	for _, want := range []string{
		`agents.d.permissions.can_write[1]: "a/../b" leads out by ..`, `agents.d.permissions.can_write[2]: "[x" is not a glob`,
		`agents.d.permissions.can_execute[0]: "Bash(go *)" is written as for allow and deny`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the faults do not contain %s\n%v", want, err)
		}
	}
}
