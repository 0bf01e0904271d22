package app

import (
	"context"
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

// TestRunLoopsBack checks a gate that fails once and sends the run back: the coder and the gate run
// twice.
func TestRunLoopsBack(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml", fmt.Sprintf(`name: loop
steps:
  - id: code
    command: %s
  - id: review
    needs: [code]
    loop_back_to: code
    command: %s
  - id: ship
    needs: [review]
    command: %s
`, quoted("echo x >> rounds; "+report(``)),
		quoted("if [ $(wc -l < rounds) -lt 3 ]; then "+report(`,"gate_failure":true`)+"; else "+report(``)+"; fi"), quoted(report(``))))
	y.start(view.RunFlags{Workflow: flow, RunID: "r2"})
	view := y.until("r2", "it completes", over)
	if view.Status != "completed" || view.Steps[0].Iteration != 2 || view.Steps[1].Iteration != 2 {
		t.Errorf("%+v", view)
	}
	y.logsEachStep()
}

// logsEachStep checks that a change of many steps is one line for each step in the transition log,
// and that a log that was cut between the lines is continued there (X6).
func (y *runWorld) logsEachStep() {
	y.t.Helper()
	path := filepath.Join(y.t.TempDir(), "transitions.jsonl")
	status, err := y.Status.Status(y.t.Context())
	if err != nil {
		y.t.Fatal(err)
	}
	whole := y.logUntil(path, fmt.Sprintf(`"seq":%d`, status.Head))
	lines := strings.SplitAfter(whole, "\n")
	cut := 0
	for i, line := range lines {
		if strings.Contains(line, `"part":1,"parts":3}`) && strings.Contains(lines[i+1], `"part":2`) {
			cut = i + 1
		}
	}
	if cut == 0 {
		y.t.Fatalf("no change has three steps:\n%s", whole)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines[:cut], "")), 0o600); err != nil {
		y.t.Fatal(err)
	}
	if again := y.logUntil(path, fmt.Sprintf(`"seq":%d`, status.Head)); again != whole {
		y.t.Errorf("continued with:\n%s\nwant\n%s", again, whole)
	}
}

// logUntil writes a transition log until it contains a text at the end of a line.
func (y *runWorld) logUntil(path, text string) string {
	y.t.Helper()
	ctx, stop := context.WithCancel(y.t.Context())
	done := make(chan error, 1)
	go func() { done <- y.Transitions.LogTransitions(ctx, path) }()
	defer stop()
	var got []byte
	wait.Until(y.t, "the log has "+text, func() bool {
		got, _ = os.ReadFile(path)
		return strings.Contains(string(got), text) && strings.HasSuffix(string(got), "\n")
	})
	stop()
	if err := <-done; err != nil {
		y.t.Fatal(err)
	}
	return string(got)
}

// TestRunFails checks that a failing step is tried again and then fails permanently, and that steps
// that need it never start.
func TestRunFails(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: bad\nsteps:\n  - id: one\n    command: %s\n  - id: two\n    needs: [one]\n    command: %s\n",
			quoted("echo no; exit 3"), quoted(report(``))))
	y.start(view.RunFlags{Workflow: flow, RunID: "r3"})
	shown := y.until("r3", "it is over", over)
	if shown.Status != "failed" || shown.Steps[0].Attempts != 2 || !strings.Contains(shown.Steps[0].LastError, "exit code 3") ||
		shown.Steps[1].Status != "PENDING" {
		t.Errorf("%+v", shown)
	}
	// A person fixes the fault, and the run continues at the failed step.
	y.file("flow.yaml", fmt.Sprintf("name: bad\nsteps:\n  - id: one\n    command: %s\n  - id: two\n    needs: [one]\n    command: %s\n",
		quoted(report(``)), quoted(report(``))))
	if _, err := y.Runs.ResumeRun(t.Context(), human, "r3", view.RunFlags{}); err != nil {
		t.Fatal(err)
	}
	if shown = y.until("r3", "it completes", over); shown.Status != "completed" {
		t.Errorf("%+v", shown)
	}
}

// TestRunAsksPeople checks that people are asked after a step has prepared, and that their answer
// decides.
func TestRunAsksPeople(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: ask\nsteps:\n  - id: draft\n    human_in_the_loop: true\n    command: %s\n  - id: ship\n    needs: [draft]\n    command: %s\n",
			quoted(report(``)), quoted(report(``))))
	for n, answer := range []func(id string){
		func(id string) {
			if _, err := y.Runs.Answer(t.Context(), human, id, "draft", view.StepAnswer{Note: "good"}); err != nil {
				t.Error(err)
			}
		},
		func(id string) {
			path := filepath.Join(y.dir, ".agents", "runs", id, "manual_inputs", id+"__draft.json")
			if err := os.WriteFile(path, []byte(`{"approved": true, "note": "by file"}`), 0o600); err != nil {
				t.Error(err)
			}
		},
	} {
		id := fmt.Sprint("ask", n)
		y.start(view.RunFlags{Workflow: flow, RunID: id, PauseForHumans: true})
		y.until(id, "it asks", func(v view.RunView) bool { return v.Status == "waiting" && v.Steps[0].Status == "WAITING_ON_HUMAN" })
		items, err := y.Status.Inbox(t.Context())
		if err != nil || len(items) != 1 || items[0].Step != "draft" {
			t.Errorf("the inbox: %+v, %v", items, err)
		}
		answer(id)
		if view := y.until(id, "it completes", over); view.Status != "completed" {
			t.Errorf("%+v", view)
		}
	}
}

// TestRunIsCancelled checks that a person's cancel ends running steps, and that the run names the
// person.
func TestRunIsCancelled(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml", fmt.Sprintf("name: long\nsteps:\n  - id: sleep\n    command: %s\n", quoted("sleep 1000")))
	y.start(view.RunFlags{Workflow: flow, RunID: "r5"})
	y.until("r5", "it works", func(v view.RunView) bool { return v.Steps[0].Session != "" })
	if _, err := y.Runs.CancelRun(t.Context(), human, "r5", "", "enough"); err != nil {
		t.Fatal(err)
	}
	view := y.until("r5", "its process has ended", func(v view.RunView) bool { return over(v) && v.Steps[0].Session == "" })
	if view.Status != "cancelled" || !strings.Contains(view.Steps[0].LastError, "cancelled by") {
		t.Errorf("%+v", view)
	}
}

// TestRunReportsInItsOutput checks that a report between the markers in the output counts like one
// in the file.
func TestRunReportsInItsOutput(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml", fmt.Sprintf("name: said\nsteps:\n  - id: one\n    command: %s\n",
		quoted(`echo hello; echo '<<<RUN_REPORT_JSON'; echo '{"schema":"run_report@v0","run_id":"r6","step_id":"one","agent":"a","status":"done","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z","artifacts":["a.txt"]}'; echo 'RUN_REPORT_JSON>>>'`)))
	y.start(view.RunFlags{Workflow: flow, RunID: "r6"})
	view := y.until("r6", "it completes", over)
	if view.Status != "completed" || len(view.Steps[0].Artifacts) != 1 {
		t.Errorf("%+v", view)
	}
}

// TestRunWithoutItsFolder checks a run whose folder was removed: one that has ended counts as
// archived; an active run gets its folder again.
func TestRunWithoutItsFolder(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: gone\nsteps:\n  - id: one\n    command: %s\n",
			quoted("touch began; until test -e go; do sleep 0.01; done; "+report(``))))
	y.start(view.RunFlags{Workflow: flow, RunID: "g"})
	y.until("g", "it works", func(v view.RunView) bool {
		_, err := os.Stat(filepath.Join(y.dir, "began")) // before that a pause would withdraw it
		return err == nil && v.Steps[0].Session != "" && !v.FileBehind
	})
	dir := filepath.Join(y.dir, ".agents", "runs", "g")
	y.clear(dir)
	if _, err := y.Runs.PauseRun(t.Context(), human, "g", "a change"); err != nil {
		t.Fatal(err)
	}
	y.until("g", "its file is there again", func(view.RunView) bool {
		_, err := os.Stat(filepath.Join(dir, "run_state.json"))
		return err == nil
	})
	if err := os.MkdirAll(filepath.Join(dir, "reports"), 0o755); err != nil {
		t.Fatal(err)
	}
	y.file("go", "")
	y.until("g", "it completes", over)
	y.clear(dir)
	if err := y.Loop.View(t.Context(), func(*team.Team) { y.Runs.ProjectRun(y.Runs.RunMember("g")) }); err != nil {
		t.Fatal(err)
	}
	late := time.After(waitMax)
	for gone := false; !gone; {
		if err := y.Loop.View(t.Context(), func(t *team.Team) { _, gone = t.Archive["g"] }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatal("the run is not archived")
		default:
		}
	}
}

// clear removes a folder, also while a file is being written into it.
func (y *runWorld) clear(dir string) {
	y.t.Helper()
	for range 100 {
		if err := os.RemoveAll(dir); err == nil {
			return
		}
	}
	y.t.Fatalf("%s cannot be removed", dir)
}
