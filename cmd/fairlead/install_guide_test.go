package main

import (
	"os"
	"testing"
)

// doc/claude.md: every command in it is run.
func TestClaudeGuide(t *testing.T) {
	if os.Getenv("CLAUDECODE") != "" {
		t.Skip("an agent runs this, and the page begins a session, which only a person may")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", home+"/state")
	t.Setenv("FAIRLEAD_MARK", "") // the test itself may run in an agent's shell
	_, seen := follow(t, "claude.md")
	inOrder(t, seen,
		"would write", "PreToolUse", "wrote", "next: start claude anew",
		"Agent State Machine Initialized", "Conv: 001", "fullstack-engineer",
		`"permissionDecision":"deny","permissionDecisionReason":"Fairlead (D8, MAIN): this requires to write a Python script`,
		"fullstack-engineer may do it",
		"has ended the session", "removed")
}
