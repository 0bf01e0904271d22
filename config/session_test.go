package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a file says of sessions, and what holds where it is silent.
func TestSession(t *testing.T) {
	const agents = "version: 1\nagents: {main: {command: [sh], workspace: a}, porter: {command: [sh], workspace: b}, builtin: {command: [sh], workspace: c}}\n"
	for _, tt := range []struct {
		text string
		want Session
		note string
	}{
		{"", Session{Sandbox: SandboxAuto, Commits: true}, ""},
		{"session: {}", Session{Sandbox: SandboxAuto, Commits: true}, ""},
		{
			"session: {main: main, ranker: builtin, threshold: 0.5, tools: ['mcp__docs__*', WebThing], sandbox: off, commits: false}",
			Session{Main: "main", Threshold: 0.5, Tools: []string{"mcp__docs__*", "WebThing"}, Sandbox: SandboxOff},
			"means the counting of words, and not the agent of that name; give the agent another one to have it asked",
		},
		{
			"session: {ranker: porter, threshold: 2, sandbox: required}",
			Session{Ranker: "porter", Threshold: 2, Sandbox: SandboxRequired, Commits: true},
			"",
		},
	} {
		cfg, err := Load(folder(t, map[string]string{FileName: agents + tt.text}), environment(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, cfg.Session); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.text, diff)
		}
		var notes string
		for _, n := range cfg.Notes {
			notes += n.Text
		}
		if notes != tt.note {
			t.Errorf("%s: notes %q, not %q", tt.text, notes, tt.note)
		}
	}
}
