package team

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// gives begins a task whose steps are those of work/runs.
func (c *crewWorld) gives(id string, plan task.Plan, settings RunSettings) {
	c.t.Helper()
	var steps []workflow.Step
	for _, name := range []task.Job{task.Prepare, task.Checks, task.Merged} {
		steps = append(steps, workflow.Step{ID: workflow.StepID(name), Command: []string{"true"}, Ordered: true})
	}
	steps = append(steps,
		workflow.Step{ID: workflow.StepID(task.Work), Agent: "ada", Prompt: "p.md", ReportOptional: true, Ordered: true},
		workflow.Step{ID: workflow.StepID(task.Approve), Human: true, Ordered: true})
	c.ofRun(id, RunBegun{Asked: workflow.RunAsked{
		ID: workflow.RunID(id), Plan: workflow.Plan{Name: "task", Steps: steps}, Options: often, RepoDir: "/w", ReportsDir: "/r",
		ManualInputsDir: "/m", By: "ann",
	}, Settings: settings, Task: &plan})
}

// jobs lets the steps of a task end well.
func (c *crewWorld) jobs(id string, steps ...task.Job) {
	c.t.Helper()
	for _, step := range steps {
		c.stepStarts(id, string(step))
		c.does(id, string(step), good, control.OK)
	}
}

// ends gives the result of a function.
func (c *crewWorld) endsJob(id string, in task.JobEnded) {
	c.t.Helper()
	if in.N = c.Tasks[id].N; in.Outcome == "" {
		in.Outcome = task.OK
	}
	c.ofRun(id, in)
}

// answers is a person's answer to the question about a task.
func (c *crewWorld) answers(id string, rejected bool) {
	c.t.Helper()
	_, p, _ := c.Runs[id].Find(workflow.StepID(task.Approve))
	c.ofRun(id, workflow.AnswerRead{Lease: workflow.Lease{Step: workflow.StepID(task.Approve), N: p.N}, By: "ann", Rejected: rejected, Note: "no"})
}

// is compares a task and its run.
func (c *crewWorld) is(id string, status task.Status, job task.Job, run workflow.Status) {
	c.t.Helper()
	if k := c.Tasks[id]; k.Status != status || k.Job != job || c.Runs[id].Status() != run {
		c.t.Fatalf("%s is %s at %q, its run is %s; want %s at %q, %s", id, k.Status, k.Job, c.Runs[id].Status(), status, job, run)
	}
}

// The run of a task is over when the task is, whatever its steps say: they may all be done before it has landed, and one that failed in an
// earlier round means nothing.
func TestRunOfATask(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.gives("T1", task.Plan{RoundsMax: 3}, RunSettings{})
	c.gives("T2", task.Plan{RoundsMax: 3}, RunSettings{After: []string{"T1"}})
	c.is("T2", task.Blocked, task.Nothing, workflow.IsRunning)
	c.jobs("T1", task.Prepare, task.Work)
	c.stepStarts("T1", "check")
	c.does("T1", "check", &workflow.Report{GateFailed: true, Why: "red"}, control.OK)
	c.is("T1", task.Working, task.Work, workflow.IsRunning)
	c.jobs("T1", task.Work, task.Checks)
	c.is("T1", task.Checking, task.Show, workflow.IsRunning)
	c.endsJob("T1", task.JobEnded{Shown: task.Shown{Asked: task.Asked{Tree: "a"}}})
	c.is("T1", task.NeedsYou, task.Approve, workflow.IsWaiting)
	c.answers("T1", true)
	c.is("T1", task.Working, task.Work, workflow.IsRunning)
	c.jobs("T1", task.Work, task.Checks)
	c.endsJob("T1", task.JobEnded{Shown: task.Shown{Asked: task.Asked{Tree: "b"}}})
	c.answers("T1", false)
	c.endsJob("T1", task.JobEnded{Outcome: task.Recheck})
	c.stepStarts("T1", "merged")
	c.does("T1", "merged", &workflow.Report{GateFailed: true, Why: "red"}, control.OK)
	c.is("T1", task.Checking, task.Show, workflow.IsRunning)
	c.endsJob("T1", task.JobEnded{Shown: task.Shown{Asked: task.Asked{Tree: "c"}}})
	c.answers("T1", false)
	c.endsJob("T1", task.JobEnded{Outcome: task.Recheck})
	c.jobs("T1", task.Merged)
	c.is("T1", task.Landing, task.Land, workflow.IsRunning)
	c.is("T2", task.Blocked, task.Nothing, workflow.IsRunning)
	c.endsJob("T1", task.JobEnded{Outcome: task.Room, Why: "dirty"})
	c.is("T1", task.NeedsYou, task.Nothing, workflow.IsFailed)
	c.ofRun("T1", task.Try{})
	c.is("T1", task.Landing, task.Land, workflow.IsRunning)
	c.endsJob("T1", task.JobEnded{Landed: "c1"})
	c.is("T1", task.Done, task.Nothing, workflow.IsCompleted)
	c.is("T2", task.Queued, task.Prepare, workflow.IsRunning)
	c.ofRun("T1", task.Undo{Why: "undone"})
	c.is("T1", task.Checking, task.Show, workflow.IsRunning)
}

// A step that failed for good fails the task and its run, until a person lets it go on.
func TestTaskFails(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.gives("T1", task.Plan{RoundsMax: 3}, RunSettings{})
	c.jobs("T1", task.Prepare, task.Work, task.Checks)
	c.endsJob("T1", task.JobEnded{Outcome: task.Fails, Why: "no git"})
	c.is("T1", task.Failed, task.Nothing, workflow.IsFailed)
	c.ofRun("T1", task.Resume{})
	c.is("T1", task.Checking, task.Show, workflow.IsRunning)
	c.endsJob("T1", task.JobEnded{Shown: task.Shown{Asked: task.Asked{Tree: "a"}}})

	// What was changed by hand is shown again: the question is withdrawn.
	c.ofRun("T1", task.Resume{Job: task.Show, Why: "by hand"})
	if _, p, _ := c.Runs["T1"].Find("approve"); p.State != workflow.Pending {
		t.Errorf("the question is still open: %s", p.State)
	}
	c.endsJob("T1", task.JobEnded{Shown: task.Shown{Asked: task.Asked{Tree: "b"}}})
	c.is("T1", task.NeedsYou, task.Approve, workflow.IsWaiting)
	c.ofRun("T1", workflow.CancelAsked{By: "ann"})
	c.is("T1", task.Dropped, task.Nothing, workflow.IsCancelled)
	c.ofRun("T1", task.Resume{Job: task.Land})
	c.endsJob("T1", task.JobEnded{Landed: "c1"})
	c.is("T1", task.Done, task.Nothing, workflow.IsCompleted)
}
