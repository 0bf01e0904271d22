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
	if quiet.Mode != "" || quiet.Resume != ResumeInterrupted || !quiet.MCP || quiet.Permissions.Timeout != 30*time.Minute || quiet.Permissions.Otherwise != OtherwiseDeny {
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

// TestBounds checks how bounds and the sandbox are written; an empty list differs from an absent one.
func TestBoundsAndSandbox(t *testing.T) {
	dir := folder(t, map[string]string{FileName: `version: 1
agents:
  free: {command: [a]}
  bound:
    command: [a]
    permissions: {can_write: [], cannot_write: [docs], can_execute: [go], cannot_execute: [git push]}
    sandbox: workspace
  more: {driver: codex, sandbox: {write: [cache, /srv/data/, ~/go], sockets: true}}
  off: {command: [a], sandbox: off}
`})
	t.Setenv("HOME", "/home/you")
	cfg, err := Load(dir, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	free, bound, more, off := cfg.Agents[0], cfg.Agents[1], cfg.Agents[2], cfg.Agents[3]
	if b := free.Permissions.Bounds(); b.CanWrite != nil || b.CanExecute != nil || free.Sandbox.On || off.Sandbox.On {
		t.Errorf("the agent without bounds has %+v, %+v, %+v", b, free.Sandbox, off.Sandbox)
	}
	if b := bound.Permissions.Bounds(); b.CanWrite == nil || len(b.CanWrite) > 0 || len(b.CannotWrite) != 1 || len(b.CanExecute) != 1 || b.CannotExecute[0] != "git push" || !bound.Sandbox.On {
		t.Errorf("the bounds are %+v, the sandbox %+v", b, bound.Sandbox)
	}
	if diff := cmp.Diff(AgentSandbox{On: true, Sockets: true, Write: []string{cfg.Dir + "/cache", "/srv/data", "/home/you/go"}}, more.Sandbox); diff != "" {
		t.Errorf("the sandbox: -want +got\n%s", diff)
	}
	if len(cfg.Notes) != 1 || !strings.Contains(cfg.Notes[0].Error(), "agents.more.sandbox: replaces codex's own sandbox") {
		t.Errorf("the notes are %v", cfg.Notes)
	}
	_, err = Load(folder(t, map[string]string{FileName: `version: 1
agents:
  a: {command: [a], sandbox: workspce}
  b: {command: [a], sandbox: {write: [/, /proc/self, .]}}
  c: {command: [a], sandbox: 5}
  d: {command: [a], permissions: {can_write: ["", "a/../b", "[x"], can_execute: ["Bash(go *)"]}}
`}), environment(nil))
	if err == nil {
		t.Fatal("the file is accepted")
	}
	for _, want := range []string{
		`agents.a.sandbox: is "workspce"; it should be workspace, auto, off, or a mapping with write (did you mean workspace?)`,
		`agents.b.sandbox.write[0]: "/" cannot be opened in a sandbox`, `agents.b.sandbox.write[1]: "/proc/self" cannot be opened in a sandbox`, `agents.b.sandbox.write[2]: "." is the folder of fairlead.yaml`,
		`agents.c.sandbox: `, `agents.d.permissions.can_write[1]: "a/../b" leads out by ..`, `agents.d.permissions.can_write[2]: "[x" is not a glob`,
		`agents.d.permissions.can_execute[0]: "Bash(go *)" is written as for allow and deny`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the faults do not contain %s\n%v", want, err)
		}
	}
}
