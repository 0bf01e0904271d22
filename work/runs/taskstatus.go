package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
	shown := &view.TaskView{
		ID: id, RunID: id, Title: how.Task.Text, Agent: how.Task.Agent, Base: how.Task.Base, Branch: how.Task.Branch,
		Worktree: how.Task.Tree,
		After:    t.Notes[id].Settings.After, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		LandedCommit: metric(r, task.StepLand, task.MetricLanded), Issue: how.Task.Issue,
	}
	if n, err := strconv.Atoi(metric(r, task.StepApprove, task.MetricFiles)); err == nil {
		shown.FilesChanged = n
	}
	for i := range r.Steps {
		if r.Steps[i].State != workflow.Running {
			continue
		}
		if _, s, ok := t.SessionOf(id, string(r.Plan.Steps[i].ID)); ok {
			shown.Host = cmp.Or(shown.Host, view.HostOfSession(t, s.ID))
		}
	}
	if asked := askedOf(r); waitsForPerson(r) && asked != (task.Asked{}) {
		g := governsOf(r)
		shown.Asked = &view.TaskAsked{
			Tree: asked.Tree, Commit: asked.Commit, From: asked.From, GoverningHash: g.Hash, Governing: g.Files,
			Told:      append(task.ParseTold(shownMetric(r, task.MetricTold)), workTold(r)...),
			Unchanged: shownMetric(r, task.MetricUnchanged) != "",
		}
		shown.Asked.Round, _ = strconv.Atoi(shownMetric(r, task.MetricRound)) // a step of one's own may not say it
	}
	shown.Status, shown.Why, shown.FailedStep = taskStatus(t, r)
	if f := notLanded(r); f.Kind != "" {
		shown.Landing = &view.TaskNotLanded{Failed: f.Kind, Files: f.Files}
		if shown.Asked != nil {
			shown.Why = cmp.Or(shown.Why, f.Sentence(how.Task.Base))
		}
	}
	pullState(shown, r)
	return shown
}

// metric is a value of a step's report; empty: it has none.
func metric(r *workflow.Run, step workflow.StepID, name string) string {
	if _, p, ok := r.Find(step); ok {
		for _, m := range p.Metrics {
			if m.Name == name {
				return m.Value
			}
		}
	}
	return ""
}

// notLanded is why the newest landing of a task failed, until it is approved again or sent back.
func notLanded(r *workflow.Run) task.Failure {
	_, p, ok := r.Find(task.StepLand)
	_, approve, asked := r.Find(task.StepApprove)
	shownAgain := ok && p.State == workflow.Pending && (!asked || approve.State != workflow.Completed)
	if !ok || p.State != workflow.Failed && !shownAgain {
		return task.Failure{}
	}
	return task.ParseFailure(func(name string) string { return metric(r, task.StepLand, name) })
}

// taskStatus is the status of a task, with what it waits for, or the step that failed and why.
func taskStatus(t *team.Team, r *workflow.Run) (status, why, failed string) {
	id := string(r.ID)
	step := func(id workflow.StepID) workflow.Progress {
		if _, p, ok := r.Find(id); ok {
			return *p
		}
		return workflow.Progress{Value: workflow.Value{State: workflow.Skipped}}
	}
	switch r.Status() {
	case workflow.IsCompleted:
		return view.TaskDone, "", ""
	case workflow.IsCancelled:
		return view.TaskDropped, r.Why, ""
	case workflow.IsFailed:
		if why := asksAgain(r); why != "" {
			return view.TaskChecking, why, ""
		}
		for i := range r.Steps {
			if p := &r.Steps[i]; p.State == workflow.Failed {
				status, failed, why = view.TaskFailed, string(r.Plan.Steps[i].ID), p.LastError
			}
		}
		if NeedsRoom(failed) {
			status = view.TaskNeedsYou
		}
		return cmp.Or(status, view.TaskFailed), why, failed
	case workflow.IsRunning, workflow.IsWaiting:
	}
	work, check, approve := step(task.StepWork), step(task.StepCheck), step(task.StepApprove)
	if agent, s, ok := t.SessionOf(id, task.StepWork); ok {
		for _, q := range t.Questions.Open(agent) {
			if q.Session == s.ID {
				return view.TaskNeedsYou, "a person's answer: " + view.WantedWords(q) + " (" + q.ID + ")", ""
			}
		}
	}
	if work.State == workflow.Skipped && step(task.StepPrepare).State == workflow.Completed {
		work.State = workflow.Completed // its content was there
	}
	blocked := t.BlockedBy(id)
	switch {
	case approve.State == workflow.Waiting:
		return view.TaskNeedsYou, metric(r, task.StepApprove, task.MetricAgain), ""
	case approve.State == workflow.Completed, approve.State == workflow.Skipped && check.State == workflow.Completed:
		return view.TaskLanding, cmp.Or(landsAfter(t, id), t.StepWaits(id, task.StepLand)), ""
	case approve.State == workflow.Running, check.State == workflow.Running,
		work.State == workflow.Completed && check.State == workflow.Pending:
		return view.TaskChecking, "", ""
	case step(task.StepReview).State == workflow.Running, work.State == workflow.Completed && check.State == workflow.Completed:
		return view.TaskReview, t.StepWaits(id, task.StepReview), ""
	case len(blocked) > 0 && work.State == workflow.Pending:
		return view.TaskBlocked, "it waits until " + strings.Join(blocked, " and ") + " has landed" + dropped(t, blocked), ""
	case step(task.StepPrepare).State == workflow.Running:
		return view.TaskQueued, "its folder is prepared", ""
	case step(task.StepPrepare).State == workflow.Pending:
		return view.TaskQueued, t.StepWaits(id, task.StepPrepare), ""
	case work.State == workflow.Pending:
		if work.Iteration == 0 && work.Attempts == 0 {
			status = view.TaskQueued
		}
		return cmp.Or(status, view.TaskWorking), t.StepWaits(id, task.StepWork), ""
	default:
		return view.TaskWorking, "", ""
	}
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
	branch := func(of team.Purpose) string { return t.Notes[of.Run].Settings.OneAtATime[of.Step] }
	me := team.ForStep(id, task.StepLand)
	at := slices.IndexFunc(t.Pool.Queue, func(c team.Request) bool { return c.For == me })
	if at < 0 || branch(me) == "" {
		return ""
	}
	var before []string
	for _, s := range t.Pool.Sessions {
		if branch(s.For) == branch(me) {
			before = append(before, s.For.Run)
		}
	}
	for _, c := range t.Pool.Queue[:at] {
		if branch(c.For) == branch(me) {
			before = append(before, c.For.Run)
		}
	}
	if len(before) == 0 {
		return ""
	}
	return "it lands on " + branch(me) + " after " + strings.Join(before, ", ")
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
