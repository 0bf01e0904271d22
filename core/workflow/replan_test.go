package workflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/backoff"
)

// tell applies the lines of a script.
func (s *stage) tell(story string) {
	for line := range strings.SplitSeq(strings.TrimSpace(story), "\n") {
		s.line(strings.TrimSpace(line))
	}
}

// staged returns a run that has just started.
func staged(t *testing.T, plan Plan, options Options) *stage {
	s := &stage{t: t, run: &Run{}, plan: plan, options: options, now: Now{At: noon}}
	s.line("start")
	return s
}

// W12: a person who edits the workflow and resumes gets the edited one, as with seed 004's tool.
// Results are kept by the steps' names, also if the flags have changed.
func TestResumeWithAnEditedPlan(t *testing.T) {
	s := staged(t, Plan{Name: "w", Steps: []Step{work("a"), work("b", "a"), work("c", "b")}}, DefaultOptions(2))
	s.tell(`
		a starts
		a reports artifacts=a.md
		b starts
		b ended "exit status 1"
		timer
		b starts
		b ended "exit status 1"`)
	edited := Plan{Name: "w", Steps: []Step{work("a"), work("new", "a"), work("b", "new"), work("d", "b")}}
	flags := DefaultOptions(2)
	flags.MaxAttempts = 3
	s.out.Reset()
	s.decide(ResumeAsked{From: "b", By: "ada", Plan: &edited, Options: &flags})
	s.says(`cannot take run_resumed while failed: new is neither COMPLETED nor SKIPPED, and comes before it [W12]`)
	s.decide(ResumeAsked{From: "new", By: "ada", Plan: &edited, Options: &flags})
	s.showRun()
	s.says(`W12  (run)        driven -> driven  run_replanned
		W12  b            FAILED -> PENDING  started_over
		= running: a completed 0/1, new pending 0/0, b pending 0/0, d pending 0/0,
		start new`)
	if s.run.Options.MaxAttempts != 3 || len(s.run.Steps[0].Artifacts) != 1 {
		t.Errorf("%+v, %+v", s.run.Options, s.run.Steps[0])
	}
	for _, id := range []string{"new", "b", "d"} {
		s.tell(id + " starts\n" + id + " reports")
	}
	if s.run.Status() != IsCompleted {
		t.Errorf("the run is %s", s.run.Status())
	}
}

// TestResumeRefusesAnEditedPlan checks that an invalid edited plan is refused without an effect.
func TestResumeRefusesAnEditedPlan(t *testing.T) {
	s := staged(t, Plan{Name: "w", Steps: []Step{work("a"), work("b", "a")}}, DefaultOptions(2))
	s.tell("a starts\ncancel")
	without, broken := Plan{Name: "w", Steps: []Step{work("b")}}, Plan{Name: "w", Steps: []Step{work("b", "x")}}
	s.decide(ResumeAsked{Plan: &without})
	s.decide(ResumeAsked{Plan: &broken})
	s.decide(ResumeAsked{Options: &Options{}})
	s.says(`the workflow no longer has a, whose process has not ended yet [W12]
		the workflow has 1 faults, the first one: step b, needs[0]: no step is called "x" [W12]
		max-attempts is 0`)
	s.tell("a departed")
	s.decide(ResumeAsked{Plan: &without})
	s.showRun()
	s.says("W12  (run)        cancelled -> cancelled  run_replanned\n= running: b pending 0/0,")
}

// X3: a step that was blocked by a gate is free if the edited plan does not have the gate, also in
// an imported run.
func TestReplanUnblocks(t *testing.T) {
	gate, free := work("gate", "target"), work("gate", "target")
	gate.LoopBackTo = "target"
	with := []Step{work("target"), work("between", "target"), gate, work("last", "between")}
	s := staged(t, Plan{Name: "w", Steps: with}, DefaultOptions(2))
	s.tell("target starts\ntarget reports\ngate starts\ngate reports gate\ncancel")
	s.decide(ResumeAsked{Plan: &Plan{Name: "w", Steps: []Step{work("target"), work("between", "target"), free, work("last", "between")}}})
	for i := range s.run.Steps {
		if s.run.Steps[i].BlockedBy != "" {
			t.Errorf("%s is blocked by %s", s.run.Plan.Steps[i].ID, s.run.Steps[i].BlockedBy)
		}
	}
	in := StateFound{
		RunAsked: RunAsked{ID: "r", Plan: Plan{Name: "w", Steps: with}, Options: DefaultOptions(2)},
		Steps: map[StepID]Progress{
			"between": {Value: Value{State: Completed}}, "last": {Value: Value{State: Pending, BlockedBy: "gate"}},
		},
	}
	s = takenIn(t, in)
	s.tell("resume\nlast starts\ntarget starts\ntarget reports\nlast starts")
	s.says(`cannot take started while PENDING: it is blocked by the loop of gate [W6]
		W6   last         PENDING -> PENDING  target_done
		W2   last         PENDING -> RUNNING  started`)
}

// TestTakeInAndReplanMuch checks that a parked run can be replanned, too, and that the results of
// its steps are kept, regardless of their size.
func TestTakeInAndReplanMuch(t *testing.T) {
	loop := work("loop")
	loop.Loop = &Loop{ItemsFromArtifact: "x.json"}
	p := Progress{Value: Value{State: Completed, Attempts: 1}}
	for range 1000 {
		p.Logs = append(p.Logs, strings.Repeat("l", 350))
		p.Metrics = append(p.Metrics, Metric{strings.Repeat("n", len(p.Metrics)%300+1) + string(rune('a'+len(p.Metrics)/300)), "1"})
		p.Artifacts = append(p.Artifacts, strings.Repeat("a", 150))
		p.Items = append(p.Items, `"`+strings.Repeat("i", 400)+`"`)
	}
	s := takenIn(t,
		StateFound{
			RunAsked: RunAsked{ID: "r", Plan: Plan{Name: "w", Steps: []Step{loop}}, Options: DefaultOptions(2)},
			Steps:    map[StepID]Progress{"loop": p},
		})
	before := restored(t, s.run).Steps[0]
	if len(before.Logs) != 1000 || len(before.Metrics) != 1000 || len(before.Artifacts) != 1000 || len(before.Items) != 1000 {
		t.Fatalf("%d logs, %d metrics, %d artifacts, %d items", len(before.Logs), len(before.Metrics), len(before.Artifacts),
			len(before.Items))
	}
	s.decide(ResumeAsked{Plan: &Plan{Name: "w", Steps: []Step{loop, work("next", "loop")}}})
	after := s.run.Steps[0]
	if len(s.run.Steps) != 2 || strings.Join(after.Logs, "") != strings.Join(before.Logs, "") || len(after.Items) != 1000 ||
		len(after.Metrics) != 1000 {
		t.Errorf("%d steps, %d logs, %d items, %d metrics", len(s.run.Steps), len(after.Logs), len(after.Items), len(after.Metrics))
	}
}

// W4: a late timer that names another lease is ignored, even at the exact time.
func TestTimerNamesItsLease(t *testing.T) {
	s := staged(t, Plan{Name: "w", Steps: []Step{{ID: "a", Agent: "x", Prompt: "p", Timeout: 1e9}}}, DefaultOptions(2))
	s.tell("a starts")
	about := s.run.Deadline()
	s.now.At = about.At
	about.N++
	s.out.Reset()
	s.decide(TimerFired{About: about})
	s.says("nothing")
}

// TestReplanForgetsVerdicts checks that an edited condition is evaluated again (W11), and that an
// answer waits for steps that only the edited plan requires before it (W9).
func TestReplanForgetsVerdicts(t *testing.T) {
	weighed, asked, edited, later := work("weighed"), work("asked"), work("weighed"), work("asked", "new")
	weighed.When, edited.When = "x", "y"
	asked.Human, asked.Ask, later.Human, later.Ask = true, AskBefore, true, AskBefore
	options := DefaultOptions(1)
	options.PauseForHumans = true
	s := staged(t, Plan{Name: "w", Steps: []Step{weighed, asked}}, options)
	s.tell("weighed weighed true\nasked starts\ncancel")
	s.decide(ResumeAsked{Plan: &Plan{Name: "w", Steps: []Step{edited, later, work("new")}}})
	s.tell("weighed starts\nasked answered\nnew starts\nnew reports\nasked starts")
	s.says(`cannot take started while PENDING: its condition has not been evaluated yet [W11]
		X8   asked        RUNNING -> PENDING  withdrawn
		W2   asked        PENDING -> RUNNING  started`)
}

// W4: the back-off of a failing step doubles up to its maximum.
func TestBackoffDoubles(t *testing.T) {
	o := DefaultOptions(1)
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute,
		100: time.Minute,
	} {
		if got := backoff.After(o.BackoffFirst, o.BackoffMax, failures); got != want {
			t.Errorf("after %d failures it waits %s, want %s", failures, got, want)
		}
	}
}

// W6: a step releases thousands of gates that wait for it in a few changes.
func TestManyGatesAreFreedTogether(t *testing.T) {
	plan, options := Plan{Name: "w", Steps: []Step{work("target")}}, DefaultOptions(sideBySideMax)
	for n := range 3000 {
		gate := work(StepID(fmt.Sprintf("gate%d", n)))
		gate.LoopBackTo = "target"
		plan.Steps = append(plan.Steps, gate)
	}
	r := begun(t, plan, options)
	do := func(in Input) []change.Change {
		changes, err := decide(t, r, in, Now{At: noon})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			r.Apply(ch)
		}
		return changes
	}
	for _, s := range plan.Steps[1:] {
		do(StartAsked{s.ID})
		do(ReportRead{Lease: Lease{s.ID, 1}, Over: true, Report: Report{GateFailed: true}})
	}
	do(StartAsked{"target"})
	if changes := do(ReportRead{Lease: Lease{"target", 1}, Over: true}); len(changes) != 4 {
		t.Errorf("%d changes", len(changes))
	}
}
