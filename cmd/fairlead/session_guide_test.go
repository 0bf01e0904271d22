package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that doc/dispatch.md lets people type works as it stands, in the order in which it
// stands there, and what it says of it is what is seen.
func TestSessionGuide(t *testing.T) {
	t.Parallel()
	dir, seen := follow(t, "dispatch.md", "git", "python3")
	inOrder(t, seen,
		"Agent State Machine Initialized", "[State: MAIN]", "Available Agents: 2 agents loaded",
		"Waiting for first user input to create conversation...",
		"[State: MAIN] [Conv: 001] I can help with planning",
		"[State: MAIN] [Conv: 002]", `[MAIN → FULLSTACK_ENGINEER]  # Matched: "Write" + "Python"`,
		"[FULLSTACK_ENGINEER → MAIN]  # Task completed", "[State: MAIN] [Conv: 002] I wrote hello_world.py.",
		"[State: MAIN] [Conv: 003] You're welcome!", "[State: MAIN] [Conv: 004] I created a Python script",
		"conv_002", "by fullstack-engineer", "conv_002/outputs/hello_world.py",
		"fullstack-engineer", "[MAIN → FULLSTACK_ENGINEER]  # ", "MAIN keeps it: ", `{"best":"database-architect"`,
		"allow", "deny: ", "delegate it to ", "exit code 3", "deny: ", "exit code 3",
		"is closed; its folder stays", "Agent State Machine Initialized",
		"[MAIN → FULLSTACK_ENGINEER]", "[FULLSTACK_ENGINEER → MAIN]", "conv_001 is closed",
		"**WORKSPACE REQUIREMENTS:**", "Task failed", "conv_002 is closed", "SESSION", "closed", "is closed; its folder stays",
	)
	found, err := filepath.Glob(filepath.Join(dir, "session", ".claude", "agent-state-machine", "*", "conversations", "messages.jsonl"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	for i, want := range []string{"conv_004", `"summary": "A second look", "files_created": [], "agents_used": ["fullstack-engineer"]}`} {
		if text, err := os.ReadFile(found[i]); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %s: %v\n%s", found[i], want, err, text)
		}
	}
}
