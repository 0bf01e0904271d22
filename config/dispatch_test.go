package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDispatch checks the settings of dispatch and their defaults.
func TestDispatch(t *testing.T) {
	const agents = "version: 1\nagents: {main: {command: [sh], workspace: a}, porter: {command: [sh], workspace: b}, builtin: {command: [sh], workspace: c}}\n"
	for _, tt := range []struct {
		text string
		want Dispatch
		note string
	}{
		{"", Dispatch{Sandbox: AgentSandbox{Mode: SandboxAuto}, Commits: true}, ""},
		{"dispatch: {}", Dispatch{Sandbox: AgentSandbox{Mode: SandboxAuto}, Commits: true}, ""},
		{
			"dispatch: {main: main, ranker: builtin, threshold: 0.5, tools: ['mcp__docs__*', WebThing], sandbox: off, commits: false}",
			Dispatch{Main: "main", Threshold: 0.5, Tools: []string{"mcp__docs__*", "WebThing"}, Sandbox: AgentSandbox{Mode: SandboxOff}},
			"selects the built-in word count, not the agent of that name; rename the agent to use it as the ranker",
		},
		{
			"dispatch: {ranker: porter, threshold: 2, sandbox: required}",
			Dispatch{Ranker: "porter", Threshold: 2, Sandbox: AgentSandbox{Mode: SandboxRequired}, Commits: true},
			"",
		},
		{
			"dispatch: {main: main, sandbox: {read: [/srv/docs]}}",
			Dispatch{Main: "main", Sandbox: AgentSandbox{Mode: SandboxWorkspace, Read: []string{"/srv/docs"}}, Commits: true},
			"",
		},
	} {
		cfg, err := Load(folder(t, map[string]string{FileName: agents + tt.text}), environment(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, cfg.Dispatch); diff != "" {
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
