package engine

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// addRuns adds what is done with runs: with each session that a step has to itself, and with
// each run of which steps may begin. Sessions in agents' seats stand with their agents.
func (e *Engine) addRuns(plan *Plan, found []adoption) {
	for i := range found {
		if a := &found[i]; a.agent == "" {
			plan.Lines = append(plan.Lines, e.planOfStep(a))
		}
	}
	for _, id := range e.State().RunIDs() {
		r := e.State().Runs[id]
		begins := 0
		for todo := range r.Todo(workflow.Now{At: e.Now()}) {
			if todo.Do == workflow.StartIt {
				begins++
			}
		}
		if begins == 0 {
			continue
		}
		step := PlanStep{Do: DoStart, Session: fmt.Sprintf("%d of its steps", begins), Why: "what they need is done"}
		if e.State().Hold.On {
			step = PlanStep{Do: DoRest, Why: fmt.Sprintf("the team is held; %d of its steps wait for the release", begins)}
		}
		plan.Lines = append(plan.Lines, PlanLine{
			Agent: "run/" + id, Steps: []PlanStep{step},
			Why: []Evidence{{Source: "journal", What: fmt.Sprintf("run %s of %s is %s", id, r.Plan.Name, r.Status()), Holds: true, AgeMS: age(e.Now(), r.UpdatedAt)}},
		})
	}
}

func (e *Engine) planOfStep(a *adoption) PlanLine {
	s := a.session
	run, step, _ := team.StepOf(s.For)
	line := PlanLine{Agent: s.For.String(), Session: s.ID, Found: string(a.found)}
	do := PlanStep{Session: s.ID}
	switch {
	case a.err != nil:
		line.Found = "silent"
		do.Do, do.Why = DoAsk, a.err.Error()
	case a.neverBegan():
		do.Do, do.Why = DoStart, "it was opened, and its process was never started; if the step is still wanted"
	case !a.follows():
		do.Do, do.Why = DoCountLost, "nothing is left of it; its report is read first, and without one the step is tried again, which costs it no attempt (W13)"
	case a.found == Running:
		do.Do, do.Why = DoAdopt, "its process outlived the daemon"
	default:
		do.Do, do.Why = DoTakeEnd, "it ended while nobody looked; its report decides"
	}
	line.Steps = []PlanStep{do}
	what := fmt.Sprintf("step %s of run %s, lease %d, was %s", step, run, s.Lease, s.Phase)
	line.Why = []Evidence{{Source: "journal", What: what, Holds: true, AgeMS: age(e.Now(), s.OpenedAt)}}
	if a.proc != nil && a.found == Running {
		line.Why = append(line.Why, Evidence{Source: "shim", What: fmt.Sprintf("process %d runs", a.proc.PID()), Holds: true})
	}
	return line
}

func age(now, then time.Time) int64 { return max(0, now.Sub(then).Milliseconds()) }
