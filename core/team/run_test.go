package team

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// plan creates a plan from lines: "build ada", "test ada needs build", "pack ! needs test" (a
// command).
func plan(lines ...string) workflow.Plan {
	p := workflow.Plan{Name: "story"}
	for _, line := range lines {
		words := strings.Fields(line)
		s := workflow.Step{ID: workflow.StepID(words[0]), Agent: words[1], Prompt: "p.md"}
		if s.Agent == "!" {
			s.Agent, s.Prompt, s.Command = "", "", []string{"true"}
		}
		for i := 2; i < len(words); i += 2 {
			switch words[i] {
			case "needs":
				for _, need := range strings.Split(words[i+1], ",") {
					s.Needs = append(s.Needs, workflow.StepID(need))
				}
			case "back":
				s.LoopBackTo = workflow.StepID(words[i+1])
			case "ask":
				s.Human, s.Ask = true, workflow.Ask(words[i+1])
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

var often = workflow.Options{MaxAttempts: 2, MaxIterations: 2, SideBySide: 4, PauseForHumans: true}

func (c *crewWorld) runs(id string, settings RunSettings, lines ...string) []change.Change {
	c.t.Helper()
	asked := workflow.RunAsked{
		ID: workflow.RunID(id), Plan: plan(lines...), Options: often, RepoDir: "/w", ReportsDir: "/r",
		ManualInputsDir: "/m", By: "ann",
	}
	return c.ofRun(id, RunBegun{Asked: asked, Settings: settings})
}

func (c *crewWorld) ofRun(id string, what any) []change.Change {
	c.t.Helper()
	changes, err := c.event(Event{Run: id, What: what})
	if err != nil {
		c.t.Fatalf("%T: %v", what, err)
	}
	return changes
}

// sit returns the session of a step, which must have one.
func (c *crewWorld) sit(run, step string) Session {
	c.t.Helper()
	_, s, ok := c.SessionOf(run, step)
	if !ok {
		c.t.Fatalf("step %s of %s has no session: %s", step, run, c.StepWaits(run, step))
	}
	return s
}

// tells applies what happened to a step's session.
func (c *crewWorld) tells(run, step string, what any) []change.Change {
	c.t.Helper()
	agent, _, _ := c.SessionOf(run, step)
	ev := Event{Agent: agent, What: what}
	if agent == "" {
		ev.Run = run
	}
	changes, err := c.event(ev)
	if err != nil {
		c.t.Fatalf("%T: %v", what, err)
	}
	return changes
}

func (c *crewWorld) stepStarts(run, step string) {
	c.t.Helper()
	c.tells(run, step, SessionStarted{Session: c.sit(run, step).ID, PID: 1})
}

// does lets a step's session run and end with this report; nil: without one.
func (c *crewWorld) does(run, step string, report *workflow.Report, how control.Outcome) []change.Change {
	c.t.Helper()
	end := SessionEnded{Session: c.sit(run, step).ID, Outcome: how, Why: "so"}
	if report != nil {
		end.Report = &StepReport{Report: *report}
	}
	return c.tells(run, step, end)
}

func (c *crewWorld) steps(run, want string) {
	c.t.Helper()
	r := c.Runs[run]
	var words []string
	for i := range r.Steps {
		words = append(words, fmt.Sprintf("%s:%s", r.Plan.Steps[i].ID, r.Steps[i].State))
	}
	if got := strings.Join(words, " "); got != want {
		c.t.Errorf("run %s is\n%s, want\n%s", run, got, want)
	}
}

func rows(changes []change.Change) string {
	var words []string
	for _, ch := range changes {
		words = append(words, ch.Entity+" "+ch.Row+" "+ch.From+">"+ch.To)
	}
	return strings.Join(words, "\n")
}

var good = &workflow.Report{}

// SPEC W2, J1: the end of one step and the start of the next with its session are one batch. A step
// costs two appends, also if the agent changes.
func TestStepsTakeSlots(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "build ada", "test bob needs build", "pack ! needs test")
	if s := c.sit("r", "build"); s.ID != "ada-1" || s.For != ForStep("r", "build") || s.Lease != 1 || s.Kind != control.Work {
		t.Errorf("the session is %+v", s)
	}
	c.stepStarts("r", "build")
	changes := c.does("r", "build", good, control.OK)
	want := `session/ada S4 running>none
run/r/build W3 RUNNING>COMPLETED
run/r/test W2 PENDING>RUNNING
session/bob J1 none>opened`
	if got := rows(changes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c.stepStarts("r", "test")
	c.does("r", "test", good, control.Failed) // the report decides
	if s := c.sit("r", "pack"); s.ID != "pack@r-1" || c.Pool.Sessions["r/pack"] == nil {
		t.Errorf("the session of a command is %+v", s)
	}
	if actions := c.RunActions("r", c.at); len(actions) != 1 || actions[0].Key != "start/pack@r-1" || actions[0].Do != StartSession {
		t.Errorf("the actions are %+v", actions)
	}
	if ok, why := c.MayStartRun("r", "pack@r-1", c.at); !ok {
		t.Errorf("it may not start: %s", why)
	}
	if c.Idle() {
		t.Error("idle, with a session in the worker pool")
	}
	c.stepStarts("r", "pack")
	c.tells("r", "pack", SessionReported{Session: "pack@r-1", Offset: 7, Usage: change.Usage{CostUSD: 2}})
	if c.Usage.CostUSD != 2 || c.Notes["r"].Usage.CostUSD != 2 || c.Pool.Sessions["r/pack"].Offset != 7 {
		t.Errorf("its usage is %+v and %+v", c.Usage, c.Notes)
	}
	c.does("r", "pack", good, control.OK)
	if c.Runs["r"].Status() != workflow.IsCompleted || !c.Idle() || c.Pool.Sessions != nil {
		t.Errorf("the run is %s", c.Runs["r"].Status())
	}
	for _, name := range c.Names() {
		c.says(name, control.Resting, "pause") // a step is not a desired state
	}
}

// SPEC J1: control and steps take turns in one slot, in the order of their requests.
func TestTheQueue(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.starts("ada")
	c.runs("r", RunSettings{}, "one ada", "two ada")
	c.steps("r", "one:PENDING two:PENDING")
	if got, want := c.StepWaits("r", "two"), "it waits in the queue behind control (ada-1), run/r/one"; got != want {
		t.Errorf("two waits: %q, want %q", got, want)
	}
	c.ends("ada", control.OK)
	c.steps("r", "one:RUNNING two:PENDING")
	c.says("ada", control.Continuous, "continuous") // done, and queued again
	if got, want := c.ControlWaits("ada"), "it waits in the queue behind run/r/one (ada-2), run/r/two"; got != want {
		t.Errorf("control waits: %q, want %q", got, want)
	}
	if c.ControlWaits("bob") != "" || c.StepWaits("r", "one") != "" {
		t.Error("a step that is not queued waits for another one")
	}
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED two:RUNNING")
	c.does("r", "two", good, control.OK)
	if s := c.Agents["ada"].Session; s == nil || s.For != ForControl || s.ID != "ada-4" || c.Agents["ada"].Queue != nil {
		t.Errorf("then the slot has %+v", s)
	}
}

// SPEC J2: a pause applies to control only, in its session and in the queue. A running step
// continues, and another one begins.
func TestPauseLeavesSteps(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada", "two ada needs one")
	c.wants("ada", "run_once")
	c.says("ada", control.RunOnce, "run_once")
	c.wants("ada", "pause")
	c.says("ada", control.Resting, "pause")
	if len(c.Agents["ada"].Queue) != 0 {
		t.Errorf("it is still in the queue: %+v", c.Agents["ada"].Queue)
	}
	if ok, why := c.MayStart("ada", "ada-1", c.at); !ok {
		t.Errorf("a pause stops a step: %s", why)
	}
	c.stepStarts("r", "one")
	c.wants("ada", "run_once")
	c.wants("ada", "pause")
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED two:RUNNING")
}

// SPEC X8: during a hold neither a step nor a queued request begins, and a request keeps its place.
// The release assigns the slots.
func TestHoldAndSteps(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada", "two ada", "three bob needs one")
	c.wants("ada", "run_once")
	c.must("", HoldAsked{})
	c.says("ada", control.Resting, "run_once")
	if queue := c.Agents["ada"].Queue; len(queue) != 1 || queue[0].For != ForStep("r", "two") {
		t.Errorf("the queue is %+v", queue)
	}
	if ok, why := c.MayStart("ada", "ada-1", c.at); ok || why != "the team is held" {
		t.Errorf("a step may start: %v %q", ok, why)
	}
	c.does("r", "one", nil, control.Withdrawn)
	c.steps("r", "one:PENDING two:PENDING three:PENDING")
	if got, want := c.StepWaits("r", "one"), "the team is held; it begins after `fairlead unhold`"; got != want {
		t.Errorf("one waits: %q, want %q", got, want)
	}
	if p := c.Runs["r"].Steps[0]; p.Attempts != 0 {
		t.Errorf("a step that never began lost an attempt: %+v", p.Value)
	}
	c.ofRun("r", workflow.CancelAsked{By: "ann"})
	if queue := c.Agents["ada"].Queue; len(queue) != 0 {
		t.Errorf("a step of a cancelled run is in the queue: %+v", queue)
	}
	c.ofRun("r", workflow.ResumeAsked{From: "one", By: "ann"})
	c.must("", ReleaseAsked{})
	c.says("ada", control.RunOnce, "run_once")
	c.steps("r", "one:PENDING two:PENDING three:PENDING") // control was released first
	c.starts("ada")
	c.ends("ada", control.OK)
	c.steps("r", "one:RUNNING two:PENDING three:PENDING")
}

// W6: a step that is sent back while it runs is ended, and begins again only when its process has
// ended.
func TestSentBack(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "build ada", "docs ! needs build", "check bob needs build back build")
	c.does("r", "build", good, control.OK)
	c.stepStarts("r", "docs")
	changes := c.does("r", "check", &workflow.Report{GateFailed: true, Why: "red"}, control.OK)
	c.steps("r", "build:RUNNING docs:PENDING check:PENDING")
	if s := c.sit("r", "docs"); s.Ending != "sent back: check failed its gate" || s.Now {
		t.Errorf("docs continues: %+v", s)
	}
	if actions := c.RunActions("r", c.at); len(actions) != 1 || actions[0].Do != EndSession || actions[0].Key != "end/docs@r-1/false" {
		t.Errorf("the actions are %+v", actions)
	}
	var lines []Transition
	for _, ch := range changes {
		if ch.Trigger == string(workflow.LoopedBack) {
			lines = append(lines, Transitions(ch, c.StepAgent)...)
		}
	}
	want := []Transition{
		{Entity: "run/r/build", Agent: "ada", From: "COMPLETED", To: "PENDING"},
		{Entity: "run/r/docs", Agent: "docs", From: "RUNNING", To: "PENDING"},
		{Entity: "run/r/check", Agent: "bob", From: "COMPLETED", To: "PENDING"},
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the lines are %v, want %v", lines, want)
	}
	c.does("r", "docs", good, control.OK) // its late report is refused
	c.steps("r", "build:RUNNING docs:PENDING check:PENDING")
	c.does("r", "build", good, control.OK)
	c.steps("r", "build:COMPLETED docs:RUNNING check:RUNNING")
	if s := c.sit("r", "docs"); s.ID != "docs@r-2" {
		t.Errorf("the next attempt is %+v", s)
	}
}

// SPEC W13: a lost process costs no attempt. An existing report is read first. An unexpected end is
// a failure with a reason.
func TestHowAStepEnds(t *testing.T) {
	for _, end := range []struct {
		how    control.Outcome
		report *workflow.Report
		fault  string
		state  workflow.State
		tries  int
		says   string
	}{
		{control.OK, good, "", workflow.Completed, 1, ""},
		{control.Lost, good, "", workflow.Completed, 1, ""},
		{control.Lost, nil, "", workflow.Running, 1, "the runner died: so"},
		{control.OK, nil, "", workflow.Running, 2, "no report: it succeeded, but left no report at $REPORT_PATH or in its output"},
		{control.Failed, nil, `no "status"`, workflow.Running, 2, `report refused: no "status"; the process ended: so`},
		{control.CannotStart, nil, "", workflow.Running, 2, "it cannot start: so"},
		{control.OK, &workflow.Report{Failed: true, Why: "red"}, "", workflow.Running, 2, "red"},
		{control.Withdrawn, nil, "", workflow.Running, 1, ""}, // nothing prevents it, so it begins again
	} {
		for _, who := range []string{"ada", "!"} {
			c := newCrew(t, Limits{}, two())
			c.runs("r", RunSettings{}, "one "+who)
			if end.how != control.Withdrawn && end.how != control.CannotStart {
				c.stepStarts("r", "one")
			}
			ended := SessionEnded{Session: c.sit("r", "one").ID, Outcome: end.how, Why: "so", Fault: end.fault}
			if end.report != nil {
				ended.Report = &StepReport{Report: *end.report}
			}
			c.tells("r", "one", ended)
			if p := c.Runs["r"].Steps[0]; p.State != end.state || p.Attempts != end.tries || p.LastError != end.says {
				t.Errorf("%s, %s: %+v", who, end.how, p.Value)
			}
		}
	}
}

// TestUnansweredCompletesNothing checks that a report does not complete a step if no model has answered in the session
// that left it, and that the same report does so after an answer and after a failure of another kind.
func TestUnansweredCompletesNothing(t *testing.T) {
	used := change.Usage{OutputTokens: 5}
	for _, end := range []struct {
		reason string
		called bool
		usage  change.Usage
		how    control.Outcome
		state  workflow.State
		says   string
	}{
		{
			session.ReasonNoAnswer, false,
			change.Usage{},
			control.Failed, workflow.Running,
			"report refused: it says that the step is done, but no model has answered in this session; the process ended: so",
		},
		{
			session.ReasonProviderError, false,
			change.Usage{},
			control.Failed, workflow.Running,
			"report refused: it says that the step is done, but no model has answered in this session; the process ended: so",
		},
		{
			session.ReasonSameAnswer, false,
			change.Usage{},
			control.Failed, workflow.Running,
			"report refused: it says that the step is done, but no model has answered in this session; the process ended: so",
		},
		{
			session.ReasonNotSignedIn, false,
			change.Usage{},
			control.Failed, workflow.Running,
			"report refused: it says that the step is done, but no model has answered in this session; the process ended: so",
		},
		{session.ReasonRateLimited, false, change.Usage{}, control.RateLimited, workflow.Pending, "so"},
		{session.ReasonNotSignedIn, false, used, control.Failed, workflow.Completed, ""},
		{session.ReasonRateLimited, false, used, control.RateLimited, workflow.Completed, ""},
		{session.ReasonNotSignedIn, true, change.Usage{}, control.Failed, workflow.Completed, ""},
		{session.ReasonRateLimited, true, change.Usage{}, control.RateLimited, workflow.Completed, ""},
		{session.ReasonContextExhausted, false, change.Usage{}, control.Failed, workflow.Completed, ""},
		{"failed", false, change.Usage{}, control.Failed, workflow.Completed, ""},
	} {
		for _, report := range []workflow.Report{*good, {Failed: true, Why: "red"}} {
			c := newCrew(t, Limits{}, two())
			c.runs("r", RunSettings{}, "one ada")
			c.stepStarts("r", "one")
			id := c.sit("r", "one").ID
			stop := &Stop{Reason: end.reason, Called: end.called}
			if end.reason == session.ReasonSameAnswer { // the program itself reports a success
				stop = &Stop{OK: true}
			}
			c.tells("r", "one", SessionReported{Session: id, Offset: 10, Usage: end.usage, Stop: stop})
			ended := SessionEnded{
				Session: id, Outcome: end.how, Why: "so", Exit: session.Exit{SpoolBytes: 10}, Report: &StepReport{Report: report},
			}
			if end.reason == session.ReasonSameAnswer {
				ended.Reason = end.reason
			}
			c.tells("r", "one", ended)
			p := c.Runs["r"].Steps[0]
			switch {
			case report.Failed && p.LastError != "red":
				t.Errorf("%s: a report of a failure does not count: %+v", end.reason, p.Value)
			case !report.Failed && (p.State != end.state || p.LastError != end.says):
				t.Errorf("%s with %+v: %+v", end.reason, end.usage, p.Value)
			}
		}
	}
}

// TestReportWhileItRuns checks that a report that is read while the process runs ends the step and
// then the process, and that the session does not count as cancelled.
func TestReportWhileItRuns(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada", "two ada needs one")
	c.stepStarts("r", "one")
	c.ofRun("r", workflow.ReportRead{Lease: workflow.Lease{Step: "one", N: 1}})
	c.steps("r", "one:COMPLETED two:PENDING")
	if s := c.sit("r", "one"); s.Ending != "its report was read" || s.Now {
		t.Errorf("its process continues: %+v", s)
	}
	if got, want := c.StepWaits("r", "two"), "it waits in the queue behind run/r/one (ada-1)"; got != want {
		t.Errorf("two waits: %q, want %q", got, want)
	}
	c.does("r", "one", nil, control.Failed)
	c.steps("r", "one:COMPLETED two:RUNNING")
	if past := c.Agents["ada"].Past[0]; past.Outcome != control.OK || past.Why != "its report was read" {
		t.Errorf("among the past sessions it is %+v", past)
	}
}

// SPEC W9: a step that works with people's answer begins in the batch of the answer if a place is
// free; otherwise it is queued.
func TestAnswersTakeSlots(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada ask before", "two ada ask before", "three bob ask after")
	c.steps("r", "one:WAITING_ON_HUMAN two:WAITING_ON_HUMAN three:RUNNING")
	if actions := c.RunActions("r", c.at); len(actions) != 2 || actions[0].Do != AskForAnswer {
		t.Errorf("the actions are %+v", actions)
	}
	changes := c.ofRun("r", workflow.AnswerRead{Lease: workflow.Lease{Step: "one", N: 1}, By: "ann"})
	if len(changes) != 2 || changes[1].Entity != "session/ada" {
		t.Errorf("it does not begin at once:\n%s", rows(changes))
	}
	c.ofRun("r", workflow.AnswerRead{Lease: workflow.Lease{Step: "two", N: 1}, By: "ann", Place: true})
	c.steps("r", "one:RUNNING two:PENDING three:RUNNING")
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED two:RUNNING three:RUNNING")
	c.does("r", "three", good, control.OK)
	c.steps("r", "one:COMPLETED two:RUNNING three:WAITING_ON_HUMAN")
	c.ofRun("r", workflow.AnswerRead{Lease: workflow.Lease{Step: "three", N: 1}, By: "ann"})
	c.steps("r", "one:COMPLETED two:RUNNING three:COMPLETED")
}

// TestWorkerPool checks that the worker pool has a fixed number of places for all runs together, in
// the order of the requests.
func TestWorkerPool(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.must("", Configured{Agents: two(), Places: 4})
	c.runs("r", RunSettings{Wrapped: true}, "one ada", "two ada", "three bob", "four bob")
	c.runs("q", RunSettings{}, "one !")
	c.steps("r", "one:RUNNING two:RUNNING three:RUNNING four:RUNNING") // a wrapper runs them, without a slot
	if got, want := c.StepWaits("q", "one"),
		"it waits in the queue behind 4 steps without an agent, which are as many as there are places"; got != want {
		t.Errorf("it waits: %q, want %q", got, want)
	}
	c.ofRun("r", workflow.CancelAsked{By: "ann"})
	c.does("r", "two", nil, control.Failed)
	c.steps("q", "one:RUNNING")
	if len(c.Pool.Queue) != 0 {
		t.Errorf("the queue is %+v", c.Pool.Queue)
	}
	if p := c.Runs["r"].Steps[1]; p.State != workflow.Failed || p.LastError != "cancelled by ann" || p.Proc != 0 {
		t.Errorf("the cancelled step is %+v", p.Value)
	}
}

// SPEC, corrections: --side-by-side may exceed the number of CPUs, which is the number of places.
func TestMorePlacesForARunThatAsks(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.must("", Configured{Agents: two(), Places: 2})
	c.runs("r", RunSettings{}, "one !", "two !", "three !", "four !", "five !") // four at the same time
	c.steps("r", "one:RUNNING two:RUNNING three:RUNNING four:RUNNING five:PENDING")
}

// SPEC C14: a daemon that stops at once ends the running steps. That is not a failure of theirs.
func TestStopAndSteps(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada", "two !", "three ada")
	c.stepStarts("r", "one")
	c.stepStarts("r", "two")
	c.must("", StopAsked{})
	if c.sit("r", "one").Ending != "" || c.sit("r", "two").Ending != "" {
		t.Error("running steps do not finish")
	}
	c.must("", StopAsked{Now: true})
	for _, step := range []string{"one", "two"} {
		if s := c.sit("r", step); !s.Now {
			t.Errorf("a second signal does not end %+v", s)
		}
		c.does("r", step, nil, control.Failed)
	}
	c.steps("r", "one:PENDING two:PENDING three:PENDING")
	if p := c.Runs["r"].Steps[0]; p.Attempts != 0 || p.LastError != "the runner died: fairlead was asked to stop" {
		t.Errorf("it lost an attempt: %+v", p.Value)
	}
	if !c.Idle() {
		t.Error("not idle")
	}
	c.must("", DaemonStarted{})
	c.steps("r", "one:PENDING two:RUNNING three:RUNNING") // the queued request comes first
}

// X9: the timers of a step's own timeout, of a retry, and of the team's limit for a session.
func TestRunTimers(t *testing.T) {
	c := newCrew(t, Limits{Session: time.Minute}, two())
	c.runs("r", RunSettings{}, "one ada", "two !")
	if at := c.DeadlineRun("r"); !at.IsZero() {
		t.Errorf("the time limit runs before the process was started: %s", at)
	}
	c.stepStarts("r", "one")
	c.stepStarts("r", "two")
	if changes := c.ofRun("r", TimerFired{}); len(changes) != 0 {
		t.Errorf("an early timer says %s", rows(changes))
	}
	if at, want := c.DeadlineRun("r"), c.sit("r", "two").StartedAt.Add(time.Minute); !at.Equal(want) {
		t.Errorf("the deadline is %s, want %s", at, want)
	}
	c.at = c.at.Add(time.Minute)
	c.ofRun("r", TimerFired{})
	c.must("ada", TimerFired{})
	c.steps("r", "one:FAILED two:FAILED")
	for i, step := range []string{"one", "two"} {
		if p := c.Runs["r"].Steps[i]; p.LastError != "limit reached: session 1m0s" || c.sit("r", step).Ending != p.LastError {
			t.Errorf("%s: %+v, %+v", step, p.Value, c.sit("r", step))
		}
		c.does("r", step, nil, control.Failed)
	}
	if !c.Idle() || c.Runs["r"].Status() != workflow.IsFailed {
		t.Errorf("it is %s", c.Runs["r"].Status())
	}
}
