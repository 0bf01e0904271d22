package runfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// RunStateName is the name of the file in a run's folder (seed 004, File Location).
const RunStateName = "run_state.json"

const (
	runStateBytesMax = 64 << 20 // 10,000 steps with a page of logs each
	runStepsMax      = 100_000  // more than any real graph; bounds memory for a hostile file
)

// RunState is the content of a run_state.json (seed 004, Schema Structure). Paths and times are as written.
type RunState struct {
	RunID           string
	WorkflowName    string
	RepoDir         string
	ReportsDir      string
	ManualInputsDir string
	CreatedAt       string
	UpdatedAt       string
	Steps           []StepState  // in the order of the file, which is the workflow's order
	Extra           []file.Field // unknown fields (X7)
}

// StepState is one step of a run (seed 004, Step Runtime Object). A nil pointer is null in the file.
type StepState struct {
	ID              string
	Status          string // one of the seed's six words
	Attempts        int
	IterationCount  int
	ReportPath      *string
	StartedAt       *string
	EndedAt         *string
	LastError       *string
	Artifacts       []string // relative to the repository
	Metrics         []Metric // in the order of the file
	Logs            []string
	ManualInputPath *string
	BlockedByLoop   *string
	Loop            *LoopState // of a loop over items; nil: none
	Extra           []file.Field
}

// Metric is one value that a step reported; the seed stores all values as strings.
type Metric struct{ Name, Value string }

// LoopState is the progress of a loop over items. Its fields are Fairlead's and follow the seed's twelve
// (SPEC W15).
type LoopState struct {
	Index     int               // of the current item, from 0
	Items     []json.RawMessage // the items
	Completed int               // number of finished items
}

// Values of a step's status (seed 004, Status Values).
const (
	StepPending   = "PENDING"
	StepRunning   = "RUNNING"
	StepWaiting   = "WAITING_ON_HUMAN"
	StepCompleted = "COMPLETED"
	StepFailed    = "FAILED"
	StepSkipped   = "SKIPPED"
)

var stepWords = []string{StepPending, StepRunning, StepWaiting, StepCompleted, StepFailed, StepSkipped}

// stateReader reads a run state.
type stateReader struct{ file.JSONReader }

// ParseRunState parses a run state. The error is a *file.JSONFault if the content is not a JSON object, a
// required field is missing (run_id, workflow_name, steps, a step's status), a field is of another kind than
// the seed says, or the content exceeds 64 MiB or nests deeper than 64. A field that may be null or empty may
// also be missing.
func ParseRunState(b []byte) (RunState, error) {
	r := stateReader{file.JSONReader{File: RunStateName, Whole: b}}
	fields, err := r.Object(b, runStateBytesMax)
	if err != nil {
		return RunState{}, err
	}
	var s RunState
	for _, f := range fields {
		switch f.Name {
		case "run_id":
			s.RunID = r.Text(f, "")
		case "workflow_name":
			s.WorkflowName = r.Text(f, "")
		case "repo_dir":
			s.RepoDir = r.Text(f, "")
		case "reports_dir":
			s.ReportsDir = r.Text(f, "")
		case "manual_inputs_dir":
			s.ManualInputsDir = r.Text(f, "")
		case "created_at":
			s.CreatedAt = r.Text(f, "")
		case "updated_at":
			s.UpdatedAt = r.Text(f, "")
		case "steps":
			s.Steps = r.steps(f)
		default:
			s.Extra = append(s.Extra, f.Field)
		}
	}
	for _, need := range []string{"run_id", "workflow_name", "steps"} {
		r.Needs(fields, need, "")
	}
	if r.Fault != nil {
		return RunState{}, r.Fault
	}
	return s, nil
}

// steps reads the object of steps in order.
func (r *stateReader) steps(f file.Placed) []StepState {
	each := r.Fields(f, "")
	if len(each) > runStepsMax {
		r.Wrong(f, "", fmt.Sprintf("has %d steps; %d are the most", len(each), runStepsMax))
		return nil
	}
	steps := make([]StepState, 0, len(each))
	for _, one := range each {
		steps = append(steps, r.step(one))
		if r.Fault != nil {
			return nil
		}
	}
	return steps
}

func (r *stateReader) step(at file.Placed) StepState {
	s := StepState{ID: at.Name}
	under := "steps." + at.Name + "."
	var loop LoopState
	all, counted := false, false
	fields := r.Fields(at, "steps.")
	for _, f := range fields {
		switch f.Name {
		case "status":
			s.Status = r.Text(f, under)
			if !slices.Contains(stepWords, s.Status) {
				r.Wrong(f, under, fmt.Sprintf("is %.40q; the words are %v", s.Status, stepWords))
			}
		case "attempts":
			s.Attempts = r.Count(f, under)
		case "iteration_count":
			s.IterationCount = r.Count(f, under)
		case "report_path":
			s.ReportPath = r.TextOrNil(f, under)
		case "started_at":
			s.StartedAt = r.TextOrNil(f, under)
		case "ended_at":
			s.EndedAt = r.TextOrNil(f, under)
		case "last_error":
			s.LastError = r.TextOrNil(f, under)
		case "artifacts":
			s.Artifacts = r.Texts(f, under)
		case "metrics":
			s.Metrics = r.metrics(f, under)
		case "logs":
			s.Logs = r.Texts(f, under)
		case "manual_input_path":
			s.ManualInputPath = r.TextOrNil(f, under)
		case "blocked_by_loop":
			s.BlockedByLoop = r.TextOrNil(f, under)
		case "loop_index":
			s.Loop, loop.Index = &loop, r.Count(f, under)
		case "loop_completed":
			s.Loop = &loop
			switch string(f.Raw) {
			case "true", "false":
				all = string(f.Raw) == "true"
			default: // as Fairlead wrote it before
				loop.Completed, counted = r.Count(f, under), true
			}
		case "loop_done":
			s.Loop, loop.Completed, counted = &loop, r.Count(f, under), true
		case "loop_items":
			s.Loop = &loop
			if string(f.Raw) != "null" {
				loop.Items = r.Items(f, under)
			}
		default:
			s.Extra = append(s.Extra, f.Field)
		}
	}
	if all && !counted {
		loop.Completed = len(loop.Items)
	}
	r.Needs(fields, "status", under)
	return s
}

// metrics reads numbers and booleans as written: the seed stores all values as strings, agents do not.
func (r *stateReader) metrics(f file.Placed, under string) []Metric {
	var metrics []Metric
	for _, one := range r.Fields(f, under) {
		switch one.Raw[0] {
		case '"':
			metrics = append(metrics, Metric{one.Name, r.Text(one, under+f.Name+".")})
		case '{', '[':
			r.Wrong(one, under+f.Name+".", "is neither a string nor a number")
		default:
			metrics = append(metrics, Metric{one.Name, string(one.Raw)})
		}
	}
	return metrics
}

// Render returns the file's content: all of the seed's fields in its order, then unknown ones, indented by
// two spaces, without HTML escaping and without a final newline.
func (s RunState) Render() []byte {
	w := file.NewJSONWriter(512 + 512*len(s.Steps))
	w.Open('{')
	w.Field("run_id", s.RunID)
	w.Field("workflow_name", s.WorkflowName)
	w.Field("repo_dir", s.RepoDir)
	w.Field("reports_dir", s.ReportsDir)
	w.Field("manual_inputs_dir", s.ManualInputsDir)
	w.Field("created_at", s.CreatedAt)
	w.Field("updated_at", s.UpdatedAt)
	w.Name("steps")
	w.Open('{')
	for i := range s.Steps {
		w.Name(s.Steps[i].ID)
		s.Steps[i].render(w)
	}
	w.Close('}')
	w.Extra(s.Extra)
	w.Close('}')
	return w.Bytes()
}

func (s *StepState) render(w *file.JSONWriter) {
	w.Open('{')
	w.Field("status", s.Status)
	w.Number("attempts", s.Attempts)
	w.Number("iteration_count", s.IterationCount)
	w.TextOrNull("report_path", s.ReportPath)
	w.TextOrNull("started_at", s.StartedAt)
	w.TextOrNull("ended_at", s.EndedAt)
	w.TextOrNull("last_error", s.LastError)
	w.Texts("artifacts", s.Artifacts)
	w.Name("metrics")
	w.Open('{')
	for _, m := range s.Metrics {
		w.Field(m.Name, m.Value)
	}
	w.Close('}')
	w.Texts("logs", s.Logs)
	w.TextOrNull("manual_input_path", s.ManualInputPath)
	w.TextOrNull("blocked_by_loop", s.BlockedByLoop)
	if s.Loop != nil {
		w.Number("loop_index", s.Loop.Index)
		w.Name("loop_items")
		w.Open('[')
		for _, item := range s.Loop.Items {
			w.Item()
			w.Raw(item)
		}
		w.Close(']')
		w.Bool("loop_completed", s.Status == StepCompleted)
		w.Number("loop_done", s.Loop.Completed)
	}
	w.Extra(s.Extra)
	w.Close('}')
}

// FormatRunTime formats a time like seed 004: UTC, microseconds, Z.
func FormatRunTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
