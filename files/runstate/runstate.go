package runstate

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/core/workflow"
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
	RunID           string         `json:"run_id"`
	WorkflowName    string         `json:"workflow_name"`
	RepoDir         string         `json:"repo_dir"`
	ReportsDir      string         `json:"reports_dir"`
	ManualInputsDir string         `json:"manual_inputs_dir"`
	CreatedAt       string         `json:"created_at"`
	UpdatedAt       string         `json:"updated_at"`
	Steps           Steps          `json:"steps"`
	Extra           jsontext.Value `json:",unknown"` // an object with the unknown fields on one line (X7)
}

// StepState is one step of a run (seed 004, Step Runtime Object). A nil pointer is null in the file.
type StepState struct {
	ID              string         `json:"-"`
	Status          string         `json:"status"` // one of the seed's six words
	Attempts        int            `json:"attempts"`
	IterationCount  int            `json:"iteration_count"`
	ReportPath      *string        `json:"report_path"`
	StartedAt       *string        `json:"started_at"`
	EndedAt         *string        `json:"ended_at"`
	LastError       *string        `json:"last_error"`
	Artifacts       []string       `json:"artifacts"` // relative to the repository
	Metrics         Metrics        `json:"metrics"`
	Logs            []string       `json:"logs"`
	ManualInputPath *string        `json:"manual_input_path"`
	BlockedByLoop   *string        `json:"blocked_by_loop"`
	Loop            *LoopState     `json:",inline"` // of a loop over items; nil: none
	Extra           jsontext.Value `json:",unknown"`
}

// LoopState is the progress of a loop over items. Its fields are Fairlead's and follow the seed's twelve
// (SPEC W15).
type LoopState struct {
	Index     int              `json:"loop_index"` // of the current item, from 0
	Items     []jsontext.Value `json:"loop_items"`
	Over      bool             `json:"loop_completed"`
	Completed int              `json:"loop_done"` // number of finished items
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

// Steps are in the order of the file, which is the workflow's order.
type Steps []StepState

// UnmarshalJSONFrom reads the object of steps.
func (s *Steps) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*s = Steps{}
	return file.EachMember(d, func(id string) error {
		if len(*s) == runStepsMax {
			return file.BadValue("is one step too many; %d are the most", runStepsMax)
		}
		var step StepState
		err := json.UnmarshalDecode(d, &step)
		step.ID = id
		*s = append(*s, step)
		return err
	})
}

// MarshalJSONTo writes the object of steps.
func (s Steps) MarshalJSONTo(e *jsontext.Encoder) error {
	return file.WriteMembers(e, len(s), func(i int) (string, any) { return s[i].ID, &s[i] })
}

// Metrics are the values that a step reported, in the order of the file; the seed stores all values as strings.
type Metrics []workflow.Metric

// UnmarshalJSONFrom reads numbers and booleans as written: agents do not store strings.
func (m *Metrics) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return file.EachMember(d, func(name string) error {
		value, err := d.ReadValue()
		switch {
		case err != nil:
			return err
		case value.Kind() == '{' || value.Kind() == '[':
			return file.BadValue("is neither a string nor a number")
		}
		*m = append(*m, workflow.Metric{Name: name, Value: plainText(value)})
		return nil
	})
}

// MarshalJSONTo writes an object of strings.
func (m Metrics) MarshalJSONTo(e *jsontext.Encoder) error {
	return file.WriteMembers(e, len(m), func(i int) (string, any) { return m[i].Name, m[i].Value })
}

// ParseRunState parses a run state. The error is a *file.JSONFault if the content is not a JSON object, a
// required field is missing (run_id, workflow_name, steps, a step's status), a field is of another kind than
// the seed says, a name occurs twice, or the content exceeds 64 MiB or nests deeper than 64. A field that may be
// null or empty may also be missing.
func ParseRunState(b []byte) (RunState, error) {
	var s RunState
	content := file.Content{File: RunStateName, Text: b}
	if err := content.Decode(runStateBytesMax, &s); err != nil {
		return RunState{}, err
	}
	compact(&s.Extra)
	for i := range s.Steps {
		step := &s.Steps[i]
		where := jsontext.Pointer("/steps").AppendToken(step.ID) + "/status"
		switch {
		case step.Status == "":
			return RunState{}, content.Wrong(where, "is missing")
		case !slices.Contains(stepWords, step.Status):
			return RunState{}, content.Wrong(where, fmt.Sprintf("is %.40q; the words are %v", step.Status, stepWords))
		}
		compact(&step.Extra)
		if loop := step.Loop; loop != nil {
			for j := range loop.Items {
				compact(&loop.Items[j])
			}
			if loop.Over && loop.Completed == 0 { // another program does not count them
				loop.Completed = len(loop.Items)
			}
		}
	}
	switch {
	case s.RunID == "":
		return RunState{}, content.Wrong("/run_id", "is missing")
	case s.WorkflowName == "":
		return RunState{}, content.Wrong("/workflow_name", "is missing")
	case s.Steps == nil:
		return RunState{}, content.Wrong("/steps", "is missing")
	}
	return s, nil
}

// compact puts a value that was read on one line.
func compact(value *jsontext.Value) {
	if *value == nil {
		return
	}
	if err := value.Compact(); err != nil {
		panic("runfile: a value that was read does not compact: " + err.Error())
	}
}

// Render returns the file's content: all of the seed's fields in its order, then unknown ones, indented by
// two spaces, without HTML escaping and without a final newline.
func (s RunState) Render() []byte {
	b, err := file.Encode(&s)
	if err != nil {
		panic("runfile: a run state is not written: " + err.Error())
	}
	return b
}

// FormatRunTime formats a time like seed 004: UTC, microseconds, Z.
func FormatRunTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
