package runs

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/runfile"
	"github.com/fairlead-dev/fairlead/view"
)

// fileView is a run according to another program's file. The file does not say whether the run was
// cancelled, nor whether that program still works on it.
func fileView(s runfile.RunState) view.RunView {
	shown := view.RunView{
		ID: s.RunID, Workflow: s.WorkflowName, RepoDir: s.RepoDir, StateFile: filepath.Join(RunFolder(s.RepoDir, s.RunID), runfile.RunStateName),
		CreatedAt: timeOf(s.CreatedAt), UpdatedAt: timeOf(s.UpdatedAt), Waits: []string{}, Steps: []view.StepView{},
	}
	for _, step := range s.Steps {
		one := view.StepView{
			ID: step.ID, Status: step.Status, Attempts: step.Attempts, Iteration: step.IterationCount, LastError: textOf(step.LastError),
			BlockedBy: textOf(step.BlockedByLoop), ReportPath: textOf(step.ReportPath), ManualInputPath: textOf(step.ManualInputPath),
			Needs: []string{}, Artifacts: step.Artifacts, Metrics: map[string]string{}, Logs: step.Logs,
			StartedAt: pointAt(step.StartedAt), EndedAt: pointAt(step.EndedAt),
		}
		for _, m := range step.Metrics {
			one.Metrics[m.Name] = m.Value
		}
		if step.Loop != nil {
			one.LoopIndex, one.LoopItems, one.LoopDone = step.Loop.Index, len(step.Loop.Items), step.Loop.Completed
		}
		shown.Counts = count(shown.Counts, step.Status)
		if step.Status == runfile.StepFailed && shown.Why == "" && one.LastError != "" {
			shown.Why = step.ID + ": " + one.LastError
		}
		shown.Steps = append(shown.Steps, one)
	}
	shown.Status = string(statusOf(shown.Counts))
	return shown
}

func count(c view.Counts, status string) view.Counts {
	switch status {
	case runfile.StepPending:
		c.Pending++
	case runfile.StepRunning:
		c.Running++
	case runfile.StepWaiting:
		c.Waiting++
	case runfile.StepCompleted:
		c.Completed++
	case runfile.StepFailed:
		c.Failed++
	case runfile.StepSkipped:
		c.Skipped++
	}
	return c
}

// statusOf is a run's status, as far as its steps show it.
func statusOf(c view.Counts) workflow.Status {
	switch {
	case c.Running > 0:
		return workflow.IsRunning
	case c.Waiting > 0:
		return workflow.IsWaiting
	case c.Failed > 0:
		return workflow.IsFailed
	case c.Pending > 0:
		return workflow.IsWaiting // to be resumed
	default:
		return workflow.IsCompleted
	}
}

// foreignRuns are runs that other programs left as files, and that the journal does not have. faults
// are files that cannot be read.
func foreignRuns(dir string, known []view.RunView) (found []view.RunView, faults []string) {
	files, faults := RunFiles(dir)
	for _, r := range files {
		if !slices.ContainsFunc(known, func(v view.RunView) bool { return v.ID == r.RunID }) {
			found = append(found, fileView(r))
		}
	}
	return found, faults
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// timeOf parses a time of a file; an invalid one is the zero time.
func timeOf(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

func pointAt(text *string) *time.Time {
	at := timeOf(textOf(text))
	if at.IsZero() {
		return nil
	}
	return &at
}
