package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// reviewBegun is kept in the run's folder while a reviewer works.
type reviewBegun struct {
	Iteration int          `json:"iteration"`
	Picture   task.Picture `json:"picture"` // of the folder when the review began
	Fault     string       `json:"fault,omitempty"`
}

func (f StepFacts) task() (task.Task, error) { return task.Load(filepath.Join(f.dir, task.FileName)) }

func (f StepFacts) findings() (runstate.Review, error) {
	return runstate.LoadReview(filepath.Join(f.dir, task.FindingsName))
}

// found is what a reviewer found, if the review sent the task back; empty otherwise.
func found(f StepFacts) string {
	if f.sentBy != task.StepReview {
		return ""
	}
	review, err := f.findings()
	if err != nil || len(review.Open) == 0 {
		return ""
	}
	return review.Words()
}

// beginReview writes what the reviewer is told, with the difference as a file.
func (f StepFacts) beginReview(ctx context.Context) error {
	t, err := f.task()
	if err != nil {
		return err
	}
	review, err := f.findings()
	if err != nil {
		return err
	}
	looked, err := task.ForReview(ctx, t, task.ReviewDiffName)
	if err != nil {
		return err
	}
	begun := reviewBegun{Iteration: f.round, Picture: looked.Picture}
	var was reviewBegun
	file := filepath.Join(f.dir, task.ReviewBegunName)
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &was) == nil && was.Iteration == f.round {
		if was.Fault != "" && f.Cmd.Attempt > 1 {
			return errors.New(was.Fault) // until a person resumes the run
		}
		if was.Fault == "" {
			begun.Picture = was.Picture // a review that was cut off may have changed files
		}
	}
	text, err := json.Marshal(begun)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.dir, task.ReviewName), []byte(f.reviewWords(t, looked, review)), 0o600)
}

// reviewWords is the prompt of a reviewer.
func (f StepFacts) reviewWords(t task.Task, looked task.Looked, review runstate.Review) string {
	var b strings.Builder
	fmt.Fprintf(&b, `Review the changes that an agent made for a task. Only look: do not change, create or commit files in this folder.

The task:

%s

The changes are compared with commit %s of branch %s. The whole difference is in the file %s.
`, strings.TrimSpace(t.Text), looked.From, t.Base, looked.Diff)
	if len(looked.Stat) == 0 {
		b.WriteString("No file was changed.\n")
	}
	for _, line := range looked.Stat {
		b.WriteString(line + "\n")
	}
	if len(review.Open) > 0 {
		b.WriteString("\nThese findings of earlier rounds are open. Say which of them are resolved:\n\n")
		for _, one := range review.Open {
			b.WriteString(one.String() + "\n")
		}
	}
	fmt.Fprintf(&b, `
Answer with one JSON object. Write it to the file %s, or print it between the lines <<<RUN_REPORT_JSON and RUN_REPORT_JSON>>>:

{"findings": [{"id": "F%d", "file": "upload.go", "line": 40, "text": "what is wrong, and what to do", "severity": "must"}], "resolved": ["F0"]}

findings: what is wrong now, numbered from F%[2]d; an empty list if nothing is. Severity must: it has to be fixed. Severity should: a suggestion.
resolved: ids of the open findings that are fixed. An open finding that you do not list stays open.
`, f.Report, review.Next+1)
	return b.String()
}

// reviewReport makes the report of a review from the reviewer's answer. Nil without an error: there is none, because
// the session has failed.
func (c *Controller) reviewReport(ctx context.Context, m *sessions.Slot, f StepFacts, s team.Session,
	what *team.SessionEnded,
) (*runstate.StepReport, error) {
	answer, err := c.reviewAnswer(ctx, m, f, s)
	switch {
	case errors.Is(err, fs.ErrNotExist) && what.Outcome == control.OK:
		return nil, errors.New("the reviewer gave no findings; an empty list says that it found nothing")
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case answer.Report != nil && answer.Report.Failed:
		return answer.Report, nil
	}
	if err := c.keptApart(ctx, m, f); err != nil {
		return nil, err
	}
	review, err := f.findings()
	if err != nil {
		return nil, err
	}
	if review, err = review.Take(s.ID, answer); err != nil {
		return nil, err
	}
	if err := review.Save(filepath.Join(f.dir, task.FindingsName)); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(f.dir, task.ReviewBegunName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	metrics := map[string]any{}
	if answer.Report != nil {
		for _, one := range answer.Report.Metrics {
			metrics[one.Name] = one.Value
		}
	}
	metrics["findings_open"] = len(review.Open)
	made := map[string]any{
		"schema": "run_report@v0", "run_id": f.Cmd.RunID, "step_id": f.Cmd.StepID, "agent": f.Cmd.Agent, "status": runstate.StepCompleted,
		"started_at": s.StartedAt.UTC().Format(time.RFC3339Nano), "ended_at": time.Now().UTC().Format(time.RFC3339Nano),
		"metrics": metrics, "logs": review.Lines(), "findings": review.Open, "resolved": []string{},
	}
	if review.SendsBack() {
		made["gate_failure"] = review.Words()
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make the report of a review: %w", err)
	}
	if err := os.WriteFile(f.Report, append(text, '\n'), madeReportMode); err != nil { //nolint:gosec // see madeReportMode
		return nil, fmt.Errorf("write the report of a review: %w", err)
	}
	report, err := runstate.ParseReport(f.Report, text, runstate.ReportFor{RunID: f.Cmd.RunID, StepID: f.Cmd.StepID})
	return &report, err
}

// reviewAnswer reads the answer from the report's file, or else from between the markers of the output. The error
// wraps fs.ErrNotExist if there is neither.
func (c *Controller) reviewAnswer(ctx context.Context, m *sessions.Slot, f StepFacts, s team.Session) (runstate.ReviewAnswer, error) {
	of := runstate.ReportFor{RunID: f.Cmd.RunID, StepID: f.Cmd.StepID}
	answer, err := runstate.ReadReview(f.Report, of)
	if err == nil {
		return answer, nil
	}
	text, fault := c.markedReport(ctx, m, s)
	if fault != nil {
		return answer, fault
	}
	if text == nil {
		return answer, err
	}
	return runstate.ParseReview("the output of "+s.ID, text, of)
}

// keptApart fails if files were changed during a review, so that nothing of the reviewer's lands unnoticed. A reviewer
// in the kernel's sandbox cannot write them: then a person did.
func (c *Controller) keptApart(ctx context.Context, m *sessions.Slot, f StepFacts) error {
	if m.Conf.Sandbox.On() && c.sessions.SandboxMissing(ctx) == "" {
		return nil
	}
	var begun reviewBegun
	file := filepath.Join(f.dir, task.ReviewBegunName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // this answer was judged before the daemon died
	}
	if err == nil {
		err = json.Unmarshal(text, &begun)
	}
	if err != nil {
		return err
	}
	t, err := f.task()
	if err != nil {
		return err
	}
	names, err := task.ChangedSince(ctx, t, begun.Picture)
	if err != nil || len(names) == 0 {
		return err
	}
	begun.Fault = fmt.Sprintf("files were changed during the review, which a reviewer may not do: %s. They have not landed. Keep them, or undo them with `git -C %s restore --source=%.12s -- FILES`; then continue with `fairlead run resume %s`",
		strings.Join(names, ", "), t.Tree, begun.Picture.Commit, t.ID)
	if text, err = json.Marshal(begun); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return errors.New(begun.Fault)
}
