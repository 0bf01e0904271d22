package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a file says of a program's conversation, and what holds where it is silent.
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
		"fairlead.yaml:14:18: agents.coder.permissions.otherwise: never comes to pass: with timeout 0s a person is waited for as long as it takes",
		"fairlead.yaml:16:63: agents.quiet.permissions.allow[0]: a tool \"Raed\" is known of no program (did you mean Read?)",
	}, notes); diff != "" {
		t.Errorf("notes: -want +got\n%s", strings.TrimSpace(diff))
	}
}
