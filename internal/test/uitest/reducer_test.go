package uitest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

const reducedYAML = `version: 1
team: {limits: {session: 2h}}
agents:
  coder: {description: Writes code, driver: script, script: coder.script.yaml, workspace: coder, limits: {cost_per_day_usd: 50}}
  tester: {driver: exec, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done; rm -f go'], workspace: tester}
  loner: {driver: exec, command: ["true"], loop: foreign, workspace: loner}
  failer: {driver: exec, command: [sh, -c, 'exit 3'], workspace: failer}
`

const reducedScript = `sessions:
  - steps:
      - say: I begin.
      - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 0.25}
      - run: sh -c 'until [ -e go ]; do sleep 0.02; done; rm -f go'
      - usage: {input_tokens: 300, output_tokens: 20, cost_usd: 0.5}
  - steps:
      - ask: May I clean up?
        tool: Bash
        args: {command: rm -rf build}
      - run: sh -c 'until [ -e go ]; do sleep 0.02; done; rm -f go'
`

const reducedWorkflow = `name: one
steps:
  - id: check
    agent: tester
    prompt: check.md
`

// notInJournal are the fields of an agent's view that its own changes do not carry. The page gets the
// first three from the agent's shim and the fourth from a file, with the next snapshot; the last two
// follow from changes of the crew, of channels and of usage. The status is derived from the rest and
// compared by itself.
var notInJournal = []string{
	"evidence_age_ms", "doubt", "certainty", "file_behind", "presence", "turn", "disabled", "over_limit", "status", "status_why",
	"idle_reason", "derived", "idle",
}

type teamView struct {
	Head   uint64           `json:"head"`
	Hold   bool             `json:"hold"`
	Agents []map[string]any `json:"agents"`
}

// TestReducerAgreesWithServer checks that the reducer of the page, with one snapshot and the
// changes after it, gives the same agents as GET /api/v1/agents later. The snapshots are taken from
// the real server: in sessions, after them, with an open question, in a queue, during a hold and
// after a failure.
func TestReducerAgreesWithServer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		uitest.Lacks(t, "this test runs the page's reducer in node, and there is none")
	}
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": reducedYAML, "coder/coder.script.yaml": reducedScript, "coder.script.yaml": reducedScript,
		"one.yaml": reducedWorkflow, "check.md": "Run the tests.\n",
	})
	for _, dir := range []string{"coder", "tester", "loner", "failer"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var snapshots []json.RawMessage
	// reach waits until an agent's view has a property, and keeps the snapshot.
	reach := func(what, agent string, holds func(map[string]any) bool) {
		t.Helper()
		var body []byte
		if !wait.Poll(func() bool {
			body = s.Do("GET", "/agents", nil)
			var team teamView
			if err := json.Unmarshal(body, &team); err != nil {
				t.Fatal(err)
			}
			for _, a := range team.Agents {
				if a["name"] == agent && holds(a) {
					snapshots = append(snapshots, body)
					return true
				}
			}
			return false
		}) {
			t.Fatalf("waited for %s to be %s: %s", agent, what, body)
		}
	}
	is := func(field string, want any) func(map[string]any) bool {
		return func(a map[string]any) bool { return fmt.Sprint(a[field]) == fmt.Sprint(want) }
	}
	phase := func(want string) func(map[string]any) bool {
		return func(a map[string]any) bool {
			session, _ := a["session"].(map[string]any)
			return session != nil && session["phase"] == want
		}
	}
	order := func(path, body string) { t.Helper(); s.Do("POST", path, strings.NewReader(body)) }

	reach("idle", "coder", is("current_state", "pause"))
	order("/agents/coder/once", `{"note":"try it"}`)
	reach("in a session", "coder", phase("running"))
	reach("with usage", "coder", func(a map[string]any) bool { return a["usage_today"].(map[string]any)["cost_usd"] == 0.25 })
	s.Put("coder/go", "")
	reach("idle again", "coder", is("session", nil))

	order("/agents/coder/once", `{}`)
	reach("asking", "coder", is("asks", 1))
	var inbox struct {
		Items []struct{ Question struct{ ID string } }
	}
	if err := json.Unmarshal(s.Do("GET", "/inbox", nil), &inbox); err != nil || len(inbox.Items) != 1 {
		t.Fatalf("the inbox: %+v, %v", inbox, err)
	}
	order("/questions/"+inbox.Items[0].Question.ID+"/answer", `{"allow":false,"scope":"once"}`)
	reach("denied", "coder", is("denied", 1))
	s.Put("coder/go", "")
	reach("idle after the denial", "coder", is("session", nil))

	order("/runs", `{"workflow":"one.yaml"}`)
	reach("in a step", "tester", phase("running"))
	order("/agents/tester/once", `{}`)
	reach("in the queue", "tester", func(a map[string]any) bool { return a["waiting_behind"] != "" })
	s.Put("go", "") // the working folder of a step is the root of the repository
	reach("next", "tester", func(a map[string]any) bool { return a["waiting_behind"] == "" && phase("running")(a) })
	s.Put("tester/go", "")
	reach("idle after both", "tester", is("session", nil))

	order("/agents/failer/start", `{}`)
	reach("backing off", "failer", func(a map[string]any) bool { return a["retry_at"] != nil && a["session"] == nil })
	order("/agents/failer/stop", `{}`)
	reach("stopped", "failer", is("desired_state", "pause"))

	order("/agents/loner/start", `{}`)
	reach("wanted", "loner", is("desired_state", "continuous"))
	order("/hold", `{"note":"lunch"}`)
	reach("held", "loner", is("desired_state", "pause"))
	order("/unhold", `{}`)
	reach("released", "loner", is("desired_state", "continuous"))

	compareReduced(t, snapshots, s.Do("GET", "/journal?after=0&limit=1000", nil))
}

// compareReduced applies the changes after the first snapshot and compares at each of the others.
func compareReduced(t *testing.T, snapshots []json.RawMessage, page []byte) {
	t.Helper()
	var journal struct{ Changes []json.RawMessage }
	if err := json.Unmarshal(page, &journal); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]any{"snapshots": snapshots, "changes": journal.Changes})
	if err != nil {
		t.Fatal(err)
	}
	program := `
		import { agentOf, fromSnapshot, reduce, reduceHold, teamOf } from ` +
		fmt.Sprintf("%q", "file://"+filepath.Join(uitest.UIDir(), "static", "shell", "reducer.js")) + `;
		import { idleReason, statusOf } from ` +
		fmt.Sprintf("%q", "file://"+filepath.Join(uitest.UIDir(), "static", "shell", "status.js")) + `;
		import { readFileSync } from 'node:fs';
		const { snapshots, changes } = JSON.parse(readFileSync(0, 'utf8'));
		const [first] = snapshots;
		const known = new Map(first.agents.map((a) => [a.name, fromSnapshot(a)]));
		const team = { hold: first.hold };
		let at = first.head;
		const out = [];
		for (const snapshot of snapshots) {
			for (const ch of changes) {
				if (ch.seq <= at || ch.seq > snapshot.head) continue;
				const set = teamOf(ch);
				if (set && set.hold !== team.hold) { team.hold = set.hold; for (const [name, k] of known) known.set(name, reduceHold(k, team)); }
				const name = agentOf(ch);
				if (known.has(name)) known.set(name, reduce(known.get(name), ch, team));
			}
			at = snapshot.head;
			out.push([...known.values()].map((k) => ({ ...k.agent, complete: k.complete, derived: statusOf(k.agent, snapshot.stopping, 0), idle: idleReason(k.agent, statusOf(k.agent, snapshot.stopping, 0)) })));
		}
		process.stdout.write(JSON.stringify(out));`
	cmd := exec.Command("node", "--input-type=module", "--eval", program)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("run the reducer: %v", err)
	}
	var reduced [][]map[string]any
	if err := json.Unmarshal(text, &reduced); err != nil {
		t.Fatal(err)
	}
	for i, raw := range snapshots {
		var want teamView
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		for j, agent := range want.Agents {
			got := reduced[i][j]
			if got["complete"] != true {
				t.Errorf("snapshot %d at %d: %v is not complete: the page would ask the server", i, want.Head, got["name"])
			}
			delete(got, "complete")
			reason, _ := agent["idle_reason"].(string)
			if agent["status"] != got["derived"] || reason != got["idle"] {
				t.Errorf("snapshot %d at %d: %v is %v (%v), and the page shows %v (%v)", i, want.Head, agent["name"], agent["status"],
					reason, got["derived"], got["idle"])
			}
			for _, field := range notInJournal {
				delete(got, field)
				delete(agent, field)
			}
			if diff := cmp.Diff(agent, got); diff != "" {
				t.Errorf("snapshot %d at %d: %v (-server +reducer):\n%s", i, want.Head, agent["name"], diff)
			}
		}
	}
}
