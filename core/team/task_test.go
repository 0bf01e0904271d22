package team

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// taskWorld is a team with tasks. Their functions are done by the test.
type taskWorld struct{ *crewWorld }

func newTaskWorld(t *testing.T) taskWorld {
	return taskWorld{newCrew(t, Limits{}, two())}
}

// given gives a task to an agent. last is the last step of its plan.
func (c taskWorld) given(id, agent, last string, of task.Plan, after ...string) {
	c.t.Helper()
	p := plan("prepare !", "work "+agent, "check !", "review bob", "approve !", last+" !")
	for i := range p.Steps {
		p.Steps[i].Ordered = true
	}
	p.Steps[4] = workflow.Step{ID: "approve", Human: true, Ordered: true}
	of.RoundsMax = 2
	c.ofRun(id, RunBegun{Settings: RunSettings{OwnFolder: true, After: after}, Task: &of, Asked: workflow.RunAsked{
		ID: workflow.RunID(id), Plan: p, Options: often, RepoDir: "/w", ReportsDir: "/r", ManualInputsDir: "/m", By: "ann",
	}})
}

// is compares the status and the job of a task.
func (c taskWorld) is(id string, status task.Status, job task.Job) {
	c.t.Helper()
	if k := c.Tasks[id]; k.Status != status || k.Job != job {
		c.t.Fatalf("%s is %s with job %q, want %s with %q: %+v", id, k.Status, k.Job, status, job, k.Value)
	}
}

// done lets the step that is a task's job run and end.
func (c taskWorld) done(id string, report *workflow.Report) {
	c.t.Helper()
	step := string(c.Tasks[id].Job)
	c.stepStarts(id, step)
	how := control.OK
	if report == nil {
		how = control.Failed
	}
	c.does(id, step, report, how)
}

// ended ends a job that is a function.
func (c taskWorld) ended(id string, outcome task.Outcome) {
	c.t.Helper()
	c.ofRun(id, task.JobEnded{
		N: c.Tasks[id].N, Outcome: outcome, Landed: "commit", Shown: task.Shown{Asked: task.Asked{Tree: "tree"}},
	})
}

// answered is a person's answer.
func (c taskWorld) answered(id string, rejected bool) {
	c.t.Helper()
	_, p, _ := c.Runs[id].Find("approve")
	c.ofRun(id, workflow.AnswerRead{
		Lease: workflow.Lease{Step: "approve", N: p.N}, By: "ann", Rejected: rejected, Note: "a note",
		Record: workflow.Answer{Governing: "hash"},
	})
}

var sentBack = &workflow.Report{GateFailed: true, Why: "go back"}

// The machine of a task orders the steps of its run, one at a time, and has their results.
func TestTaskOrdersSteps(t *testing.T) {
	c := newTaskWorld(t)
	c.given("T1", "ada", "merged", task.Plan{Reviewer: true})
	c.is("T1", task.Queued, task.Prepare)
	c.steps("T1", "prepare:RUNNING work:PENDING check:PENDING review:PENDING approve:PENDING merged:PENDING")
	c.done("T1", good)
	c.is("T1", task.Working, task.Work) // its agent is free
	c.given("T2", "ada", "merged", task.Plan{})
	c.done("T2", good)
	c.is("T2", task.Queued, task.Work)
	c.ofRun("T2", workflow.CancelAsked{By: "ann", Why: "not needed"})
	c.is("T2", task.Dropped, task.Nothing)
	if c.Tasks["T2"].Why != "not needed" {
		t.Errorf("it was dropped: %q", c.Tasks["T2"].Why)
	}
	c.stepStarts("T1", "work")
	c.does("T1", "work", good, control.OK)
	c.is("T1", task.Checking, task.Checks)
	c.done("T1", sentBack)
	c.is("T1", task.Working, task.Work)
	if _, p, _ := c.Runs["T1"].Find("work"); p.Iteration != 1 || p.Order != c.Tasks["T1"].N || c.Tasks["T1"].Rounds[0].Why != "go back" {
		t.Fatalf("%+v, %+v", p, c.Tasks["T1"])
	}
	c.done("T1", good)
	c.done("T1", good)
	c.is("T1", task.Review, task.Reviews)
	c.done("T1", good)
	c.is("T1", task.Checking, task.Show)
	c.steps("T1", "prepare:COMPLETED work:COMPLETED check:COMPLETED review:COMPLETED approve:PENDING merged:PENDING")
	c.ended("T1", task.OK)
	c.is("T1", task.NeedsYou, task.Approve)
	c.answered("T1", true)
	c.is("T1", task.Working, task.Work)
	if k := c.Tasks["T1"]; k.Round != 3 || k.Rounds[1].By != task.Approve || !strings.Contains(k.Rounds[1].Why, "a note") {
		t.Fatalf("%+v", k)
	}
	for range 3 {
		c.done("T1", good)
	}
	c.ended("T1", task.OK)
	c.answered("T1", false)
	c.is("T1", task.Landing, task.Land)
	if y := c.Tasks["T1"].Yes; y.By != "ann" || y.Governing != "hash" {
		t.Fatalf("%+v", y)
	}
	c.ended("T1", task.Recheck)
	c.is("T1", task.Landing, task.Merged)
	failed := *sentBack
	failed.Metrics = []workflow.Metric{{Name: task.MetricCheck, Value: "make"}}
	c.done("T1", &failed)
	if f := c.Tasks["T1"].Failure; f.Kind != task.FailedChecks || f.Check != "make" {
		t.Fatalf("%+v", f)
	}
	c.is("T1", task.Checking, task.Show)
	c.ended("T1", task.OK)
	c.answered("T1", false)
	c.ended("T1", task.OK)
	c.is("T1", task.Done, task.Nothing)
	if s := c.Runs["T1"].Status(); s != workflow.IsCompleted {
		t.Errorf("its run is %s", s)
	}
	c.ofRun("T1", task.Undo{Why: "no"})
	c.is("T1", task.Checking, task.Show)
	c.replays()
}

// A task fails with its step, and goes on there; it waits for others, and ends with its run.
func TestTaskFailsWaitsAndEnds(t *testing.T) {
	c := newTaskWorld(t)
	c.given("T1", "ada", "merged", task.Plan{Made: true})
	c.given("T2", "bob", "merged", task.Plan{}, "T1")
	c.is("T2", task.Blocked, task.Nothing)
	c.done("T1", nil)
	for c.Tasks["T1"].Status == task.Queued { // it is tried again first
		c.at = c.at.Add(c.Runs["T1"].Options.BackoffMax + often.BackoffMax + 1e12)
		c.ofRun("T1", TimerFired{})
		c.done("T1", nil)
	}
	c.is("T1", task.Failed, task.Nothing)
	c.ofRun("T1", task.Resume{})
	c.is("T1", task.Queued, task.Prepare)
	c.done("T1", good)
	c.done("T1", good)
	c.ofRun("T1", workflow.CancelAsked{By: "ann"})
	c.is("T1", task.Dropped, task.Nothing)
	c.is("T2", task.Blocked, task.Nothing)
	c.ofRun("T1", task.Resume{}) // its run goes on with it
	c.is("T1", task.Checking, task.Show)
	c.ended("T1", task.OK)
	c.answered("T1", false)
	c.ended("T1", task.OK)
	c.is("T1", task.Done, task.Nothing)
	c.is("T2", task.Queued, task.Prepare)
	c.replays()
}

// A question of the agent that works on a task needs the person; one of its other sessions does not.
func TestTaskAsks(t *testing.T) {
	c := newTaskWorld(t)
	c.given("T1", "ada", "merged", task.Plan{})
	c.done("T1", good)
	c.stepStarts("T1", "work")
	ask := question.Ask{Question: question.Question{
		Kind: question.Asked, Agent: "ada", Session: c.sit("T1", "work").ID, Ask: "1", What: "Which?",
	}}
	c.must("", ask)
	c.is("T1", task.NeedsYou, task.Work)
	c.must("", question.Answer{ID: c.Questions.Open("ada")[0].ID, Text: "this one"})
	c.is("T1", task.Working, task.Work)
	c.does("T1", "work", good, control.OK)
	c.is("T1", task.Checking, task.Checks)
	c.replays()
}

// A pull request is a step that waits, and its end on the forge is the task's.
func TestTaskAsPullRequest(t *testing.T) {
	c := newTaskWorld(t)
	open := func(id string) {
		t.Helper()
		c.given(id, "ada", "land", task.Plan{Made: true})
		c.done(id, good)
		c.done(id, good)
		c.ended(id, task.OK)
		c.answered(id, false)
		c.is(id, task.Landing, task.Land)
		c.done(id, &workflow.Report{Again: 1e9})
		c.is(id, task.PROpen, task.Land)
		c.at = c.at.Add(1e10)
		c.ofRun(id, TimerFired{})
	}
	open("T1")
	c.done("T1", &workflow.Report{Facts: workflow.Facts{Metrics: []workflow.Metric{{Name: task.MetricPull, Value: task.PullClosedWord}}}})
	c.is("T1", task.Dropped, task.Nothing)
	open("T2")
	c.done("T2", sentBack)
	c.is("T2", task.Working, task.Work)
	open("T3")
	c.done("T3", &workflow.Report{Facts: workflow.Facts{Metrics: []workflow.Metric{{Name: task.MetricLanded, Value: "abc"}}}})
	c.is("T3", task.Done, task.Nothing)
	if c.Tasks["T3"].Landed != "abc" {
		t.Errorf("%+v", c.Tasks["T3"].Value)
	}
	c.replays()
}

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
	c.endsJob("T1", task.JobEnded{Shown: task.Shown{Asked: task.Asked{Tree: "b"}}})
	c.answers("T1", false)
	c.endsJob("T1", task.JobEnded{Landed: "c1"})
	c.is("T1", task.Done, task.Nothing, workflow.IsCompleted)
}
