package runstate

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/core/workflow"
)

// RunStateOf returns a run in the form of its file: steps in the plan's order, null for missing values,
// unknown fields in their place (X7), and loop_… fields for a step with a loop.
func RunStateOf(r *workflow.Run) RunState {
	s := RunState{
		RunID: string(r.ID), WorkflowName: r.Plan.Name, RepoDir: r.RepoDir, ReportsDir: r.ReportsDir, ManualInputsDir: r.ManualInputsDir,
		CreatedAt: FormatRunTime(r.CreatedAt), UpdatedAt: FormatRunTime(r.UpdatedAt), Extra: jsontext.Value(r.Extra),
		Steps: make([]StepState, len(r.Steps)),
	}
	for i := range r.Steps {
		stepState(&s.Steps[i], r, &r.Plan.Steps[i], &r.Steps[i])
	}
	return s
}

func stepState(to *StepState, r *workflow.Run, s *workflow.Step, p *workflow.Progress) {
	*to = StepState{
		ID: string(s.ID), Status: string(p.State), Attempts: p.Attempts, IterationCount: p.Iteration, ReportPath: orNull(p.ReportPath),
		StartedAt: timeOrNull(p.StartedAt), EndedAt: timeOrNull(p.EndedAt), LastError: orNull(p.LastError), Artifacts: p.Artifacts,
		Metrics: p.Metrics, Logs: p.Logs,
		ManualInputPath: orNull(p.ManualInputPath), BlockedByLoop: orNull(string(p.BlockedBy)), Extra: jsontext.Value(p.Extra),
	}
	if s.Loop == nil {
		return
	}
	to.Loop = &LoopState{Index: p.Index, Over: to.Status == StepCompleted, Completed: p.Done}
	for _, item := range r.LoopItems(s.ID) {
		to.Loop.Items = append(to.Loop.Items, jsontext.Value(item))
	}
}

func timeOrNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return orNull(FormatRunTime(at))
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
