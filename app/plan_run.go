package app

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/app/starts"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// addRuns adds the plan for runs: each session that a step has without an agent or in a slot above 0,
// and each run with steps that may start. Sessions in slot 0 are listed with their agents.
func (e *App) addRuns(plan *view.Plan, found []starts.Adoption) {
	for i := range found {
		if a := &found[i]; a.Agent == "" || a.Session.Slot > 0 {
			plan.Lines = append(plan.Lines, e.planOfStep(a))
		}
	}
	for _, id := range e.Loop.State().RunIDs() {
		r := e.Loop.State().Runs[id]
		begins := 0
		for todo := range r.Actions(workflow.Now{At: e.Loop.Now()}) {
			if todo.Do == workflow.StartIt {
				begins++
			}
		}
		if begins == 0 {
			continue
		}
		step := view.PlanStep{Do: view.DoStart, Session: fmt.Sprintf("%d of its steps", begins), Why: "what they need is done"}
		if e.Loop.State().Hold.On {
			step = view.PlanStep{Do: view.DoRest, Why: fmt.Sprintf("the team is held; %d of its steps wait for the release", begins)}
		}
		plan.Lines = append(plan.Lines, view.PlanLine{
			Agent: "run/" + id, Steps: []view.PlanStep{step},
			Why: []view.Evidence{{
				Source: "journal", What: fmt.Sprintf("run %s of %s is %s", id, r.Plan.Name, r.Status()), Holds: true,
				AgeMS: age(e.Loop.Now(), r.UpdatedAt),
			}},
		})
	}
}

func (e *App) planOfStep(a *starts.Adoption) view.PlanLine {
	s := a.Session
	run, step, _ := team.StepOf(s.For)
	line := view.PlanLine{Agent: s.For.String(), Session: s.ID, Found: string(a.Found)}
	do := view.PlanStep{Session: s.ID}
	switch {
	case a.Err != nil:
		line.Found = "silent"
		do.Do, do.Why = view.DoAsk, a.Err.Error()
	case a.NeverBegan():
		do.Do, do.Why = view.DoStart, "it was opened, and its process was never started; if the step is still wanted"
	case !a.Follows():
		do.Do, do.Why = view.DoCountLost,
			"nothing is left of it; its report is read first, and without one the step is tried again, without counting an attempt (W13)"
	case a.Found == sessionhost.Running:
		do.Do, do.Why = view.DoAdopt, "its process outlived the daemon"
	default:
		do.Do, do.Why = view.DoTakeEnd, "it ended while no daemon ran; its report decides"
	}
	line.Steps = []view.PlanStep{do}
	what := fmt.Sprintf("step %s of run %s, lease %d, was %s", step, run, s.Lease, s.Phase)
	line.Why = []view.Evidence{{Source: "journal", What: what, Holds: true, AgeMS: age(e.Loop.Now(), s.OpenedAt)}}
	if a.Proc != nil && a.Found == sessionhost.Running {
		line.Why = append(line.Why, view.Evidence{Source: "shim", What: fmt.Sprintf("process %d runs", a.Proc.PID()), Holds: true})
	}
	return line
}

func age(now, then time.Time) int64 { return max(0, now.Sub(then).Milliseconds()) }
