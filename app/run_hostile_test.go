package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/team"
)

// saying is a shell function for steps: `say STATUS [MORE [RUN [STEP]]]` prints a report.
const saying = `say() { printf '{"schema":"run_report@v0","run_id":"%s","step_id":"%s","agent":"a","status":"%s","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"%s}' "${3:-$RUN_ID}" "${4:-$STEP_ID}" "$1" "$2"; }
`

// oddStep is a step with unusual behavior and its expected result.
type oddStep struct {
	id, does string
	more     string // a line of its YAML
	status   string
	says     string // part of its last_error
}

// oddWorkflow returns a workflow of independent steps, except where they name needs.
func (y *runWorld) oddWorkflow(list []oddStep) string {
	y.t.Helper()
	var flow strings.Builder
	flow.WriteString("name: odd\nsteps:\n")
	for _, d := range list {
		fmt.Fprintf(&flow, "  - id: %s\n    command: %s\n", d.id, quoted(saying+d.does))
		if d.more != "" {
			fmt.Fprintf(&flow, "    %s\n", d.more)
		}
	}
	return y.file("flow.yaml", flow.String())
}

// compareSteps compares the results of the steps.
func (y *runWorld) compareSteps(view view.RunView, list []oddStep) {
	y.t.Helper()
	for i, d := range list {
		s := view.Steps[i]
		if s.Status != d.status || !strings.Contains(s.LastError, d.says) || d.says == "" && s.LastError != "" {
			y.t.Errorf("%s: %s %q, want %s %q", d.id, s.Status, s.LastError, d.status, d.says)
		}
	}
}

func (y *runWorld) report(run, step string) string {
	return filepath.Join(y.dir, ".agents", "runs", run, "reports", run+"__"+step+".json")
}

// SPEC Workflow: which files are reports and which are not. A fault is quoted, and no fault affects
// another step.
func TestInvalidReports(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	list := []oddStep{
		{
			id:     "half_then_whole",
			does:   `say COMPLETED | head -c 60 > "$REPORT_PATH"; sleep 0.1; say COMPLETED > "$REPORT_PATH"; sleep 0.1`,
			status: "COMPLETED",
		},
		{id: "half", does: `say COMPLETED | head -c 60 > "$REPORT_PATH"`, status: "FAILED", says: "unexpected end of JSON"},
		{id: "empty", does: `: > "$REPORT_PATH"`, status: "FAILED", says: "report refused"},
		{id: "twice", does: `say FAILED > "$REPORT_PATH"; sleep 0.05; say COMPLETED > "$REPORT_PATH"`, status: "COMPLETED"},
		{
			id:     "twice_printed",
			does:   `for s in FAILED COMPLETED; do echo '<<<RUN_REPORT_JSON'; say $s; echo; echo 'RUN_REPORT_JSON>>>'; done`,
			status: "COMPLETED",
		},
		{id: "twice_in_one", does: `(say COMPLETED; say COMPLETED) > "$REPORT_PATH"`, status: "FAILED", says: "report refused"},
		{id: "half_printed", does: `echo '<<<RUN_REPORT_JSON'; say COMPLETED; echo`, status: "FAILED", says: "in the output"},
		{id: "placeholder", does: `say COMPLETED > "$REPORT_PATH"`, status: "COMPLETED"},
		{
			id: "path_placeholder", does: `say COMPLETED ',"artifacts":["<path to the plan>"]' > "$REPORT_PATH"`, status: "FAILED",
			says: "<path to the plan>",
		},
		{
			id: "agent_placeholder", does: `say COMPLETED | sed 's/"agent":"a"/"agent":"<your agent id>"/' > "$REPORT_PATH"`,
			status: "FAILED",
			says:   "placeholder",
		},
		{
			id: "missing", does: `say COMPLETED | sed 's/"schema":"run_report@v0",//; s/,"ended_at":[^}]*//' > "$REPORT_PATH"`,
			status: "FAILED", says: "missing: schema, ended_at",
		},
		{id: "other_run", does: `say COMPLETED "" r0 > "$REPORT_PATH"`, status: "FAILED", says: `run_id is "r0"`},
		{id: "other_step", does: `say COMPLETED "" "" half > "$REPORT_PATH"`, status: "FAILED", says: `step_id is "half"`},
		{id: "case", does: `say cOmPlEtEd > "$REPORT_PATH"`, status: "COMPLETED"},
		{id: "passed", does: `say ' Passed ' > "$REPORT_PATH"`, status: "COMPLETED"},
		{id: "no_status", does: `say MOSTLY > "$REPORT_PATH"`, status: "FAILED", says: `write COMPLETED or FAILED`},
		{
			id: "large", does: `(say COMPLETED; head -c 17000000 /dev/zero | tr '\0' ' ') > "$REPORT_PATH"`, status: "FAILED",
			says: "larger than 16 MiB",
		},
		{
			id: "artifacts", does: `say COMPLETED ",\"artifacts\":[\"a\"$(yes ',"a"' | head -n 1000 | tr -d '\n')]" > "$REPORT_PATH"`,
			status: "COMPLETED",
		},
		{id: "binary", does: `head -c 4096 /dev/urandom > "$REPORT_PATH"`, status: "FAILED", says: "report refused"},
		{
			id: "link", does: `say COMPLETED > elsewhere.json; ln -s "$PWD/elsewhere.json" "$REPORT_PATH"`, status: "FAILED",
			says: "report refused",
		},
		{id: "pipe", does: `mkfifo "$REPORT_PATH"`, status: "FAILED", says: "report refused"},
		{id: "folder", does: `mkdir "$REPORT_PATH"`, status: "FAILED", says: "report refused"},
		{id: "exit_3", does: `say COMPLETED > "$REPORT_PATH"; exit 3`, status: "COMPLETED"},
		{id: "killed", does: `say COMPLETED > "$REPORT_PATH"; kill -9 $$`, status: "COMPLETED"},
		{
			id: "failed_exit_0", does: `say FAILED ',"logs":["the tests are red"]' > "$REPORT_PATH"`, status: "FAILED",
			says: "the tests are red",
		},
		{id: "silent", does: `true`, status: "COMPLETED"},
		{
			id: "silent_exit_3", does: `echo tests are red; echo 'see <b>test.log</b>' >&2; exit 3`, status: "FAILED",
			says: "exit code 3: tests are red\nsee <b>test.log</b>",
		},
		{id: "silent_killed", does: `kill -9 $$`, status: "FAILED", says: "SIGKILL"},
		{id: "old", does: `test ! -e "$REPORT_PATH"`, status: "COMPLETED"},
	}
	y.file(filepath.Join(".agents", "runs", "lies", "reports", "lies__old.json"),
		`{"schema":"run_report@v0","run_id":"lies","step_id":"old","agent":"a","status":"COMPLETED","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"}`)
	one := 1
	y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "lies", MaxAttempts: &one})
	view := y.until("lies", "it is over", over)
	y.compareSteps(view, list)
	if kept, _ := filepath.Glob(y.report("lies", "old") + ".lease*"); len(kept) != 1 {
		t.Errorf("the earlier report is kept as %v", kept)
	}
	if text, err := os.ReadFile(y.report("lies", "half")); err != nil || len(text) != 60 {
		t.Errorf("the unreadable report is not kept: %q, %v", text, err)
	}
}

// TestReportsThatAreLate checks that a report after the end of its attempt is ignored. It counts
// neither for the next attempt nor for a failed step.
func TestReportsThatAreLate(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	const late = `{"schema":"run_report@v0","run_id":"late","step_id":"one","agent":"a","status":"COMPLETED","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"}`
	flow := y.oddWorkflow([]oddStep{{
		id:   "one",
		does: `if test -e "$REPORT_PATH"; then say COMPLETED > "$REPORT_PATH"; fi; echo not yet; exit 4`,
	}})
	y.start(view.RunFlags{Workflow: flow, RunID: "late"})
	y.until("late", "it waits for its second try",
		func(v view.RunView) bool { return v.Steps[0].Status == "PENDING" && v.Steps[0].Attempts == 1 })
	y.file(filepath.Join(".agents", "runs", "late", "reports", "late__one.json"), late)
	shown := y.until("late", "it has failed", over)
	if s := shown.Steps[0]; s.Status != "FAILED" || s.Attempts != 2 || !strings.Contains(s.LastError, "not yet") {
		t.Errorf("the second attempt: %+v", s)
	}
	if kept, _ := filepath.Glob(y.report("late", "one") + ".lease*"); len(kept) != 1 {
		t.Errorf("the late report is kept as %v", kept)
	}
	y.file(filepath.Join(".agents", "runs", "late", "reports", "late__one.json"), late)
	if _, err := y.Runs.ResumeRun(t.Context(), human, "late", view.RunFlags{}); err != nil {
		t.Fatal(err)
	}
	shown = y.until("late", "it has failed again", func(v view.RunView) bool { return over(v) && v.Steps[0].Attempts == 2 })
	if shown.Status != "failed" {
		t.Errorf("after a report that is too late: %+v", shown)
	}
}

// W6 while a later step runs: its process is ended with all its child processes, and its report,
// which exists already, does not count.
func TestLoopBackOverTakesAReport(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	list := []oddStep{
		{id: "code", does: `say COMPLETED > "$REPORT_PATH"`},
		{
			id: "docs", more: "needs: [code]",
			does: `echo x >> docs.runs; say COMPLETED ",\"logs\":[\"round $(wc -l < docs.runs | tr -d ' ')\"]" > "$REPORT_PATH"; test $(wc -l < docs.runs) -gt 1 || sleep 1000`,
		},
		{
			id: "review", more: "needs: [code]\n    loop_back_to: code",
			does: `if [ -e reviewed ]; then say COMPLETED; else until [ -s docs.runs ]; do sleep 0.01; done; touch reviewed; sleep 0.05; say COMPLETED ',"gate_failure":"too slow"'; fi > "$REPORT_PATH"`,
		},
	}
	three := 3
	y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "back", SideBySide: &three})
	view := y.until("back", "it completes", over)
	docs := view.Steps[1]
	if view.Status != "completed" || docs.Iteration != 1 || len(docs.Logs) != 1 || docs.Logs[0] != "round 2" {
		text, _ := json.MarshalIndent(view, "", " ")
		t.Errorf("%s", text)
	}
}

// TestStubbornSteps checks that a timeout and a person's cancel end all processes of a step,
// also one that ignores SIGTERM.
func TestStubbornSteps(t *testing.T) {
	const stubborn = `trap '' TERM; echo $$ >> pids; (trap '' TERM; sh -c 'echo $$ >> pids; sleep 1000') & setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 1000' & touch "$STEP_ID.there"; while :; do sleep 1; done`
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		y := newRunWorld(t)
		y.impatient("slow", "one")
		list := []oddStep{{id: "one", more: "timeout: 300ms", does: stubborn, status: "FAILED", says: "timeout: it took longer than 300ms"}}
		one := 1
		y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "slow", MaxAttempts: &one})
		y.compareSteps(y.until("slow", "its tree is gone", func(v view.RunView) bool { return over(v) && v.Steps[0].Session == "" }), list)
		y.gone("pids", -1) // how many have begun by then depends on the machine
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		y := newRunWorld(t)
		y.impatient("slow", "one")
		list := []oddStep{{id: "one", does: stubborn, status: "FAILED", says: "cancelled by"}}
		y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "slow"})
		y.until("slow", "all three are there", func(view.RunView) bool { return y.count("pids") == 3 })
		if _, err := y.Runs.CancelRun(t.Context(), human, "slow", "", "enough"); err != nil {
			t.Fatal(err)
		}
		y.compareSteps(y.until("slow", "its tree is gone", func(v view.RunView) bool { return over(v) && v.Steps[0].Session == "" }), list)
		y.gone("pids", 3)
	})
}

// impatient shortens the time between SIGTERM and SIGKILL for a step.
func (y *runWorld) impatient(run, step string) {
	y.t.Helper()
	if err := y.Loop.View(y.t.Context(), func(*team.Team) {
		y.Runs.PoolSlot(&team.Session{For: team.Purpose{Kind: team.PurposeStep, Run: run, Step: step}}).Conf.Grace = 200 * time.Millisecond
	}); err != nil {
		y.t.Fatal(err)
	}
}

// count returns the number of lines of a file in the repository; 0 if it does not exist.
func (y *runWorld) count(name string) int {
	text, _ := os.ReadFile(filepath.Join(y.dir, name))
	return strings.Count(string(text), "\n")
}

// gone waits for the end of each process whose id is in a file. The file must have this many ids;
// -1 means at least one.
func (y *runWorld) gone(name string, want int) {
	y.t.Helper()
	text, err := os.ReadFile(filepath.Join(y.dir, name))
	if err != nil {
		y.t.Fatal(err)
	}
	pids := strings.Fields(string(text))
	if len(pids) == 0 || want >= 0 && len(pids) != want {
		y.t.Errorf("%d processes have begun, want %d", len(pids), want)
	}
	for _, pid := range pids {
		wait.Until(y.t, "the end of process "+pid+" after its step", func() bool { return !alive(pid) })
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
