package runfile

import (
	"encoding/json"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// RunStateOf returns a run in the form of its file: steps in the plan's order, null for missing values,
// unknown fields in their place (X7), and loop_… fields for a step with a loop.
func RunStateOf(r *workflow.Run) RunState {
	s := RunState{
		RunID: string(r.ID), WorkflowName: r.Plan.Name, RepoDir: r.RepoDir, ReportsDir: r.ReportsDir, ManualInputsDir: r.ManualInputsDir,
		CreatedAt: FormatRunTime(r.CreatedAt), UpdatedAt: FormatRunTime(r.UpdatedAt), Extra: extraFields(r.Extra),
		Steps: make([]StepState, len(r.Steps)),
	}
	for i := range r.Steps {
		stepState(&s.Steps[i], r, &r.Plan.Steps[i], &r.Steps[i])
	}
	return s
}

func stepState(to *StepState, r *workflow.Run, s *workflow.Step, p *workflow.Progress) {
	*to = StepState{
		ID: string(s.ID), Status: string(p.State), Attempts: p.Attempts, IterationCount: p.Iteration, ReportPath: file.OrNull(p.ReportPath),
		StartedAt: timeOrNull(p.StartedAt), EndedAt: timeOrNull(p.EndedAt), LastError: file.OrNull(p.LastError), Artifacts: p.Artifacts, Logs: p.Logs,
		ManualInputPath: file.OrNull(p.ManualInputPath), BlockedByLoop: file.OrNull(string(p.BlockedBy)), Extra: extraFields(p.Extra),
	}
	if len(p.Metrics) > 0 {
		to.Metrics = make([]Metric, len(p.Metrics))
		for i, m := range p.Metrics {
			to.Metrics[i] = Metric(m)
		}
	}
	if s.Loop == nil {
		return
	}
	to.Loop = &LoopState{Index: p.Index, Completed: p.Done}
	for _, item := range r.LoopItems(s.ID) {
		to.Loop.Items = append(to.Loop.Items, json.RawMessage(item))
	}
}

func timeOrNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := FormatRunTime(at)
	return &text
}

// extraText encodes unknown fields as one JSON object; empty: there are none.
func extraText(fields []file.Field) string {
	if len(fields) == 0 {
		return ""
	}
	b := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, file.Quoted(f.Name)...)
		b = append(b, ':')
		b = append(b, flat(f.Raw)...)
	}
	return string(append(b, '}'))
}

// extraFields decodes what extraText encoded.
func extraFields(text string) []file.Field {
	if text == "" {
		return nil
	}
	r := &file.JSONReader{File: "unknown fields", Whole: []byte(text)}
	placed := r.Fields(file.Placed{Field: file.Field{Raw: []byte(text)}}, "")
	if r.Fault != nil {
		panic("runfile: what extraText wrote is no object: " + r.Fault.Error())
	}
	fields := make([]file.Field, len(placed))
	for i, f := range placed {
		fields[i] = f.Field
	}
	return fields
}
