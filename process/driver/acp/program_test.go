package acp

import (
	"slices"
	"testing"
)

// TestArguments checks that a program whose subagents would do more without a question than its agent
// starts none, except in the modes in which they would not.
func TestArguments(t *testing.T) {
	alone := []string{"--exclude-tools", "agent"}
	for _, c := range []struct {
		command, mode string
		servers       bool
		want          []string
	}{
		{"qwen", "", false, alone},
		{"qwen", "default", false, alone},
		{"qwen", "plan", false, alone},
		{"qwen", "a new one", false, alone},
		{"qwen", "auto-edit", false, nil},
		{"qwen", "YOLO", false, nil}, // by its name
		{"qwen", "", true, append([]string{"--allowed-tools", "mcp__fairlead"}, alone...)},
		{"qwen", "yolo", true, []string{"--allowed-tools", "mcp__fairlead"}},
		{"gemini", "", true, nil},
		{"unknown", "", true, nil},
	} {
		if got := knownProgram([]string{"/usr/bin/" + c.command}).arguments(c.mode, c.servers); !slices.Equal(got, c.want) {
			t.Errorf("%s in mode %q, servers %t: %q, want %q", c.command, c.mode, c.servers, got, c.want)
		}
	}
}
