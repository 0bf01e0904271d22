package runstate

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// ReadRunState reads a run's file without following links. The error is a *file.JSONFault with the line if
// the content is not a run state, or wraps fs.ErrNotExist. A file that does not parse must be left unchanged.
func ReadRunState(path string) (RunState, error) {
	b, _, err := readForeign(path, runStateBytesMax)
	if no, ok := errors.AsType[*ReportFault](err); ok {
		return RunState{}, &file.JSONFault{File: path, Fault: no.Text}
	}
	if err != nil {
		return RunState{}, err
	}
	s, err := ParseRunState(b)
	if fault, ok := errors.AsType[*file.JSONFault](err); ok {
		fault.File = path
	}
	return s, err
}

// StateFoundOf converts a run state that another program wrote into the machine's input. The plan is the
// current workflow; the folders are those of the file. The machine refuses what does not fit the plan. The
// error is a *file.JSONFault for an invalid time.
func StateFoundOf(s RunState, plan workflow.Plan, options workflow.Options, by string) (workflow.StateFound, error) {
	created, err := runTime("created_at", s.CreatedAt)
	in := workflow.StateFound{
		RunAsked: workflow.RunAsked{
			ID: workflow.RunID(s.RunID), Plan: plan, Options: options, RepoDir: s.RepoDir, ReportsDir: s.ReportsDir,
			ManualInputsDir: s.ManualInputsDir, By: by,
		},
		Extra: string(s.Extra), CreatedAt: created, Steps: make(map[workflow.StepID]workflow.Progress, len(s.Steps)),
	}
	for i := 0; i < len(s.Steps) && err == nil; i++ {
		in.Steps[workflow.StepID(s.Steps[i].ID)], err = progressOf(&s.Steps[i])
	}
	return in, err
}

// RunFound is a run as another program's file shows it, to be shown to people. The file does not have the plan, so what is PENDING
// counts as in need of a step that has failed, if there is one, and as held back by no gate. Invalid times are left out.
func RunFound(s RunState) *workflow.Run {
	head := workflow.Head{
		ID: workflow.RunID(s.RunID), Stage: workflow.Paused, RepoDir: s.RepoDir, ReportsDir: s.ReportsDir,
		ManualInputsDir: s.ManualInputsDir, StepCount: len(s.Steps),
	}
	head.CreatedAt, _ = runTime("created_at", s.CreatedAt)
	plan := workflow.PlanPart{Name: s.WorkflowName, Steps: make([]workflow.Step, len(s.Steps))}
	taken := make([]workflow.Taken, len(s.Steps))
	var failed []workflow.StepID
	for i := range s.Steps {
		step := &s.Steps[i]
		taken[i].Step = workflow.StepID(step.ID)
		taken[i].Progress, _ = progressOf(step)
		taken[i].BlockedBy = ""
		plan.Steps[i].ID = taken[i].Step
		if step.Loop != nil {
			plan.Steps[i].Loop = &workflow.Loop{}
		}
		if failed == nil && step.Status == StepFailed {
			failed = []workflow.StepID{taken[i].Step}
		}
	}
	for i := range plan.Steps {
		if s.Steps[i].Status == StepPending {
			plan.Steps[i].Needs = failed
		}
	}
	r := &workflow.Run{}
	for _, body := range []*workflow.Body{{Head: &head}, {Plan: &plan}, {Taken: taken}} {
		r.Apply(change.Change{At: s.Updated(), Body: body})
	}
	return r
}

// Updated is when the file says that the run last changed; an invalid time is the zero time.
func (s RunState) Updated() time.Time {
	at, _ := runTime("updated_at", s.UpdatedAt)
	return at
}

// progressOf converts a step of a file. With an error, which is a *file.JSONFault, only its times are missing.
func progressOf(s *StepState) (workflow.Progress, error) {
	at := "steps." + s.ID + "."
	started, err := runTime(at+"started_at", orEmpty(s.StartedAt))
	ended, more := runTime(at+"ended_at", orEmpty(s.EndedAt))
	p := workflow.Progress{
		Value: workflow.Value{
			State: workflow.State(s.Status), Attempts: s.Attempts, Iteration: s.IterationCount, ReportPath: orEmpty(s.ReportPath),
			StartedAt: started, EndedAt: ended, LastError: orEmpty(s.LastError), ManualInputPath: orEmpty(s.ManualInputPath),
			BlockedBy: workflow.StepID(orEmpty(s.BlockedByLoop)),
		},
		Facts: workflow.Facts{Artifacts: s.Artifacts, Metrics: s.Metrics, Logs: s.Logs}, Extra: string(s.Extra),
	}
	if s.Loop != nil {
		p.Index, p.Done = s.Loop.Index, s.Loop.Completed
		for _, item := range s.Loop.Items {
			p.Items = append(p.Items, string(item))
		}
	}
	return p, cmp.Or(err, more)
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// runTime parses a time of the file; a missing one is the zero time.
func runTime(path, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := file.ParseTime(text)
	if err != nil {
		return time.Time{},
			&file.JSONFault{
				File: RunStateName, Path: path,
				Fault: fmt.Sprintf("is %q, which is no time; write it as %s", clip.Text(text, quoteMax), "2025-01-15T14:30:00.123456Z"),
			}
	}
	return at, nil
}
