package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
)

// asked waits until the inbox has one item, and returns it.
func (y *runWorld) asked(kind string) view.InboxItem {
	y.t.Helper()
	items, err := y.Status.Inbox(y.t.Context())
	if err != nil || len(items) != 1 || items[0].Kind != kind {
		y.t.Fatalf("the inbox: %+v, %v; want one item of kind %s", items, err, kind)
	}
	return items[0]
}

// TestApprovalIsForWhatWasShown checks that an approval names the artifacts that were made before,
// and applies to exactly those. If an artifact or the question has changed, the answer is refused
// with the request to look again.
func TestApprovalIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.file("note.md", "Version 1\n")
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: ask\nsteps:\n  - id: test\n    command: %s\n  - id: draft\n    needs: [test]\n    human_in_the_loop: true\n    loop_back_to: test\n    command: %s\n  - id: ship\n    needs: [draft]\n    command: %s\n",
			quoted(report(`, "metrics": {"passed": 12}`)), quoted(report(`, "artifacts": ["note.md"]`)), quoted(report(``))))
	y.start(view.RunFlags{Workflow: flow, RunID: "r1", PauseForHumans: true})
	waits := func(v view.RunView) bool { return v.Status == "waiting" && v.Steps[1].Status == "WAITING_ON_HUMAN" }
	y.until("r1", "it asks", waits)
	first := y.asked("step")
	if len(first.Files) != 1 || first.Files[0].Text != "Version 1\n" || len(first.Made) != 1 || first.Made[0].Metrics["passed"] != "12" ||
		strings.Join(first.Then, " ") != "ship" || first.BackTo != "test" {
		t.Errorf("the inbox item: %+v", first)
	}
	if again := y.asked("step"); again.Shown != first.Shown || again.ID != first.ID {
		t.Errorf("an unchanged item has the ids %s and %s", first.Shown, again.Shown)
	}
	refused := func(shown, words string) {
		t.Helper()
		var no *table.Refusal
		if _, err := y.Runs.Answer(t.Context(), human, "r1", "draft", view.StepAnswer{Shown: shown}); !errors.As(err, &no) ||
			!strings.Contains(no.Reason, words) {
			t.Errorf("the answer: %v; want a refusal with %q", err, words)
		}
	}
	y.file("note.md", "Version 2\n")
	refused(first.Shown, "it was changed since you looked")
	second := y.asked("step")
	if second.Files[0].Text != "Version 2\n" || second.Shown == first.Shown {
		t.Errorf("after the change: %+v", second)
	}
	if _, err := y.Runs.Answer(t.Context(), human, "r1", "draft",
		view.StepAnswer{Shown: second.Shown, Rejected: true, Note: "again"}); err != nil {
		t.Fatal(err)
	}
	y.until("r1", "it asks again", func(v view.RunView) bool { return waits(v) && v.Steps[1].Iteration == 1 })
	third := y.asked("step")
	if third.ID == second.ID {
		t.Errorf("two questions have the id %s", third.ID)
	}
	refused(second.Shown, "it was changed since you looked") // the same text and file, but another question

	// Two people answer at the same time. One of them gets the refusal that the question was answered, and
	// nothing is doubled.
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		both.Go(func() {
			_, errs[i] = y.Runs.Answer(t.Context(), human, "r1", "draft", view.StepAnswer{Shown: third.Shown, Note: fmt.Sprint("person ", i)})
		})
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("two answers: %v, %v; want exactly one accepted", errs[0], errs[1])
	}
	for i, err := range errs {
		var no *table.Refusal
		if err != nil && (!errors.As(err, &no) || !strings.Contains(no.Reason, "it was answered")) {
			t.Errorf("the second answer returns %v", err)
		}
		if err == nil {
			text, err := os.ReadFile(filepath.Join(y.dir, ".agents", "runs", "r1", "manual_inputs", "r1__draft.json"))
			if err != nil || !strings.Contains(string(text), fmt.Sprint("person ", i)) {
				t.Errorf("the answer of person %d was accepted, but the file has %s, %v", i, text, err)
			}
		}
	}
	if v := y.until("r1", "it completes", over); v.Status != "completed" {
		t.Errorf("%+v", v)
	}
}

// TestFailedRunNeedsAPerson checks that a failed run is in the inbox until a newer run of its
// workflow begins.
func TestFailedRunNeedsAPerson(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	bad := y.file("bad.yaml",
		"name: bad\nsteps:\n  - id: test\n    max_attempts: 1\n    command: [sh, -c, 'echo one; echo expected 3, got 4 >&2; exit 1']\n")
	y.start(view.RunFlags{Workflow: bad, RunID: "b1"})
	y.until("b1", "it fails", over)
	item := y.asked("run")
	if item.ID != "run/b1" || item.Step != "test" || !strings.Contains(item.Error, "expected 3, got 4") || item.Session == "" {
		t.Errorf("%+v", item)
	}
	y.start(view.RunFlags{Workflow: bad, RunID: "b2"})
	y.until("b2", "it fails", over)
	if item := y.asked("run"); item.Run != "b2" {
		t.Errorf("after a newer run the inbox has %s", item.Run)
	}
}
