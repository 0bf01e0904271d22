package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// ReadRunState reads a run's file. It follows no link. The error is a *RunFault where the bytes
// are no run state, with the line and the fault; it wraps fs.ErrNotExist where there is no file.
// A file that does not parse is to be left as it is.
func ReadRunState(path string) (RunState, error) {
	b, _, err := readForeign(path, runStateBytesMax)
	var no *ReportFault
	if errors.As(err, &no) {
		return RunState{}, &file.JSONFault{File: path, Fault: no.Text}
	}
	if err != nil {
		return RunState{}, err
	}
	s, err := ParseRunState(b)
	var fault *file.JSONFault
	if errors.As(err, &fault) {
		fault.File = path
	}
	return s, err
}

// StateFoundOf makes of somebody's file what the core takes in: the plan is the workflow as it is
// now, the folders are those of the file. What cannot be of the run is the core's to refuse. The
// error is a *RunFault: a time that is none.
func StateFoundOf(s RunState, plan workflow.Plan, options workflow.Options, by string) (workflow.StateFound, error) {
	created, err := runTime("created_at", &s.CreatedAt)
	if err != nil {
		return workflow.StateFound{}, err
	}
	in := workflow.StateFound{
		RunAsked: workflow.RunAsked{
			ID: workflow.RunID(s.RunID), Plan: plan, Options: options, RepoDir: s.RepoDir, ReportsDir: s.ReportsDir, ManualInputsDir: s.ManualInputsDir, By: by,
		},
		Extra: extraText(s.Extra), CreatedAt: created, Steps: make(map[workflow.StepID]workflow.Progress, len(s.Steps)),
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
			State: workflow.State(s.Status), Attempts: s.Attempts, Iteration: s.IterationCount, ReportPath: orEmpty(s.ReportPath), StartedAt: started,
			EndedAt: ended, LastError: orEmpty(s.LastError), ManualInputPath: orEmpty(s.ManualInputPath), BlockedBy: workflow.StepID(orEmpty(s.BlockedByLoop)),
		},
		Facts: workflow.Facts{Artifacts: s.Artifacts, Logs: s.Logs}, Extra: extraText(s.Extra),
	}
	for _, m := range s.Metrics {
		p.Metrics = append(p.Metrics, workflow.Metric(m))
	}
	if s.Loop != nil {
		p.Index, p.Done = s.Loop.Index, s.Loop.Completed
		for _, item := range s.Loop.Items {
			p.Items = append(p.Items, flat(item))
		}
	}
	return p, nil
}

// flat is a JSON value in one line.
func flat(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		panic("runfile: a value that was read does not compact: " + err.Error())
	}
	return b.String()
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// runTime reads a time of the file; none is zero.
func runTime(path string, text *string) (time.Time, error) {
	if text == nil || *text == "" {
		return time.Time{}, nil
	}
	at, err := file.ParseTime(*text)
	if err != nil {
		return time.Time{}, &file.JSONFault{File: RunStateName, Path: path, Fault: fmt.Sprintf("is %q, which is no time; write it as %s", shorten(*text, quoteMax), "2025-01-15T14:30:00.123456Z")}
	}
	return at, nil
}
