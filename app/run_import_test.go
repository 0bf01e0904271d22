package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// TestSeedExamplesContinue imports the four examples of seed 004 with a workflow that fits. Each
// continues to its end, and COMPLETED steps are unchanged.
func TestSeedExamplesContinue(t *testing.T) {
	const ok = `echo $STEP_ID >> ran; say COMPLETED ",\"artifacts\":[\"$STEP_ID.out\"]" > "$REPORT_PATH"`
	for n, c := range []struct {
		id, ran string
		steps   []oddStep
		lay     string // step whose report exists at the import
		answer  string // step that waits for people
	}{
		{
			"f8c1a491", "coding code_review",
			[]oddStep{
				{id: "planning"},
				{id: "coding", more: "needs: [planning]"},
				{id: "code_review", more: "needs: [coding]\n    loop_back_to: coding"},
			},
			"", "",
		},
		{
			"a1b2c3d4", "code_review",
			[]oddStep{{id: "coding"}, {id: "code_review", more: "needs: [coding]\n    loop_back_to: coding"}},
			"",
			"",
		},
		{"xyz789", "coding", []oddStep{{id: "planning"}, {id: "coding", more: "needs: [planning]"}}, "", ""},
		{
			"hij456", "manual_approval",
			[]oddStep{
				{id: "code_review"},
				{id: "manual_approval", more: "needs: [code_review]\n    human_in_the_loop: true\n    ask: before"},
			},
			"",
			"manual_approval",
		},
		{
			"f8c1a491", "code_review",
			[]oddStep{{id: "planning"}, {id: "coding", more: "needs: [planning]"}, {id: "code_review", more: "needs: [coding]"}},
			"coding",
			"",
		},
		{"a1b2c3d4", "", []oddStep{{id: "coding"}, {id: "code_review", more: "needs: [coding]"}}, "code_review", ""},
	} {
		t.Run(fmt.Sprint(c.id, " ", n), func(t *testing.T) {
			t.Parallel()
			y := newRunWorld(t)
			y.settled()
			for i := range c.steps {
				c.steps[i].does = ok
			}
			flow := y.oddWorkflow(c.steps)
			text, err := os.ReadFile(filepath.Join("..", "files", "runstate", "testdata", fmt.Sprintf("run_state_%d.json", n%4+1)))
			if err != nil {
				t.Fatal(err)
			}
			was, err := runstate.ParseRunState(text)
			if err != nil || was.RunID != c.id {
				t.Fatal(was.RunID, err)
			}
			path := y.file(filepath.Join(".agents", "runs", c.id, runstate.RunStateName), string(text))
			if c.lay != "" {
				y.file(filepath.Join(".agents", "runs", c.id, "reports", c.id+"__"+c.lay+".json"), fmt.Sprintf(
					`{"schema":"v0","run_id":%q,"step_id":%q,"agent":"a","status":"COMPLETED","started_at":"2025-01-15T14:30:00Z","ended_at":"2025-01-15T14:31:00Z"}`, c.id, c.lay))
			}
			shown, err := y.Runs.ResumeRun(t.Context(), human, "", view.RunFlags{Workflow: flow, PauseForHumans: true})
			if err != nil || shown.ID != c.id {
				t.Fatalf("%s: %v", shown.ID, err)
			}
			if c.answer != "" {
				y.until(c.id, "it waits", func(v view.RunView) bool { return v.Status == "waiting" })
				y.file(filepath.Join(".agents", "runs", c.id, "manual_inputs", c.id+"__"+c.answer+".json"), `{"approved": true}`)
			}
			if shown = y.until(c.id, "it completes", over); shown.Status != "completed" {
				t.Fatalf("%+v", shown)
			}
			ran, _ := os.ReadFile(filepath.Join(y.dir, "ran"))
			if got := strings.Join(strings.Fields(string(ran)), " "); got != c.ran {
				t.Errorf("ran %q, want %q", got, c.ran)
			}
			now, err := runstate.ReadRunState(path)
			if err != nil || now.RunID != c.id || now.CreatedAt != was.CreatedAt || now.RepoDir != y.dir {
				t.Errorf("%+v, %v", now, err)
			}
			for i := range was.Steps {
				if was.Steps[i].Status != runstate.StepCompleted {
					continue
				}
				before, after := was, now
				before.Steps, after.Steps = was.Steps[i:i+1], now.Steps[i:i+1]
				_, a, _ := strings.Cut(string(before.Render()), `"steps"`)
				_, b, _ := strings.Cut(string(after.Render()), `"steps"`)
				if a != b {
					t.Errorf("a completed step was changed: %s\n%s", a, b)
				}
			}
		})
	}
}

// TestRunNamesThatLeadElsewhere checks that the name of a run cannot lead out of the folder of
// runs.
func TestRunNamesThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.oddWorkflow([]oddStep{{id: "one", does: "true"}})
	for _, id := range []string{"..", ".", "../up", "../../../up", "a/b", "/tmp/x", "a\x00b", "a b", "-x", "ü", strings.Repeat("r", 49)} {
		var refusal *table.Refusal
		if _, err := y.Runs.StartRun(t.Context(), human, view.RunFlags{Workflow: flow, RunID: id}); !errors.As(err, &refusal) {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := y.Runs.ResumeRun(t.Context(), human, id, view.RunFlags{Workflow: flow}); err == nil {
			t.Errorf("resume %q: no error", id)
		}
	}
	for _, name := range []string{"up", ".agents/up", ".agents/runs/a", ".agents/reports", "reports", ".agents/runs/reports"} {
		if _, err := os.Lstat(filepath.Join(y.dir, name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
	if made, _ := filepath.Glob(filepath.Join(y.dir, ".agents", "runs", "*")); len(made) > 0 {
		t.Errorf("created: %q", made)
	}
}

// TestReportsHaveToFitTheSchema checks that --schema applies to every accepted report: of an active
// step, and of a step that another program's state file calls RUNNING.
func TestReportsHaveToFitTheSchema(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.file("report.schema.json", `{"type": "object", "required": ["reviewed_by"], "properties": {"reviewed_by": {"type": "string"}}}`)
	list := []oddStep{
		{id: "fits", does: `say COMPLETED ',"reviewed_by":"ann"' > "$REPORT_PATH"`, status: "COMPLETED"},
		{id: "lacks", does: `say COMPLETED > "$REPORT_PATH"`, status: "FAILED", says: "does not fit the schema"},
		{id: "wrong", does: `say COMPLETED ',"reviewed_by":1' > "$REPORT_PATH"`, status: "FAILED", says: "does not fit the schema"},
	}
	one := 1
	y.start(view.RunFlags{Workflow: y.oddWorkflow(list), RunID: "s", MaxAttempts: &one, ReportSchema: "report.schema.json"})
	y.compareSteps(y.until("s", "it is over", over), list)

	text, err := os.ReadFile(filepath.Join("..", "files", "runstate", "testdata", "run_state_1.json"))
	if err != nil {
		t.Fatal(err)
	}
	y.file(filepath.Join(".agents", "runs", "f8c1a491", runstate.RunStateName), string(text))
	y.file(filepath.Join(".agents", "runs", "f8c1a491", "reports", "f8c1a491__coding.json"),
		`{"schema":"v0","run_id":"f8c1a491","step_id":"coding","agent":"a","status":"COMPLETED","started_at":"2025-01-15T14:30:00Z","ended_at":"2025-01-15T14:31:00Z"}`)
	const ok = `echo $STEP_ID >> ran; say COMPLETED ',"reviewed_by":"ann"' > "$REPORT_PATH"`
	flow := y.oddWorkflow([]oddStep{{id: "planning", does: ok}, {id: "coding", does: ok}, {id: "code_review", does: ok}})
	if _, err := y.Runs.ResumeRun(t.Context(), human, "f8c1a491",
		view.RunFlags{Workflow: flow, ReportSchema: "report.schema.json"}); err != nil {
		t.Fatal(err)
	}
	y.until("f8c1a491", "it completes", func(v view.RunView) bool { return over(v) && v.Status == "completed" })
	if n := y.count("ran"); n != 2 {
		t.Errorf("%d steps ran: a report that does not fit the schema was accepted", n)
	}
}
