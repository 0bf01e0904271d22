package main

import (
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/runfile"
)

// fileView is a run as its file tells it. A file does not say whether the run was cancelled,
// nor whether somebody drives it.
func fileView(s runfile.RunState) engine.RunView {
	view := engine.RunView{
		ID: s.RunID, Workflow: s.WorkflowName, RepoDir: s.RepoDir, StateFile: filepath.Join(runFolder(s.RepoDir, s.RunID), runfile.RunStateName),
		CreatedAt: timeOf(s.CreatedAt), UpdatedAt: timeOf(s.UpdatedAt), Waits: []string{}, Steps: []engine.StepView{},
	}
	for _, step := range s.Steps {
		one := engine.StepView{
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
		view.Counts = count(view.Counts, step.Status)
		if step.Status == runfile.StepFailed && view.Why == "" && one.LastError != "" {
			view.Why = step.ID + ": " + one.LastError
		}
		view.Steps = append(view.Steps, one)
	}
	view.Status = string(statusOf(view.Counts))
	return view
}

func count(c engine.Counts, status string) engine.Counts {
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

// statusOf is how far a run is, as far as that can be read off its steps alone.
func statusOf(c engine.Counts) workflow.Status {
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

// filesInbox is what waits for a person in the runs that have left files. What agents ask
// stands in the journal alone.
func filesInbox(dir string) []engine.InboxItem {
	items := []engine.InboxItem{}
	found, _ := runFiles(dir) // a file that cannot be read is told of by `fairlead run list`
	for _, r := range found {
		for _, step := range fileView(r).Steps {
			if step.Status != runfile.StepWaiting {
				continue
			}
			item := engine.InboxItem{
				Kind: "step", Run: r.RunID, Step: step.ID, Workflow: r.WorkflowName, Since: timeOf(r.UpdatedAt),
				Why: "people are asked", Path: step.ManualInputPath, Artifacts: step.Artifacts, Logs: step.Logs,
			}
			if step.StartedAt != nil {
				item.Since = *step.StartedAt
			}
			items = append(items, item)
		}
	}
	slices.SortStableFunc(items, func(a, b engine.InboxItem) int { return a.Since.Compare(b.Since) })
	return items
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// timeOf is a time of a file; what is none is no time.
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

func mapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
