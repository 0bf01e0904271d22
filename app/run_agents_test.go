package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// TestScriptedAgentsPlayRuns checks two runs and two scripted agents with real steps. Each agent
// works on one step at a time, finds the prompt and the variables of the contract, and reports in
// the file. During a hold no step begins.
func TestScriptedAgentsPlayRuns(t *testing.T) {
	t.Parallel()
	const play = `
if ! mkdir "busy.$AGENT_ID"; then echo "overlap $RUN_ID/$STEP_ID" >> overlaps; fi
echo "$RUN_ID/$STEP_ID $AGENT_ID $STEP_ATTEMPT" >> "$REPO_DIR/played"
sleep 0.03
rmdir "busy.$AGENT_ID"
r='{"schema":"v0","run_id":"'$RUN_ID'","step_id":"'$STEP_ID'","agent":"'$AGENT_ID'","status":"ok","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"}'
echo "$r" > "$REPORT_PATH"
`
	const script = "sessions:\n  - steps:\n      - run: grep -q 'do the work'\n      - run: sh ../play.sh\n"
	w := newWorld(t,
		"version: 1\nagents:\n  ada: {driver: script, script: play.script.yaml, workspace: ada}\n  bob: {driver: script, script: play.script.yaml, workspace: bob}\n", map[string]string{
			"play.script.yaml": script, "play.sh": play, "ada/.keep": "", "bob/.keep": "", ".agents/prompts/work.md": "do the work",
			"flow.yaml": `name: shared
steps:
  - {id: one, agent: ada, prompt: work.md}
  - {id: two, agent: ada, prompt: work.md}
  - {id: three, agent: bob, prompt: work.md, needs: [one]}
  - {id: four, agent: ada, prompt: work.md, needs: [two, three]}
`,
		})
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	four := 4
	for _, id := range []string{"a", "b"} {
		y.start(view.RunFlags{Workflow: "flow.yaml", RunID: id, SideBySide: &four, Workdir: "ada"})
	}
	for _, id := range []string{"a", "b"} {
		if view := y.until(id, "it completes", over); view.Status != "completed" {
			t.Errorf("%+v", view)
		}
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "played"))
	if err != nil {
		t.Fatal(err)
	}
	played := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(played)
	if want := []string{
		"a/four ada 1", "a/one ada 1", "a/three bob 1", "a/two ada 1", "b/four ada 1", "b/one ada 1", "b/three bob 1",
		"b/two ada 1",
	}; !slices.Equal(played, want) {
		t.Errorf("played %q", played)
	}
	if w := y.count("ada/overlaps"); w > 0 {
		t.Errorf("%d times an agent worked on two steps at once", w)
	}
	if _, err := w.engine.Agents.Hold(context.Background(), human, true, ""); err != nil {
		t.Fatal(err)
	}
	y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "c", Workdir: "ada"})
	y.until("c", "its first step waits for the hold", func(v view.RunView) bool { return strings.Contains(v.Steps[0].WaitsFor, "held") })
	if n := y.count("played"); n != 8 {
		t.Errorf("%d steps were played under a hold", n-8)
	}
	if _, err := w.engine.Agents.Hold(context.Background(), human, false, ""); err != nil {
		t.Fatal(err)
	}
	if view := y.until("c", "it completes", over); view.Status != "completed" {
		t.Errorf("%+v", view)
	}
}

// TestReportThatIsSaid checks that an agent whose output is a protocol can report in its text, but
// not in the output of its tools.
func TestReportThatIsSaid(t *testing.T) {
	t.Parallel()
	const reportText = `{"schema":"v0","run_id":"said","step_id":"one","agent":"ada","status":"STATUS","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z","logs":["WHO said so"]}`
	in := func(status, who string) string {
		return "<<<RUN_REPORT_JSON\n" + strings.NewReplacer("STATUS", status, "WHO", who).Replace(reportText) + "\nRUN_REPORT_JSON>>>"
	}
	script := fmt.Sprintf("steps:\n  - say: %q\n  - say: %q\n    delay: 1ms\n  - run: cat tool.txt\n", "I begin.", in("DONE", "the agent"))
	w := newWorld(t, "version: 1\nagents:\n  ada: {driver: script, script: say.script.yaml, workspace: ada}\n", map[string]string{
		"say.script.yaml": script, "tool.txt": in("FAILED", "a tool") + "\n", "p.md": "work",
		"flow.yaml": "name: said\nsteps:\n  - {id: one, agent: ada, prompt: p.md}\n",
	})
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	one := 1
	y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "said", MaxAttempts: &one})
	view := y.until("said", "it is over", over)
	if s := view.Steps[0]; s.Status != "COMPLETED" || len(s.Logs) != 1 || s.Logs[0] != "the agent said so" {
		t.Errorf("%+v", s)
	}
}
