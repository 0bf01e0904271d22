package app

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// TestStepInItsView plays a run with agents in views: each step finds its prompt and what it needs of others, writes its report and
// its artifacts at the paths of the contract, and reaches nothing else of the run.
func TestStepInItsView(t *testing.T) {
	inASandbox(t)
	const play = `
report() { echo '{"schema":"v0","run_id":"'$RUN_ID'","step_id":"'$STEP_ID'","agent":"'$AGENT_ID'","status":"ok","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z","artifacts":['$1']}' > "$REPORT_PATH"; }
grep -q 'do the work' "$PROMPT_PATH" || exit 1
case $STEP_ID in
one)
  echo first > "$ARTIFACTS_DIR/first.txt"
  report '"'$ARTIFACTS_DIR/first.txt'"'
  ;;
two)
  {
    cat "$DEP_ONE_ARTIFACT_0"
    ls -A "$(dirname "$REPORT_PATH")"
    ls -A ../.fairlead
    echo forged > "$(dirname "$REPORT_PATH")/${RUN_ID}__one.json" && echo written
    echo changed > "$DEP_ONE_ARTIFACT_0" && echo changed
    (echo x > "$(dirname "$ARTIFACTS_DIR")/run_state.json") || echo kept
  } 2> faults > seen
  echo second > "$ARTIFACTS_DIR/second.txt"
  report '"'$ARTIFACTS_DIR/second.txt'"'
  ;;
esac
`
	const script = "sessions:\n  - steps:\n      - run: grep -q 'do the work'\n      - run: sh ../play.sh\n"
	w := newWorld(t, "version: 1\nagents:\n  ada: {driver: script, script: play.script.yaml, workspace: ada, sandbox: workspace}\n",
		map[string]string{
			"play.script.yaml": script, "play.sh": play, "ada/.keep": "", ".agents/prompts/work.md": "do the work",
			".agents/runs/old/secret": "secret",
			"flow.yaml":               "name: views\nsteps:\n  - {id: one, agent: ada, prompt: work.md}\n  - {id: two, agent: ada, prompt: work.md, needs: [one]}\n",
		})
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "r", Workdir: "ada"})
	if view := y.until("r", "it completes", over); view.Status != "completed" {
		t.Fatalf("%+v", view)
	}
	read := func(p string) string {
		text, err := os.ReadFile(w.path(p))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if seen := read("ada/seen"); seen != "first\nwritten\nchanged\nkept\n" {
		t.Errorf("it saw %q; %s", seen, read("ada/faults"))
	}
	if first, second := read(".agents/runs/r/artifacts/first.txt"), read(".agents/runs/r/artifacts/second.txt"); first != "first\n" ||
		second != "second\n" {
		t.Errorf("the artifacts are %q and %q", first, second)
	}
	if report := read(".agents/runs/r/reports/r__one.json"); strings.Contains(report, "forged") {
		t.Error("a step has changed the report of another one")
	}
	if left, err := os.ReadDir(w.path(".fairlead/tmp")); err == nil && len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
