package runstate

import (
	"errors"
	"fmt"
	"time"

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
	created, err := runTime("created_at", &s.CreatedAt)
	if err != nil {
		return workflow.StateFound{}, err
	}
	in := workflow.StateFound{
		RunAsked: workflow.RunAsked{
			ID: workflow.RunID(s.RunID), Plan: plan, Options: options, RepoDir: s.RepoDir, ReportsDir: s.ReportsDir,
			ManualInputsDir: s.ManualInputsDir, By: by,
		},
		Extra: string(s.Extra), CreatedAt: created, Steps: make(map[workflow.StepID]workflow.Progress, len(s.Steps)),
	}
	for i := range s.Steps {
		p, err := progressOf(&s.Steps[i])
		if err != nil {
			return workflow.StateFound{}, err
		}
		in.Steps[workflow.StepID(s.Steps[i].ID)] = p
	}
	return in, nil
}

func progressOf(s *StepState) (workflow.Progress, error) {
	at := "steps." + s.ID + "."
	started, err := runTime(at+"started_at", s.StartedAt)
	if err != nil {
		return workflow.Progress{}, err
	}
	ended, err := runTime(at+"ended_at", s.EndedAt)
	if err != nil {
		return workflow.Progress{}, err
	}
	p := workflow.Progress{
		Value: workflow.Value{
			State: workflow.State(s.Status), Attempts: s.Attempts, Iteration: s.IterationCount, ReportPath: orEmpty(s.ReportPath),
			StartedAt: started,
			EndedAt:   ended, LastError: orEmpty(s.LastError), ManualInputPath: orEmpty(s.ManualInputPath),
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
	return p, nil
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// runTime parses a time of the file; a missing one is the zero time.
func runTime(path string, text *string) (time.Time, error) {
	if text == nil || *text == "" {
		return time.Time{}, nil
	}
	at, err := file.ParseTime(*text)
	if err != nil {
		return time.Time{},
			&file.JSONFault{
				File: RunStateName, Path: path,
				Fault: fmt.Sprintf("is %q, which is no time; write it as %s", clip.Text(*text, quoteMax), "2025-01-15T14:30:00.123456Z"),
			}
	}
	return at, nil
}
