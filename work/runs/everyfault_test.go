package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestFaultsWithUnknownAgents checks that unknown agents are listed together with the faults of the file, in its order. A
// step whose agent or command is faulty itself is listed once, and with a wrapper every name of an agent is right.
func TestFaultsWithUnknownAgents(t *testing.T) {
	dir := t.TempDir()
	flow := filepath.Join(dir, "flow.yaml")
	text := `name: flow
steps:
  - {id: a, agent: stranger, prompt: none.md, needs: [missing]}
  - {id: b, agent: other, prompt: none.md, needs: [c]}
  - {id: c, agent: coder, prompt: none.md, needs: [b]}
  - {id: d, agent: label, command: make}
  - {id: e, agent: [x], prompt: none.md}
`
	if err := os.WriteFile(flow, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.sh"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a wrapper
		t.Fatal(err)
	}
	conf := &config.Config{Dir: dir, Agents: []config.Agent{{Name: "coder"}}}
	for _, c := range []struct {
		wrapper string
		want    []string
	}{
		{"", []string{
			"flow.yaml:3:20: steps.a.agent: no agent \"stranger\" is configured", "steps.a.prompt: ",
			"steps.a.needs[0]: no step is called \"missing\"",
			"flow.yaml:4:20: steps.b.agent: no agent \"other\"", "steps.b.prompt: ", "steps.b.needs: b -> c -> b", "steps.c.prompt: ",
			"steps.d.command: is a text", "steps.e.agent: is a list", "steps.e.prompt: ",
		}},
		{"w.sh", []string{
			"steps.a.prompt: ", "steps.a.needs[0]: ", "steps.b.prompt: ", "steps.b.needs: b -> c -> b", "steps.c.prompt: ",
			"steps.d.command: is a text", "steps.e.agent: is a list", "steps.e.prompt: ",
		}},
	} {
		_, err := CheckWorkflow(view.RunFlags{Workflow: flow, Wrapper: c.wrapper}, conf)
		if err == nil {
			t.Fatal("no faults")
		}
		lines := strings.Split(err.Error(), "\n")
		for i, line := range lines {
			if i >= len(c.want) || !strings.Contains(line, c.want[i]) {
				t.Errorf("wrapper %q: line %d: %s", c.wrapper, i, line)
			}
		}
		if len(lines) != len(c.want) {
			t.Errorf("wrapper %q: %d faults, want %d", c.wrapper, len(lines), len(c.want))
		}
	}
	ok := strings.Join(strings.Split(text, "\n")[:2], "\n") + "\n  - {id: a, command: [make]}\n"
	if err := os.WriteFile(flow, []byte(ok), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := CheckWorkflow(view.RunFlags{Workflow: flow}, conf); err != nil {
		t.Errorf("a right one: %v", err)
	}
}
