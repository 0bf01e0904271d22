package runs

import (
	"cmp"
	"slices"
	"strings"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// taskView describes a run that is a task; nil for any other run.
func taskView(t *team.Team, how howRun, r *workflow.Run) *view.TaskView {
	if how.Task == nil {
		return nil
	}
	id := string(r.ID)
	k := t.Tasks[id]
	shown := &view.TaskView{
		ID: id, RunID: id, Title: how.Task.Text, Agent: how.Task.Agent, Base: how.Task.Base, Branch: how.Task.Branch,
		Worktree: how.Task.Tree, Status: string(k.Status), FilesChanged: k.Shown.Files, LandedCommit: k.Landed, Issue: how.Task.Issue,
		After: t.Notes[id].Settings.After, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	for i := range r.Steps {
		if r.Steps[i].State != workflow.Running {
			continue
		}
		if _, s, ok := t.SessionOf(id, string(r.Plan.Steps[i].ID)); ok {
			shown.Host = cmp.Or(shown.Host, view.HostOfSession(t, s.ID))
		}
	}
	if k.Open() && k.Shown.Tree != "" {
		shown.Asked = &view.TaskAsked{
			Tree: k.Shown.Tree, Commit: k.Shown.Commit, From: k.Shown.From, GoverningHash: k.Shown.Governs.Hash,
			Governing: k.Shown.Governs.Files, Told: append(slices.Clone(k.Shown.Told), workTold(r)...), Round: k.Shown.Round,
			Unchanged: k.Shown.Unchanged,
		}
	}
	if comesAgain(k, state.Approve) {
		shown.FilesChanged = 0 // until it is shown again
	}
	shown.Why = taskWaits(t, id, k)
	if shown.FailedStep = string(k.FailedAt()); shown.FailedStep == string(state.Show) {
		shown.FailedStep = task.StepApprove // what is shown is part of the question
	}
	if f := k.Failure; f.Kind != "" {
		shown.Landing = &view.TaskNotLanded{Failed: f.Kind, Files: f.Files}
		if shown.Asked != nil {
			shown.Why = cmp.Or(shown.Why, f.Sentence(how.Task.Base))
		}
	}
	if _, land, ok := r.Find(task.StepLand); ok {
		shown.PullRequest = land.Metric(view.MetricPullURL)
	}
	return shown
}

// taskWaits says what a task waits for, or why it is where it is.
func taskWaits(t *team.Team, id string, k *state.Task) string {
	switch k.Status {
	case state.Blocked:
		blocked := t.BlockedBy(id)
		return "it waits until " + strings.Join(blocked, " and ") + " has landed" + dropped(t, blocked)
	case state.Queued:
		if _, p, ok := t.Runs[id].Find(workflow.StepID(k.Job)); ok && k.Job == state.Prepare && p.State == workflow.Running {
			return "its folder is prepared"
		}
		return t.StepWaits(id, string(k.Job))
	case state.Working, state.Review, state.PROpen:
		return t.StepWaits(id, string(k.Job))
	case state.NeedsYou:
		if agent, s, ok := t.SessionOf(id, task.StepWork); ok && k.Job == state.Work {
			for _, q := range t.Questions.Open(agent) {
				if q.Session == s.ID {
					return "a person's answer: " + view.WantedWords(q) + " (" + q.ID + ")"
				}
			}
		}
	case state.Landing:
		if k.Job == state.Land && !landsByStep(t.Runs[id]) {
			return landsAfter(t, id)
		}
		return t.StepWaits(id, string(k.Job))
	}
	return k.Why
}

// dropped says which of some tasks were dropped, and what to do about a task that waits for them; empty: none was.
func dropped(t *team.Team, tasks []string) string {
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(id string) bool {
		r := t.Runs[id]
		return r == nil || r.Status() != workflow.IsCancelled
	})
	if len(tasks) == 0 {
		return ""
	}
	return "; " + strings.Join(tasks, " and ") + " was dropped: drop this one, too, or continue that one with `fairlead task restore " +
		tasks[0] + "`"
}

// landsAfter says which tasks land on the same branch before a task that waits for that; empty: it waits for none.
func landsAfter(t *team.Team, id string) string {
	base, repo := howOf(t, id).Task.Base, t.Runs[id].RepoDir
	var before []string
	for other, k := range t.Tasks {
		if r := t.Runs[other]; other != id && k.Status == state.Landing && r.RepoDir == repo && howOf(t, other).Task.Base == base &&
			!landsByStep(r) && landsBefore(t, other, id) {
			before = append(before, other)
		}
	}
	if len(before) == 0 {
		return ""
	}
	slices.SortFunc(before, func(a, b string) int { return map[bool]int{true: -1, false: 1}[landsBefore(t, a, b)] })
	return "it lands on " + base + " after " + strings.Join(before, ", ")
}

// TaskTitle is the first line of a task's text; false: the run is not a task.
func TaskTitle(t *team.Team, run string) (string, bool) {
	how := howOf(t, run)
	if how.Task == nil {
		return "", false
	}
	title, _, _ := strings.Cut(how.Task.Text, "\n")
	return title, true
}

// NeedsRoom says whether a task that failed in a step waits for a person, who makes room for it.
func NeedsRoom(step string) bool { return step == task.StepLand }
