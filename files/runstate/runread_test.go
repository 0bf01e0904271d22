package runstate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// decide decides and applies an event.
func decide(t testing.TB, r *workflow.Run, at time.Time, in workflow.Input) {
	t.Helper()
	changes, err := r.Decide(in, workflow.Now{At: at})
	if err != nil {
		t.Fatalf("%T: %v", in, err)
	}
	for _, c := range changes {
		r.Apply(c)
	}
}

var noon = time.Date(2026, 1, 15, 12, 0, 0, 123456000, time.UTC)

// aRun returns a run that has started.
func aRun(t testing.TB, plan workflow.Plan) *workflow.Run {
	t.Helper()
	r := &workflow.Run{}
	options := workflow.DefaultOptions(4)
	options.PauseForHumans = true
	decide(t, r, noon,
		workflow.RunAsked{
			ID: "r1", Plan: plan, Options: options, RepoDir: "/repo", ReportsDir: "/run/reports",
			ManualInputsDir: "/run/manual_inputs", By: "ada",
		})
	return r
}

// step takes a step from its start to its report.
func step(t testing.TB, r *workflow.Run, id workflow.StepID, report workflow.Report) {
	t.Helper()
	decide(t, r, noon, workflow.StartAsked{Step: id})
	_, p, _ := r.Find(id)
	decide(t, r, noon.Add(time.Second),
		workflow.ReportRead{Lease: workflow.Lease{Step: id, N: p.N}, Report: report, Until: WeighUntil(r, id, report), Over: true})
}

// seedPlans are workflows that fit the seed's examples.
var seedPlans = map[int][]workflow.Step{
	1: {
		{ID: "planning"},
		{ID: "coding", Needs: []workflow.StepID{"planning"}},
		{ID: "code_review", Needs: []workflow.StepID{"coding"}, LoopBackTo: "coding"},
	},
	2: {{ID: "coding"}, {ID: "code_review", Needs: []workflow.StepID{"coding"}, LoopBackTo: "coding"}},
	3: {{ID: "planning"}, {ID: "coding", Needs: []workflow.StepID{"planning"}}},
	4: {{ID: "code_review"}, {ID: "manual_approval", Needs: []workflow.StepID{"code_review"}, Human: true, Ask: workflow.AskBefore}},
}

// The seed's examples are read into the machine and written back; only updated_at changes.
func TestSeedExamplesThroughTheCore(t *testing.T) {
	for n := 1; n <= 4; n++ {
		path := filepath.Join("testdata", "run_state_"+string(rune('0'+n))+".json")
		s, err := ReadRunState(path)
		if err != nil {
			t.Fatal(err)
		}
		plan := workflow.Plan{Name: s.WorkflowName, Steps: seedPlans[n]}
		for i := range plan.Steps {
			plan.Steps[i].Agent, plan.Steps[i].Prompt = "coder", "p.md"
		}
		options := workflow.DefaultOptions(4)
		options.PauseForHumans = true
		in, err := StateFoundOf(s, plan, options, "ada")
		if err != nil {
			t.Fatal(err)
		}
		r := &workflow.Run{}
		decide(t, r, noon, in)
		got := RunStateOf(r)
		if got.UpdatedAt != FormatRunTime(noon) {
			t.Errorf("example %d: updated_at %s", n, got.UpdatedAt)
		}
		got.UpdatedAt = s.UpdatedAt
		if got, want := got.Render(), s.Render(); !bytes.Equal(got, want) {
			t.Errorf("example %d: got\n%s\nwant\n%s", n, got, want)
		}
	}
}

// Unknown fields pass through the machine and keep their place (X7).
func TestUnknownFieldsThroughTheCore(t *testing.T) {
	in := `{"run_id":"r9","workflow_name":"w","x-tool":{"a":[1,2.50,"<b>"]},"steps":{"s":{"status":"FAILED","attempts":2,"notified_failure":true,"loop_index":1,"loop_items":["a",{"b":1}],"loop_completed":false,"metrics":{"n":1}}}}`
	s, err := ParseRunState([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	found, err := StateFoundOf(s,
		workflow.Plan{
			Name:  "w",
			Steps: []workflow.Step{{ID: "s", Command: []string{"x"}, Loop: &workflow.Loop{ItemsFromArtifact: "i.json"}}},
		},
		workflow.DefaultOptions(1), "ada")
	if err != nil {
		t.Fatal(err)
	}
	r := &workflow.Run{}
	decide(t, r, noon, found)
	got := string(RunStateOf(r).Render())
	for _, want := range []string{
		"\"x-tool\": {\n    \"a\": [\n      1,\n      2.50,\n      \"<b>\"", "\"notified_failure\": true",
		"\"loop_index\": 1,\n      \"loop_items\": [\n        \"a\",\n        {\n          \"b\": 1\n",
		"\"loop_completed\": false", "\"loop_done\": 0", "\"n\": \"1\"",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nis missing in\n%s", want, got)
		}
	}
}

// Loops as the seed's tool writes them, without one, and finished.
func TestLoopsOfTheSeedsTool(t *testing.T) {
	s, err := ParseRunState([]byte(`{"run_id":"r","workflow_name":"w","steps":{"a":{"status":"PENDING","loop_index":0,"loop_items":null,"loop_completed":false},"b":{"status":"COMPLETED","loop_index":1,"loop_items":[1,2],"loop_completed":true}}}`))
	if err != nil || s.Steps[1].Loop.Completed != 2 || len(s.Steps[0].Loop.Items) != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A step's whole life as the file shows it.
func TestRunStateOfARun(t *testing.T) {
	r := aRun(t, workflow.Plan{Name: "w", Steps: []workflow.Step{
		{ID: "plan", Agent: "coder", Prompt: "p.md"},
		{ID: "code", Agent: "coder", Prompt: "p.md", Needs: []workflow.StepID{"plan"}},
		{ID: "each", Command: []string{"x"}, Needs: []workflow.StepID{"code"}, Loop: &workflow.Loop{Items: []string{`"a"`, `{"b":1}`}}},
		{ID: "review", Agent: "coder", Prompt: "p.md", Needs: []workflow.StepID{"code"}, LoopBackTo: "code"},
		{ID: "ask", Agent: "coder", Prompt: "p.md", Human: true},
	}})
	step(t, r, "plan",
		workflow.Report{Facts: workflow.Facts{
			Artifacts: []string{"a.go"}, Metrics: []workflow.Metric{{Name: "n", Value: "1"}},
			Logs: []string{"done <it>"},
		}})
	step(t, r, "code", workflow.Report{})
	step(t, r, "each", workflow.Report{})
	step(t, r, "ask", workflow.Report{})
	step(t, r, "review", workflow.Report{GateFailed: true, Why: "found P0 issues"})
	golden.Check(t, "testdata/run_state_core.json", string(RunStateOf(r).Render()))
}

func TestStateFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	torn := put(t, dir, "run_state.json", "{\n  \"run_id\": \"r\",\n  \"wor")
	_, err := ReadRunState(torn)
	var fault *file.JSONFault
	if !errors.As(err, &fault) || fault.Line != 3 || !strings.Contains(err.Error(), torn+" is malformed at line 3") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(torn); err != nil || len(b) != 25 {
		t.Errorf("the file is not as it was: %q, %v", b, err)
	}
	if _, err := ReadRunState(filepath.Join(dir, "absent.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(torn, link); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRunState(link); !errors.As(err, &fault) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
	bad := "yesterday"
	for field, s := range map[string]RunState{
		"created_at":         {RunID: "r", CreatedAt: bad},
		"steps.a.started_at": {RunID: "r", Steps: []StepState{{ID: "a", Status: StepPending, StartedAt: &bad}}},
		"steps.a.ended_at":   {RunID: "r", Steps: []StepState{{ID: "a", Status: StepPending, EndedAt: &bad}}},
	} {
		_, err := StateFoundOf(s, workflow.Plan{}, workflow.Options{}, "ada")
		if want := "run_state.json: " + field + ` is "yesterday", which is no time`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestRunFound shows a run as far as its file does: what comes first in the list decides, in any order of the steps.
func TestRunFound(t *testing.T) {
	gate := "b"
	for _, c := range []struct {
		words []string
		want  workflow.Status
	}{
		{[]string{StepRunning, StepFailed, StepPending, StepWaiting}, workflow.IsRunning},
		{[]string{StepPending, StepFailed, StepWaiting}, workflow.IsWaiting},
		{[]string{StepPending, StepFailed, StepCompleted}, workflow.IsFailed},
		{[]string{StepCompleted, StepPending}, workflow.IsWaiting}, // to be resumed
		{[]string{StepPending}, workflow.IsWaiting},
		{[]string{StepCompleted, StepSkipped}, workflow.IsCompleted},
	} {
		for range c.words {
			c.words = append(c.words[1:], c.words[0])
			s := RunState{RunID: "r", WorkflowName: "w", CreatedAt: "2025-01-15T14:30:00Z", UpdatedAt: "soon"}
			for i, word := range c.words {
				s.Steps = append(s.Steps, StepState{ID: fmt.Sprint("s", i), Status: word, BlockedByLoop: &gate, StartedAt: &gate})
			}
			r := RunFound(s)
			if got := r.Status(); got != c.want || len(r.Steps) != len(c.words) || r.CreatedAt.IsZero() || !r.UpdatedAt.IsZero() {
				t.Errorf("%q is %s, want %s", c.words, got, c.want)
			}
		}
	}
}

func TestVerdictsOverARun(t *testing.T) {
	r := aRun(t, workflow.Plan{Name: "w", Steps: []workflow.Step{
		{ID: "find", Command: []string{"x"}},
		{ID: "yes", Command: []string{"x"}, Needs: []workflow.StepID{"find"}, When: "steps.find.metrics.n > 2"},
		{ID: "fault", Command: []string{"x"}, Needs: []workflow.StepID{"find"}, When: "steps.find.metrics.m > 2"},
		{
			ID: "loop", Command: []string{"x"}, Needs: []workflow.StepID{"find"},
			Loop: &workflow.Loop{
				Items:          []string{`{"name":"a"}`, `{"name":"b"}`},
				UntilCondition: `item.name == "b" and report.metrics.left == 0 and report.status == "COMPLETED"`,
			},
		},
	}})
	step(t, r, "find", workflow.Report{Facts: workflow.Facts{Metrics: []workflow.Metric{{Name: "n", Value: "3"}}}})
	if v := WeighWhen(r, "find"); !v.Holds || v.Fault != "" {
		t.Errorf("got %+v", v)
	}
	if v := WeighWhen(r, "yes"); !v.Holds || v.Fault != "" {
		t.Errorf("got %+v", v)
	}
	if v := WeighWhen(r, "fault"); v.Holds || !strings.Contains(v.Fault, "when, column 22: no report gave this metric") {
		t.Errorf("got %+v", v)
	}
	left := workflow.Report{Facts: workflow.Facts{Metrics: []workflow.Metric{{Name: "left", Value: "0"}}}}
	if v := WeighUntil(r, "yes", left); v != nil {
		t.Errorf("got %+v", v)
	}
	if v := WeighUntil(r, "loop", left); v == nil || v.Holds || v.Fault != "" {
		t.Errorf("got %+v", v)
	}
	step(t, r, "loop", left)
	if v := WeighUntil(r, "loop", left); v == nil || !v.Holds {
		t.Errorf("got %+v", v)
	}
	if v := WeighUntil(r, "loop", ReportSoFar(r, "loop")); v == nil || !v.Holds {
		t.Errorf("got %+v", v)
	}
}

// Any run state is refused by the machine or accepted; an accepted one can be written and read again.
func FuzzStateFound(f *testing.F) {
	for n := 1; n <= 4; n++ {
		f.Add(example(f, n))
	}
	f.Add([]byte(`{"run_id":"r","workflow_name":"w","x":[1],"steps":{"s":{"status":"RUNNING","loop_items":[1,{"a":"\ud800"}],"loop_index":1,"x":[{}],"metrics":{"m":1e3}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseRunState(b)
		if err != nil {
			return
		}
		plan := workflow.Plan{Name: s.WorkflowName}
		for i := range s.Steps {
			if i < 50 {
				plan.Steps = append(plan.Steps,
					workflow.Step{
						ID: workflow.StepID(s.Steps[i].ID), Command: []string{"x"}, LoopBackTo: workflow.StepID(s.Steps[0].ID),
						Loop: &workflow.Loop{ItemsFromArtifact: "i.json"},
					})
				plan.Steps[0].LoopBackTo = ""
			}
		}
		in, err := StateFoundOf(s, plan, workflow.DefaultOptions(1), "ada")
		if err != nil {
			return
		}
		r := &workflow.Run{}
		changes, err := r.Decide(in, workflow.Now{At: noon})
		if err != nil {
			return
		}
		for _, c := range changes {
			r.Apply(c)
		}
		once := RunStateOf(r).Render()
		again, err := ParseRunState(once)
		if err != nil {
			t.Fatalf("what we write, we do not read: %v\n%s", err, once)
		}
		if twice := again.Render(); !bytes.Equal(once, twice) {
			t.Fatalf("written twice, it differs:\n%s\n%s", once, twice)
		}
	})
}

// BenchmarkRunStateOf measures one write of the file of a run with 1,000 steps.
func BenchmarkRunStateOf(b *testing.B) {
	plan := workflow.Plan{Name: "w"}
	for i := range 1000 {
		plan.Steps = append(plan.Steps, workflow.Step{ID: workflow.StepID(fmt.Sprint("s", i)), Command: []string{"x"}})
	}
	r := aRun(b, plan)
	bytes := len(RunStateOf(r).Render())
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(bytes), "file-bytes")
	for b.Loop() {
		RunStateOf(r).Render()
	}
}
