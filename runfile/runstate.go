package runfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
	w := newWriter(512 + 512*len(s.Steps))
	w.open('{')
	w.field("run_id", s.RunID)
	w.field("workflow_name", s.WorkflowName)
	w.field("repo_dir", s.RepoDir)
	w.field("reports_dir", s.ReportsDir)
	w.field("manual_inputs_dir", s.ManualInputsDir)
	w.field("created_at", s.CreatedAt)
	w.field("updated_at", s.UpdatedAt)
	w.name("steps")
	w.open('{')
	for i := range s.Steps {
		w.name(s.Steps[i].ID)
		s.Steps[i].render(w)
	}
	w.close('}')
	w.extra(s.Extra)
	w.close('}')
	return w.buf.Bytes()
}

func (s *StepState) render(w *writer) {
	w.open('{')
	w.field("status", s.Status)
	w.number("attempts", s.Attempts)
	w.number("iteration_count", s.IterationCount)
	w.maybe("report_path", s.ReportPath)
	w.maybe("started_at", s.StartedAt)
	w.maybe("ended_at", s.EndedAt)
	w.maybe("last_error", s.LastError)
	w.list("artifacts", s.Artifacts)
	w.name("metrics")
	w.open('{')
	for _, m := range s.Metrics {
		w.field(m.Name, m.Value)
	}
	w.close('}')
	w.list("logs", s.Logs)
	w.maybe("manual_input_path", s.ManualInputPath)
	w.maybe("blocked_by_loop", s.BlockedByLoop)
	if s.Loop != nil {
		w.number("loop_index", s.Loop.Index)
		w.name("loop_items")
		w.open('[')
		for _, item := range s.Loop.Items {
			w.item()
			w.raw(item)
		}
		w.close(']')
		w.bool("loop_completed", s.Status == StepCompleted)
		w.number("loop_done", s.Loop.Completed)
	}
	w.extra(s.Extra)
	w.close('}')
}

// FormatRunTime formats a time like seed 004: UTC, microseconds, Z.
func FormatRunTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// writer writes JSON indented by two spaces, like Python's json.dump with indent=2: an empty list or object
// on one line, otherwise one line for each element.
type writer struct {
	buf   bytes.Buffer
	enc   *json.Encoder
	depth int
	empty bool // nothing was written yet inside the innermost brackets
}

func newWriter(size int) *writer {
	w := &writer{}
	w.buf.Grow(size)
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
	return w
}

func (w *writer) open(bracket byte) {
	w.buf.WriteByte(bracket)
	w.depth++
	w.empty = true
}

func (w *writer) close(bracket byte) {
	w.depth--
	if !w.empty {
		w.line()
	}
	w.buf.WriteByte(bracket)
	w.empty = false
}

// margin is a line break and the deepest indent of known fields.
const margin = "\n                "

func (w *writer) line() {
	if n := 1 + 2*w.depth; n <= len(margin) {
		w.buf.WriteString(margin[:n])
		return
	}
	w.buf.WriteByte('\n')
	for range w.depth {
		w.buf.WriteString("  ")
	}
}

func (w *writer) item() {
	if !w.empty {
		w.buf.WriteByte(',')
	}
	w.empty = false
	w.line()
}

func (w *writer) name(name string) {
	w.item()
	w.text(name)
	w.buf.WriteString(": ")
}

func (w *writer) text(text string) {
	if plainASCII(text) { // the common case in a large file that is written often
		w.buf.WriteByte('"')
		w.buf.WriteString(text)
		w.buf.WriteByte('"')
		return
	}
	if err := w.enc.Encode(text); err != nil {
		panic(fmt.Sprintf("runfile: a string does not encode: %v", err))
	}
	w.buf.Truncate(w.buf.Len() - 1) // the encoder's newline
}

// plainASCII reports whether a text needs no escaping in JSON.
func plainASCII(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *writer) field(name, value string) {
	w.name(name)
	w.text(value)
}

func (w *writer) number(name string, n int) {
	w.name(name)
	w.buf.Write(strconv.AppendInt(w.buf.AvailableBuffer(), int64(n), 10))
}

func (w *writer) bool(name string, value bool) {
	w.name(name)
	w.buf.WriteString(strconv.FormatBool(value))
}

func (w *writer) maybe(name string, value *string) {
	w.name(name)
	if value == nil {
		w.buf.WriteString("null")
		return
	}
	w.text(*value)
}

func (w *writer) list(name string, values []string) {
	w.name(name)
	w.open('[')
	for _, value := range values {
		w.item()
		w.text(value)
	}
	w.close(']')
}

// raw writes a value with this writer's indent.
func (w *writer) raw(value json.RawMessage) {
	prefix := bytes.Repeat([]byte("  "), w.depth)
	if err := json.Indent(&w.buf, value, string(prefix), "  "); err != nil {
		panic(fmt.Sprintf("runfile: a value that was read does not indent: %v", err))
	}
}

func (w *writer) extra(fields []file.Field) {
	for _, f := range fields {
		w.name(f.Name)
		w.raw(f.Raw)
	}
}
