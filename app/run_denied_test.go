package app

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// TestStepThatWasDenied checks that a step with denied calls says so in its logs if it succeeded,
// and that its report still counts (issue 8, item 4). A question without an answer in time is
// denied, too.
func TestStepThatWasDenied(t *testing.T) {
	t.Parallel()
	const script = `
sessions:
  - steps:
      - expect_prompt
      - {ask: "May I clean up?", tool: Bash, args: {command: "rm -rf build"}}
      - {run: 'if [ "$ANSWER" = allow ]; then echo "cleaned"; else echo "not cleaned"; fi', says: true}
      - {ask: "May I look?", tool: Bash, args: {command: "git status"}}
      - {run: 'if [ "$ANSWER" = allow ]; then echo "looked"; else echo "not looked"; fi', says: true}
      - {ask: "May I push?", tool: Bash, args: {command: "git push"}}
      - {run: 'if [ "$ANSWER" = allow ]; then echo "pushed"; else echo "not pushed"; fi', says: true}
      - run: sh ../report.sh
`
	w := newWorld(t, `version: 1
agents:
  ada: {driver: script, script: asks.script.yaml, workspace: ada, permissions: {allow: ["Bash(git status*)"], deny: ["Bash(rm *)"], timeout: 1s}}
`, map[string]string{
		"asks.script.yaml": script, "ada/.keep": "", ".agents/prompts/work.md": "do the work",
		"report.sh": `echo '{"schema":"v0","run_id":"'$RUN_ID'","step_id":"'$STEP_ID'","agent":"ada","status":"ok","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z","logs":["built"]}' > "$REPORT_PATH"` + "\n",
		"flow.yaml": "name: asking\nsteps:\n  - {id: one, agent: ada, prompt: work.md}\n",
	})
	y := &runWorld{App: w.engine, t: t, dir: w.dir}
	<-y.Loop.Ready()
	y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "r", Workdir: "ada"})
	view := y.until("r", "it completes", over)
	if view.Status != "completed" || len(view.Steps) != 1 {
		t.Fatalf("it is %+v", view)
	}
	logs := view.Steps[0].Logs
	if len(logs) != 2 || logs[0] != "built" || logs[1] != "2 calls were denied: Bash rm -rf build; Bash git push" {
		t.Errorf("logs: %q", logs)
	}
	if got := view.Steps[0].Denied; got != logs[1] {
		t.Errorf("the step has %q", got)
	}
	if v, err := w.engine.Status.Agent(t.Context(), "ada"); err != nil || v.Asks != 0 {
		t.Errorf("%d questions are left, %v", v.Asks, err)
	}
	table, err := w.engine.Status.Usage(t.Context(), false)
	if err != nil || len(table.Runs) != 1 || table.Runs[0].Run != "r" || table.Runs[0].Sessions != 1 || len(table.Agents) != 1 {
		t.Errorf("usage: %+v, %v", table, err)
	}
	usedBefore(t, y, table.Runs[0])
	if why, err := w.engine.Status.Why(t.Context(), "ada"); err != nil || len(why.Sessions) == 0 ||
		!strings.Contains(why.Sessions[0].Why, "2 calls were denied") {
		t.Errorf("why says %+v, %v", why.Sessions, err)
	}
}

// usedBefore archives the only run and checks that its usage is still shown.
func usedBefore(t *testing.T, y *runWorld, was view.UsageRow) {
	t.Helper()
	if got := y.prune(0, 0, true, false); got != "r" {
		t.Fatalf("archived: %q", got)
	}
	table, err := y.Status.Usage(t.Context(), false)
	if err != nil || len(table.Runs) != 0 || table.Archived != 1 {
		t.Errorf("without the archive it is %+v, %v", table, err)
	}
	was.Archived = true
	table, err = y.Status.Usage(t.Context(), true)
	if err != nil || len(table.Runs) != 1 || table.Runs[0] != was {
		t.Errorf("with the archive it is %+v, %v; want %+v", table.Runs, err, was)
	}
}
