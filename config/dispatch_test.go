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
		{"", Dispatch{Sandbox: SandboxAuto, Commits: true}, ""},
		{"dispatch: {}", Dispatch{Sandbox: SandboxAuto, Commits: true}, ""},
		{
			"dispatch: {main: main, ranker: builtin, threshold: 0.5, tools: ['mcp__docs__*', WebThing], sandbox: off, commits: false}",
			Dispatch{Main: "main", Threshold: 0.5, Tools: []string{"mcp__docs__*", "WebThing"}, Sandbox: SandboxOff},
			"selects the built-in word count, not the agent of that name; rename the agent to use it as the ranker",
		},
		{
			"dispatch: {ranker: porter, threshold: 2, sandbox: required}",
			Dispatch{Ranker: "porter", Threshold: 2, Sandbox: SandboxRequired, Commits: true},
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

// TestOldDispatchKey checks that the former key session is read as dispatch, with a note; and that
// faults name the key that the file uses.
func TestOldDispatchKey(t *testing.T) {
	const agents = "version: 1\nagents: {main: {command: [sh]}}\n"
	cfg, err := Load(folder(t, map[string]string{FileName: agents + "session: {main: main, sandbox: off}\n"}), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Dispatch{Main: "main", Sandbox: SandboxOff, Commits: true}, cfg.Dispatch); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	note := Fault{File: FileName, Line: 3, Column: 1, Path: "session", Text: "is the old name of this key; rename it to dispatch"}
	if diff := cmp.Diff([]Fault{note}, cfg.Notes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for text, want := range map[string]string{
		"session: {mian: main}\n":               "fairlead.yaml:3:11: session.mian: there is no such key here (did you mean main?)",
		"session: 90\n":                         "fairlead.yaml:3:10: session: is a number and should be a mapping (key: value)",
		"dispatch: {}\nsession: {main: main}\n": "fairlead.yaml:4:1: session: is the old name of dispatch, which this file has too; keep only dispatch",
	} {
		if _, err := Load(folder(t, map[string]string{FileName: agents + text}), environment(nil)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, not %s", text, err, want)
		}
	}
}
