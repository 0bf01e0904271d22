package team

import (
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// taskEvent decides an event about a task.
func (d *decision) taskEvent(id string, in task.Input) error {
	k := d.team.Tasks[id]
	if k == nil {
		return &Unknown{What: "task", Name: id}
	}
	if r := d.team.Runs[id]; in.Subject().Event == taskResumed && r.Stage == workflow.Stopped {
		if err := d.runDecides(id, r, workflow.ResumeAsked{By: d.ev.Actor.ID}); err != nil {
			return err
		}
	}
	changes, err := k.Decide(id, d.ev.At, d.ev.Actor, in)
	d.take(changes)
	return err
}

var taskResumed = task.Resume{}.Subject().Event

// applyTask performs a change of a task.
func (t *Team) applyTask(id string, ch change.Change) {
	next := &task.Task{}
	if was := t.Tasks[id]; was != nil {
		*next = *was
	}
	next.Apply(ch)
	put(&t.Tasks, id, next)
}

// nextOfTask is what follows for a task from the steps of its run: the order for the step that is its job, or the result of that step.
func (t *Team) nextOfTask(id string, r *workflow.Run) any {
	k := t.Tasks[id]
	switch judged := statusOf(k); {
	case k == nil:
		return nil
	case judged != r.Judged && (r.Stage == workflow.Driven || r.Stage == workflow.Paused):
		return workflow.Judged{As: judged}
	case r.Stage == workflow.Stopped:
		if k.Status != task.Dropped && k.Status != task.Done {
			return task.Drop{Why: r.Why}
		}
		return nil
	case k.Status == task.Blocked:
		if len(t.BlockedBy(id)) == 0 {
			return task.Free{}
		}
		return nil
	case k.Over():
		return nil
	}
	if _, p, ok := r.Find(workflow.StepID(task.Approve)); ok && k.Job != task.Approve && p.State == workflow.Waiting {
		return workflow.StepOrdered{Step: workflow.StepID(task.Approve)} // the question is withdrawn
	}
	_, p, isStep := r.Find(workflow.StepID(k.Job))
	switch {
	case !isStep:
		return nil
	case p.Order != k.N:
		return workflow.StepOrdered{Step: workflow.StepID(k.Job), N: k.N, Iteration: k.Round - 1}
	case p.State == workflow.Completed, p.State == workflow.Skipped, p.State == workflow.Failed:
		return taskResult(k, p)
	case k.Job == task.Land && k.Status == task.Landing && p.Rounds > 0:
		return task.JobEnded{N: k.N, Outcome: task.Opened}
	case k.Job == task.Work && k.Status == task.Queued && p.State == workflow.Running:
		return task.JobBegan{N: k.N}
	case k.Job == task.Work && t.asksPerson(id) != (k.Status == task.NeedsYou):
		return task.Question{Open: k.Status != task.NeedsYou}
	}
	return nil
}

// statusOf is what a task says about its run; empty: it goes on.
func statusOf(k *task.Task) workflow.Status {
	switch {
	case k == nil:
		return ""
	case k.NeedsHelp():
		return workflow.IsFailed
	case k.Over():
		return workflow.IsCompleted
	}
	return ""
}

// asksPerson reports whether the agent that works on a task waits for a person's answer.
func (t *Team) asksPerson(id string) bool {
	agent, s, ok := t.SessionOf(id, string(task.Work))
	if !ok {
		return false
	}
	for _, q := range t.Questions.Open(agent) {
		if q.Session == s.ID {
			return true
		}
	}
	return false
}

// taskResult is what a step that has ended means for its task.
func taskResult(k *task.Task, p *workflow.Progress) task.Input {
	why, back := workflow.GateReason(p.LastError)
	if k.Job == task.Approve && (p.State == workflow.Completed || back) {
		return task.Answer{N: k.N, By: p.Answer.By, Sent: p.State != workflow.Completed, Why: why, Governing: p.Answer.Governing}
	}
	ended := task.JobEnded{N: k.N, Outcome: task.OK, Why: why, Landed: p.Metric(task.MetricLanded)}
	switch {
	case p.State != workflow.Failed && p.Metric(task.MetricPull) == task.PullClosedWord:
		ended.Outcome, ended.Why = task.Closed, "its pull request was closed"
	case p.State != workflow.Failed:
	case back:
		ended.Outcome = task.Back
	default:
		ended.Outcome = task.Fails
	}
	if k.Job == task.Merged && back {
		ended.Failure = task.Failure{Kind: task.FailedChecks, Check: p.Metric(task.MetricCheck)}
	}
	return ended
}
