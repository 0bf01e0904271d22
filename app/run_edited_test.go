package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestEditedStateOfARun edits run_state.json of a run that has failed (X3, X5). A valid and possible edit is taken in by the
// resume; any other is kept aside with its reason, and the run goes on from the journal. No edit is lost.
func TestEditedStateOfARun(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: f\nsteps:\n  - id: one\n    command: %s\n  - id: two\n    needs: [one]\n    command: %s\n  - id: three\n    needs: [two]\n    command: %s\n",
			quoted(`echo one >> ran-$RUN_ID; `+report(`,"logs":["a line"]`)), quoted(`echo two >> ran-$RUN_ID; exit 3`),
			quoted(`echo three >> ran-$RUN_ID; `+report(``))))
	swap := func(from, to string) func(string) string {
		return func(text string) string {
			if !strings.Contains(text, from) {
				t.Errorf("the file does not contain %s:\n%s", from, text)
			}
			return strings.Replace(text, from, to, 1)
		}
	}
	for n, c := range []struct {
		edit func(string) string
		ran  string // in all
		want string // empty: it is taken in
	}{
		{swap("FAILED", "COMPLETED"), "one two three", ""},
		{swap("FAILED", "SKIPPED"), "one two", ""}, // and so is what needs only this step
		{swap("COMPLETED", "PENDING"), "one two one two", ""},
		{swap(`"attempts": 1`, `"attempts": 2`), "one two two", ""},
		{swap("a line", "another line"), "one two two", ""},
		{swap(`"run_id"`, `"ticket": 7, "run_id"`), "one two two", ""},
		{swap("FAILED", "RUNNING"), "one two two", "no process and no question of it exists"},
		{swap("FAILED", "WAITING_ON_HUMAN"), "one two two", "no process and no question of it exists"},
		{swap("FAILED", "DONE"), "one two two", `"DONE"`},
		{swap("PENDING", "COMPLETED"), "one two two", "it is COMPLETED, but two, which it needs, would be FAILED"},
		{swap(`"attempts": 1`, `"attempts": -1`), "one two two", "no whole number from 0 on"},
		{swap(`"attempts": 1`, `"attempts": 4000000000`), "one two two", "too large"},
		{swap(`"run_id": "r12"`, `"run_id": "r0"`), "one two two", `run_id is "r0", but the run has "r12"; this field cannot be edited`},
		{swap(`"reports_dir": "`, `"reports_dir": "/elsewhere`), "one two two", "reports_dir is"},
		{swap(`"updated_at": "2`, `"updated_at": "1`), "one two two", "but the run has changed since"},
		{swap(`"updated_at": "2`, `"updated_at": "x`), "one two two", "which is no time"},
		{swap(`"three":`, `"four":`), "one two two", "it has no step three"},
		{swap(`"three":`, `"four": {"status": "PENDING"}, "three":`), "one two two", `"four" is no step of the run`},
		{swap(`"steps"`, `"nothing"`), "one two two", "steps"},
		{func(text string) string { return text[:len(text)/2] }, "one two two", "malformed"},
		{func(string) string { return "" }, "one two two", "malformed"},
	} {
		id := fmt.Sprint("r", n)
		one := 1
		y.start(view.RunFlags{Workflow: flow, RunID: id, MaxAttempts: &one})
		failed := y.until(id, "it has failed, and its processes have ended", func(v view.RunView) bool {
			return over(v) && !slices.ContainsFunc(v.Steps, func(s view.StepView) bool { return s.Session != "" })
		})
		path := filepath.Join(y.dir, ".agents", "runs", id, runstate.RunStateName)
		wait.Until(t, "its file has the end", func() bool {
			now, err := runstate.ReadRunState(path)
			return err == nil && now.UpdatedAt == runstate.FormatRunTime(failed.UpdatedAt)
		})
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		edited := c.edit(string(text))
		y.file(filepath.Join(".agents", "runs", id, runstate.RunStateName), edited)
		if _, err := y.Runs.ResumeRun(t.Context(), human, id, view.RunFlags{}); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		shown := y.until(id, "it is over", over)
		aside, _ := filepath.Glob(path + ".foreign-*")
		switch {
		case c.want == "" && (!strings.HasPrefix(shown.StateEdited, "taken in") || len(aside) > 0):
			t.Errorf("%d: %q, %v; want it taken in", n, shown.StateEdited, aside)
		case c.want != "" && len(aside) != 1:
			t.Errorf("%d: kept aside are %v", n, aside)
		case c.want != "":
			kept, _ := os.ReadFile(aside[0])
			if string(kept) != edited || !strings.HasPrefix(shown.StateEdited, "kept aside as "+filepath.Base(aside[0])+": ") ||
				!strings.Contains(shown.StateEdited, c.want) {
				t.Errorf("%d: %q, want %q; kept is %s", n, shown.StateEdited, c.want, kept)
			}
		}
		ran, _ := os.ReadFile(filepath.Join(y.dir, "ran-"+id))
		if got := strings.Join(strings.Fields(string(ran)), " "); got != c.ran {
			t.Errorf("%d: ran %q, want %q", n, got, c.ran)
		}
		if now, err := runstate.ReadRunState(path); err != nil || runstate.FormatRunTime(shown.UpdatedAt) != now.UpdatedAt {
			t.Errorf("%d: the file is not that of the run: %+v, %v", n, now, err)
		}
	}
}

// TestEditedStateOfACompletedRun checks that an edit is seen in a run that has completed, and that the resume of one that was not
// edited changes nothing.
func TestEditedStateOfACompletedRun(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	flow := y.file("flow.yaml", fmt.Sprintf("name: f\nsteps:\n  - id: one\n    command: %s\n", quoted(`echo one >> ran; `+report(``))))
	y.start(view.RunFlags{Workflow: flow, RunID: "r"})
	before := y.until("r", "it has completed", over)
	after, err := y.Runs.ResumeRun(t.Context(), human, "r", view.RunFlags{})
	if err != nil || !after.UpdatedAt.Equal(before.UpdatedAt) || after.StateEdited != "" {
		t.Errorf("%+v, %v", after, err)
	}
	path := filepath.Join(".agents", "runs", "r", runstate.RunStateName)
	text, _ := os.ReadFile(filepath.Join(y.dir, path))
	y.file(path, strings.Replace(string(text), "COMPLETED", "RUNNING", 1))
	after, err = y.Runs.ResumeRun(t.Context(), human, "r", view.RunFlags{})
	if err != nil || !after.UpdatedAt.Equal(before.UpdatedAt) || !strings.HasPrefix(after.StateEdited, "kept aside") {
		t.Errorf("%+v, %v", after, err)
	}
	y.file(path, strings.Replace(string(text), "COMPLETED", "PENDING", 1))
	if _, err := y.Runs.ResumeRun(t.Context(), human, "r", view.RunFlags{}); err != nil {
		t.Fatal(err)
	}
	if shown := y.until("r", "it has completed again",
		func(v view.RunView) bool { return over(v) && v.UpdatedAt.After(before.UpdatedAt) }); shown.Status != "completed" {
		t.Errorf("%+v", shown)
	}
	if ran, _ := os.ReadFile(filepath.Join(y.dir, "ran")); string(ran) != "one\none\n" {
		t.Errorf("ran %q", ran)
	}
}
