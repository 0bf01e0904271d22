package runs

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Runs returns all runs that are not archived, latest change first, without their steps.
func (c *Controller) Runs(ctx context.Context) ([]view.RunView, error) {
	views := []view.RunView{}
	err := c.loop.View(ctx, func(t *team.Team) {
		for _, id := range t.RunIDs() {
			views = append(views, c.runView(t, t.Runs[id]))
		}
	})
	for i := range views {
		sayByHand(views[i].Task, filepath.Dir(views[i].StateFile))
	}
	slices.SortStableFunc(views, func(a, b view.RunView) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return views, err
}

// RunByID returns one run with its steps. The error is *team.Unknown if it does not exist.
func (c *Controller) RunByID(ctx context.Context, id string) (view.RunView, error) {
	var shown view.RunView
	var unknown error
	err := c.loop.View(ctx, func(t *team.Team) {
		r := t.Runs[id]
		if r == nil {
			unknown = &team.Unknown{What: "run", Name: id, Known: t.RunIDs()}
			return
		}
		shown = c.runView(t, r)
		shown.Steps = make([]view.StepView, len(r.Plan.Steps))
		how := howOf(t, id)
		shown.Warnings = how.Warnings
		c.showWorktree(&shown, r, how)
		if m := c.Live[id]; m != nil && m.state.edited.Load() != nil {
			shown.StateEdited = *m.state.edited.Load()
		}
		if w := t.Notes[id].Warned; w.Day != "" {
			shown.Limit = view.WarnedWords(w)
		}
		for i := range r.Plan.Steps {
			shown.Steps[i] = c.stepView(t, r, how, i)
		}
		if k := t.Tasks[id]; k != nil {
			shown.Steps = taskSteps(k, shown.Steps)
		}
	})
	sayByHand(shown.Task, filepath.Dir(shown.StateFile))
	return shown, cmp.Or(err, unknown)
}

// sayByHand says where a person works on a task that waits. dir is the run's folder.
func sayByHand(t *view.TaskView, dir string) {
	if t == nil || t.Status != view.TaskNeedsYou {
		return
	}
	if c, err := (task.Task{ID: t.ID, Run: dir}).ByHand(); err == nil && !c.Half { // an order about it says what is wrong with the file
		t.Checkout = c.Dir
	}
}

func (c *Controller) runView(t *team.Team, r *workflow.Run) view.RunView {
	id := string(r.ID)
	away := view.AwayWords(t, id)
	shown := view.RunOf(r)
	shown.StateFile = stateFile(r)
	if shown.Away = t.Notes[id].Away; away != "" {
		shown.Waits = append(shown.Waits, away)
	}
	if k := t.Tasks[id]; k != nil {
		shown.Task = taskView(t, howOf(t, id), r)
		shown.Counts = view.Counts{}
		steps := make([]view.StepView, len(r.Steps))
		for i := range r.Steps {
			steps[i] = view.StepView{ID: string(r.Plan.Steps[i].ID), Status: string(r.Steps[i].State)}
		}
		for _, s := range taskSteps(k, steps) {
			shown.Counts.Add(workflow.State(s.Status))
		}
	}
	if stop := c.fetchStopped.Load(); stop != nil && shown.Task != nil && !runIsDone(r) {
		shown.Task.FetchStopped = stop.Why
	}
	shown.CostUSD = t.Notes[id].Total.CostUSD
	if m := c.Live[id]; m != nil {
		shown.FileBehind = m.due != m.said.Load()
	}
	return shown
}

func (c *Controller) stepView(t *team.Team, r *workflow.Run, how howRun, i int) view.StepView {
	plan, p := &r.Plan.Steps[i], &r.Steps[i]
	id := string(r.ID)
	shown := view.StepOf(r, i)
	shown.WaitsFor = t.StepWaits(id, string(plan.ID))
	if how.Task != nil {
		shown.ManualInputPath = "" // it is not approved by a file
	}
	if p.Attempts > 0 || p.Rounds > 0 {
		shown.LogPath = logFile(r, how, plan.ID, max(1, p.Attempts))
	}
	shown.LastSession = lastSession(t, id, plan, p)
	if _, s, ok := t.SessionOf(id, string(plan.ID)); ok {
		shown.Session, shown.LastSession, shown.Host = s.ID, s.ID, view.HostOfSession(t, s.ID)
		for _, q := range t.Questions.Open(plan.Agent) {
			if q.Session == s.ID && shown.WaitsFor == "" {
				shown.WaitsFor = "a person's answer: " + view.WantedWords(q) + " (" + q.ID + ")"
			}
		}
	}
	shown.Denied, shown.Cut = sessions.Joined(p.Denied...), sessions.Joined(p.Cut...)
	return shown
}

// taskSteps are the steps of a task: those of its run, with what the functions between them have made.
func taskSteps(k *state.Task, of []view.StepView) (steps []view.StepView) {
	for _, s := range of {
		if workflow.NotOrdered == s.WaitsFor {
			s.WaitsFor = "" // its turn comes
		}
		if comesAgain(k, state.Job(s.ID)) && s.Status != string(workflow.Running) {
			s.Status = string(workflow.Pending)
		}
		switch {
		case s.ID == string(state.Merged) && k.Job != state.Merged:
			continue
		case s.ID == string(state.Work) && k.Made && k.Round == 1:
			s.Status = string(workflow.Skipped) // its content was there
		case s.ID == string(state.Approve):
			s.Logs, s.Artifacts, s.LogPath = view.Some(k.Shown.Lines), []string{}, "" // no process has written a log
			if k.Shown.Diff != "" {
				s.Artifacts = []string{k.Shown.Diff}
			}
			if k.FailedAt() == state.Show {
				s.Status, s.LastError = string(workflow.Failed), k.Why
			}
		}
		steps = append(steps, s)
	}
	if n := len(steps); n > 0 && steps[n-1].ID == string(state.Land) {
		return steps
	}
	land := view.StepView{ID: string(state.Land), Status: string(workflow.Pending), Artifacts: []string{}, Logs: []string{}}
	switch {
	case k.Status == state.Landing: // its checks on the merged files are part of it
		land.Status = string(workflow.Running)
	case k.Status == state.Done:
		land.Status, land.Logs = string(workflow.Completed), []string{k.Said}
	case k.Status == state.NeedsYou && k.NeedsHelp():
		land.Status, land.LastError = string(workflow.Failed), k.Why
	case k.Failure.Kind != "":
		land.LastError = k.Why
	}
	return append(steps, land)
}

// comesAgain reports whether a job comes after the one that a task has, or at which it failed or was dropped: a result that it had was of
// an earlier round.
func comesAgain(k *state.Task, job state.Job) bool {
	order := []state.Job{state.Prepare, state.Work, state.Checks, state.Reviews, state.Show, state.Approve, state.Merged, state.Land}
	from := cmp.Or(k.Job, k.FailedAt())
	if k.Status == state.Dropped {
		from = k.At
	}
	at := slices.Index(order, from)
	return at >= 0 && slices.Index(order, job) > at
}

// lastSession is the newest session of a step that the team's state still holds.
func lastSession(t *team.Team, run string, plan *workflow.Step, p *workflow.Progress) string {
	if a := t.Agents[plan.Agent]; a != nil && len(plan.Command) == 0 && !t.Notes[run].Settings.Wrapped {
		for i := len(a.Past) - 1; i >= 0; i-- {
			if a.Past[i].For == team.ForStep(run, plan.ID) {
				return a.Past[i].ID
			}
		}
		return ""
	}
	if p.Attempts == 0 && p.Iteration == 0 && p.Rounds == 0 {
		return ""
	}
	return fmt.Sprintf("%s@%s-%d", plan.ID, run, p.N)
}
