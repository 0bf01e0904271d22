package workflow

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fileStep is the part of a step of run_state.json that these tests read. Package runfile reads the
// whole file.
type fileStep struct {
	Status          State             `json:"status"`
	Attempts        int               `json:"attempts"`
	IterationCount  int               `json:"iteration_count"`
	ReportPath      string            `json:"report_path"`
	StartedAt       time.Time         `json:"started_at"`
	EndedAt         time.Time         `json:"ended_at"`
	LastError       string            `json:"last_error"`
	Artifacts       []string          `json:"artifacts"`
	Metrics         map[string]string `json:"metrics"`
	Logs            []string          `json:"logs"`
	ManualInputPath string            `json:"manual_input_path"`
	BlockedByLoop   StepID            `json:"blocked_by_loop"`
}

// example reads one of seed 004's example files, with its plan.
func example(t *testing.T, n int, steps ...Step) StateFound {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "seed", fmt.Sprintf("example%d.json", n)))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		RunID           RunID               `json:"run_id"`
		WorkflowName    string              `json:"workflow_name"`
		RepoDir         string              `json:"repo_dir"`
		ReportsDir      string              `json:"reports_dir"`
		ManualInputsDir string              `json:"manual_inputs_dir"`
		CreatedAt       time.Time           `json:"created_at"`
		Steps           map[StepID]fileStep `json:"steps"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	options := DefaultOptions(4)
	options.PauseForHumans = true
	in := StateFound{
		RunAsked: RunAsked{
			ID: file.RunID, Plan: Plan{Name: file.WorkflowName, Steps: steps}, Options: options, RepoDir: file.RepoDir,
			ReportsDir: file.ReportsDir, ManualInputsDir: file.ManualInputsDir, By: "ada",
		},
		CreatedAt: file.CreatedAt, Steps: map[StepID]Progress{},
	}
	for id, s := range file.Steps {
		p := Progress{Value: Value{
			State: s.Status, Attempts: s.Attempts, Iteration: s.IterationCount, ReportPath: s.ReportPath, StartedAt: s.StartedAt,
			EndedAt: s.EndedAt, LastError: s.LastError, ManualInputPath: s.ManualInputPath, BlockedBy: s.BlockedByLoop,
		}, Facts: Facts{Artifacts: s.Artifacts, Logs: s.Logs}}
		for name, value := range s.Metrics {
			p.Metrics = append(p.Metrics, Metric{name, value})
		}
		in.Steps[id] = p
	}
	return in
}

func work(id StepID, needs ...StepID) Step {
	return Step{ID: id, Agent: "coder", Prompt: string(id) + ".md", Needs: needs}
}

func takenIn(t *testing.T, in StateFound) *stage {
	t.Helper()
	s := &stage{t: t, run: &Run{}, now: Now{At: noon}}
	s.decide(in)
	if !s.run.complete() {
		t.Fatalf("not imported:\n%s", s.out.String())
	}
	return s
}

// says checks that the results of a script contain the given lines.
func (s *stage) says(want string) {
	s.t.Helper()
	got := s.out.String()
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		line = strings.TrimSpace(line)
		if !strings.Contains(got, line) {
			s.t.Errorf("the result does not contain %q:\n%s", line, got)
		}
	}
	s.out.Reset()
}

// The first example of seed 004: a run in progress, whose runner has ended (X3, W13).
func TestTakeInProgress(t *testing.T) {
	s := takenIn(t, example(t, 1, work("planning"), work("coding", "planning"), work("code_review", "coding")))
	if got := s.run.Status(); got != IsWaiting && got != IsRunning {
		t.Errorf("the run is %s", got)
	}
	s.showRun()
	s.says(`X3   (run)        absent -> parked  run_taken_in
		planning completed 0/1, coding running 0/1, code_review pending 0/0,
		look_for coding lease=1
		waits: the run is parked; it continues when a person resumes it`)
	s.line("code_review starts")
	s.line("coding lost \"nobody has seen it\"")
	s.line("start at code_review")
	s.line("resume")
	s.showRun()
	s.says(`refused: run f8c1a491, step code_review: cannot take started while PENDING: it needs what coding has not completed [W2]
		W13  coding       RUNNING -> PENDING  runner_died
		refused: run f8c1a491, step code_review: cannot take run_resumed while waiting: coding is neither COMPLETED nor SKIPPED, and comes before it [W12]
		W12  (run)        parked -> driven  run_resumed
		start coding`)
	for _, line := range []string{"coding starts", "coding reports", "code_review starts", "code_review reports"} {
		s.line(line)
	}
	if s.run.Status() != IsCompleted || s.run.CreatedAt.Format(time.RFC3339Nano) != "2025-01-15T14:30:00.123456Z" {
		t.Errorf("the run is %s, created at %s", s.run.Status(), s.run.CreatedAt)
	}
}

// The second example: in the third iteration of a loop. The reviewer's report is found.
func TestTakeInLoop(t *testing.T) {
	review := work("code_review", "coding")
	review.LoopBackTo = "coding"
	s := takenIn(t, example(t, 2, work("coding"), review))
	s.line("code_review reports gate \"P0\"")
	s.line("resume")
	s.showRun()
	s.says(`W6   coding       COMPLETED -> PENDING  looped_back
		W12  (run)        parked -> driven  run_resumed
		= running: coding pending 3/0, code_review pending 3/0 behind code_review,
		start coding`)
}

// The third example: a failed run, resumed at the failed step. Earlier results are kept (W12).
func TestTakeInFailure(t *testing.T) {
	s := takenIn(t, example(t, 3, work("planning"), work("coding", "planning"), work("docs", "coding")))
	if s.run.Status() != IsFailed {
		t.Errorf("the run is %s", s.run.Status())
	}
	s.line("start at coding")
	s.showRun()
	s.says(`W12  coding       FAILED -> PENDING  started_over
		= running: planning completed 0/1, coding pending 0/0, docs pending 0/0,`)
}

// The fourth example: people are asked, and no report exists. The agent works with their answer
// (W9).
func TestTakeInQuestion(t *testing.T) {
	approval := work("manual_approval", "code_review")
	approval.Human = true
	s := takenIn(t, example(t, 4, work("code_review"), approval))
	s.line("manual_approval answered")
	s.line("resume")
	s.showRun()
	s.line("manual_approval answered")
	s.line("manual_approval reports")
	s.says(`refused: run hij456, step manual_approval: cannot take answered while WAITING_ON_HUMAN: the run is parked; resume it first [W9]
		ask_people manual_approval lease=1
		W9   manual_approval WAITING_ON_HUMAN -> RUNNING  answered_first
		W3   manual_approval RUNNING -> COMPLETED  reported`)
}

// TestTakeInRefuses checks impossible values in another program's file. They are refused with the
// step and the fault, or corrected if the run would otherwise wait forever.
func TestTakeInRefuses(t *testing.T) {
	gate := work("gate", "target")
	gate.LoopBackTo = "target"
	plan := []Step{work("first"), work("target", "first"), gate}
	for name, c := range map[string]struct {
		step StepID
		p    Progress
		want string
	}{
		"strange step":  {"other", Progress{Value: Value{State: Pending}}, "other is no step of the workflow"},
		"strange state": {"first", Progress{Value: Value{State: "DONE"}}, `status "DONE"`},
		"no state":      {"first", Progress{}, `status ""`},
		"attempts":      {"first", Progress{Value: Value{State: Failed, Attempts: -1}}, "can be negative"},
		"many attempts": {"first", Progress{Value: Value{State: Failed, Attempts: 1 << 40}}, "too large"},
		"index":         {"first", Progress{Value: Value{State: Pending, Index: -1}}, "loop_index -1"},
		"strange gate":  {"first", Progress{Value: Value{State: Pending, BlockedBy: "x"}}, "no step of the workflow"},
		"no gate":       {"first", Progress{Value: Value{State: Pending, BlockedBy: "target"}}, "leads back to nothing"},
		"items":         {"first", Progress{Value: Value{State: Pending}, Items: []string{"{"}}, "item 0 is no JSON"},
		"a far time": {
			"first",
			Progress{Value: Value{State: Failed, EndedAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}},
			"a time in the year 9999",
		},
		"a long path": {
			"first",
			Progress{Value: Value{State: Failed, ReportPath: strings.Repeat("x", 20_000)}},
			"report_path: 20000 bytes",
		},
		"much unknown": {
			"first",
			Progress{Value: Value{State: Failed}, Extra: strings.Repeat("x", 80_000)},
			"the unknown fields take 80000 bytes",
		},
		"no path":        {"first", Progress{Value: Value{State: Failed, ReportPath: "\xff"}}, "report_path: is not a path"},
		"artifacts":      {"first", Progress{Value: Value{State: Completed}, Facts: Facts{Artifacts: []string{""}}}, "is no artifact"},
		"blocked before": {"first", Progress{Value: Value{State: Pending, BlockedBy: "gate"}}, ""},
	} {
		in := StateFound{
			RunAsked: RunAsked{ID: "r", Plan: Plan{Name: "w", Steps: plan}, Options: DefaultOptions(1)},
			Steps:    map[StepID]Progress{c.step: c.p},
		}
		r := &Run{}
		changes, err := decide(t, r, in, Now{At: noon})
		if c.want == "" && err == nil {
			for _, ch := range changes {
				r.Apply(ch)
			}
			if r.Steps[0].BlockedBy != "" || r.Status() != IsWaiting {
				t.Errorf("%s: %+v", name, r.Steps[0])
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "X3") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParked checks that an imported run can be cancelled, its gates be read, and that it can be
// started over at a step that runs or waits.
func TestParked(t *testing.T) {
	a, b := work("a"), work("b", "a")
	a.Gates, b.Human = []string{"x"}, true
	in := StateFound{
		RunAsked: RunAsked{ID: "r", Plan: Plan{Name: "w", Steps: []Step{a, b}}, Options: DefaultOptions(1)},
		Steps: map[StepID]Progress{
			"a": {Value: Value{State: Running, Attempts: 1}}, "b": {Value: Value{State: Waiting, Attempts: 1}},
		},
	}
	in.Options.GateFile = true
	s := takenIn(t, in)
	s.line("gates x")
	s.line("start at a")
	s.showRun()
	s.says(`W12  a            RUNNING -> PENDING  started_over
		W12  b            WAITING_ON_HUMAN -> PENDING  started_over
		start a`)
	s = takenIn(t, in)
	s.line("cancel")
	s.line("start at a")
	s.says(`W14  (run)        parked -> cancelled  run_cancelled
		W14  a            RUNNING -> FAILED  cancelled_by_hand
		W12  a            FAILED -> PENDING  started_over`)
}

// X7: unknown fields are kept, regardless of what happens to the run and the step.
func TestUnknownFieldsSurvive(t *testing.T) {
	in := StateFound{
		RunAsked: RunAsked{ID: "r", Plan: Plan{Name: "w", Steps: []Step{work("a")}}, Options: DefaultOptions(1)}, Extra: `{"team":"blue"}`,
		Steps: map[StepID]Progress{"a": {Value: Value{State: Failed}, Extra: `{"cost":1}`}},
	}
	s := takenIn(t, in)
	s.tell("start at a\na starts\na reports\nstart at a\na starts\ncancel\na departed")
	s.decide(ResumeAsked{Plan: &Plan{Name: "w", Steps: []Step{work("a"), work("b", "a")}}})
	s.tell("restart")
	if s.run.Extra != in.Extra || s.run.Steps[0].Extra != `{"cost":1}` || len(s.run.Steps) != 2 {
		t.Errorf("%q, %+v", s.run.Extra, s.run.Steps[0])
	}
}

// FuzzTakeIn imports a run from arbitrary JSON for the plan and the steps. It must be refused, or
// the run must be able to end.
func FuzzTakeIn(f *testing.F) {
	f.Add([]byte(`{"name":"w","steps":[{"id":"a","agent":"x","prompt":"p"},{"id":"b","agent":"x","prompt":"p","needs":["a"],"human_in_the_loop":true,"ask":"before"}]}`),
		[]byte(`{"a":{"state":"FAILED","attempts":2,"ended_at":"2025-01-15T10:15:45.000000Z","last_error":"exit status 1"},"b":{"state":"SKIPPED"}}`))
	f.Add([]byte(`{"name":"w","steps":[{"id":"a","agent":"x","prompt":"p","loop":{"items":["1","2"]}},{"id":"b","agent":"x","prompt":"p","needs":["a"],"loop_back_to":"a"},{"id":"c","agent":"x","prompt":"p","needs":["b"],"human_in_the_loop":true,"when":"x"}]}`),
		[]byte(`{"a":{"state":"COMPLETED","index":1},"b":{"state":"RUNNING","iteration":3},"c":{"state":"PENDING","blocked_by":"b","attempts":7}}`))
	f.Add([]byte(`{"name":"w","steps":[{"id":"t","agent":"x","prompt":"p"},{"id":"g","agent":"x","prompt":"p","loop_back_to":"t"},{"id":"c","command":["x"],"needs":["t","g"],"loop":{"until_condition":"x","max_iterations":3}}]}`),
		[]byte(`{"g":{"state":"PENDING","iteration":1,"blocked_by":"g"},"c":{"state":"WAITING_ON_HUMAN"}}`))
	f.Fuzz(func(t *testing.T, plan, steps []byte) {
		in := StateFound{RunAsked: RunAsked{ID: "r", Options: DefaultOptions(2), ReportsDir: "/r", ManualInputsDir: "/m"}}
		in.Options.PauseForHumans = true
		if len(plan)+len(steps) > 1<<14 || json.Unmarshal(plan, &in.Plan) != nil || json.Unmarshal(steps, &in.Steps) != nil ||
			len(in.Plan.Steps) > 20 {
			return
		}
		w := &world{
			t: t, rnd: rand.New(rand.NewPCG(1, 1)), run: &Run{}, now: Now{At: noon}, foreign: true,
			alive: map[Lease]bool{}, begun: map[Lease]bool{}, loops: map[StepID]int{},
		}
		for i := range in.Plan.Steps {
			if l := in.Plan.Steps[i].Loop; l != nil && max(len(l.Items), l.MaxIterations) > 50 {
				return // it ends, but only after a long time
			}
		}
		if w.decide(in) != nil {
			return
		}
		w.checkWhole()
		w.finish()
		w.replay()
	})
}
