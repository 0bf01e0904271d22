package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHost checks where the steps of agents may run, and what is wrong in it.
func TestHost(t *testing.T) {
	cfg, err := Load(folder(t, map[string]string{FileName: `version: 1
agents:
  here: {command: [a]}
  any: {command: [a], workspace: b, host: any, on_lost: wait}
  gpu: {command: [a], workspace: c, host: {labels: [gpu, eu-1]}, on_lost: ask}
`}), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := []AgentHost{cfg.Agents[0].Host, cfg.Agents[1].Host, cfg.Agents[2].Host}
	want := []AgentHost{{}, {Any: true}, {Any: true, Labels: []string{"gpu", "eu-1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for i, want := range []string{"restart", "wait", "ask"} {
		if cfg.Agents[i].OnLost != want {
			t.Errorf("%s has on_lost %q", cfg.Agents[i].Name, cfg.Agents[i].OnLost)
		}
	}
	_, err = Load(folder(t, map[string]string{FileName: `version: 1
agents:
  a: {command: [a], host: anny}
  b: {command: [a], workspace: b, host: {labels: [GPU]}}
  c: {command: [a], workspace: c, on_lost: wait}
  d: {command: [a], workspace: d, loop: foreign, host: any}
  e: {command: [a], workspace: e, host: any, on_lost: never}
`}), environment(nil))
	if err == nil {
		t.Fatal("the file is accepted")
	}
	for _, want := range []string{
		`agents.a.host: cannot be "anny" (did you mean any?); it is one of any`, "agents.b.host.labels[0]: ",
		"agents.c.on_lost: has an effect only with host", "agents.d.host: has no effect with loop foreign", "agents.e.on_lost: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the faults do not contain %s\n%v", want, err)
		}
	}
}

// An agent with host takes variables from the machine on which it runs, so that of the daemon need not have them. How a
// reference is written is checked all the same.
func TestVariablesOfAnotherHost(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`host: any, env: {A: "${NOWHERE}"}`: "",
		`env: {A: "${NOWHERE}"}`:            "has no variable NOWHERE",
		`host: any, env: {A: "${NOW"}`:      "${",
	} {
		text := "version: 1\nagents:\n  coder: {command: [a], " + entry + "}\n"
		_, err := Load(folder(t, map[string]string{FileName: text}), func(string) (string, bool) { return "", false })
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}
