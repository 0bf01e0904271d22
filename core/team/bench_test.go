package team

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// BenchmarkSteps measures the cost of a step for the team, without a disk: W2 with its session, the
// started process, its end with a report, and what follows. Runs are in sequence, in parallel in
// the worker pool, or in parallel in one agent's queue.
func BenchmarkSteps(b *testing.B) {
	for _, shape := range []string{"chain", "fan", "line"} {
		for _, n := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", shape, n), func(b *testing.B) {
				for b.Loop() {
					runSteps(b, shape, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
			})
		}
	}
}

func runSteps(b *testing.B, shape string, n int) {
	t := New(identity)
	at := machinetest.Noon
	var touched Touched
	tell := func(ev Event) {
		for ok := true; ok; ev, ok = t.Next(&touched, at) {
			at = at.Add(time.Microsecond)
			ev.At = at
			changes, err := t.Decide(ev)
			if err != nil {
				b.Fatal(err)
			}
			for _, ch := range changes {
				touched.Note(ch)
				t.Apply(ch)
			}
		}
	}
	tell(Event{What: Configured{Agents: map[string]Settings{"ada": quiet}}})
	p := workflow.Plan{Name: "n"}
	for i := range n {
		s := workflow.Step{ID: workflow.StepID(fmt.Sprint("s", i)), Agent: "ada", Prompt: "x"}
		if shape == "fan" {
			s.Agent, s.Prompt, s.Command = "", "", []string{"true"}
		}
		if shape == "chain" && i > 0 {
			s.Needs = []workflow.StepID{workflow.StepID(fmt.Sprint("s", i-1))}
		}
		p.Steps = append(p.Steps, s)
	}
	options := often
	options.SideBySide = 64
	tell(Event{Run: "r", What: workflow.RunAsked{ID: "r", Plan: p, Options: options, RepoDir: "/", ReportsDir: "/", ManualInputsDir: "/"}})
	for t.Runs["r"].Status() == workflow.IsRunning {
		s, run, agent := t.Agents["ada"].Session, "", "ada"
		if s == nil {
			run, agent = "r", ""
			for _, s = range t.Pool.Sessions {
				break
			}
		}
		tell(Event{Agent: agent, Run: run, What: SessionStarted{Session: s.ID, PID: 1}})
		if run != "" {
			_ = t.RunActions(run, at)
		}
		tell(Event{Agent: agent, Run: run, What: SessionEnded{Session: s.ID, Outcome: control.OK, Report: &StepReport{}}})
	}
	if status := t.Runs["r"].Status(); status != workflow.IsCompleted {
		b.Fatal(status)
	}
}
