package runstate

import (
	"github.com/fairlead-dev/fairlead/core/condition"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// WeighWhen evaluates a step's `when` for the run's current state. A step without one may run.
func WeighWhen(r *workflow.Run, step workflow.StepID) workflow.Verdict {
	s, _, ok := r.Find(step)
	if !ok || s.When == "" {
		return workflow.Verdict{Holds: true}
	}
	return weigh(s.When, condition.When, condition.World{Steps: stepsOf(r)})
}

// WeighUntil evaluates the until_condition of a step's loop for a new report and the current item. It returns
// nil if the step has none.
func WeighUntil(r *workflow.Run, step workflow.StepID, report workflow.Report) *workflow.Verdict {
	s, p, ok := r.Find(step)
	if !ok || s.Loop == nil || s.Loop.UntilCondition == "" {
		return nil
	}
	w := condition.World{Steps: stepsOf(r), Index: p.Index, Report: condition.Report{
		Status: StepCompleted, GateFailed: report.GateFailed, Why: report.Why, Artifacts: report.Artifacts,
		Metrics: metricMap(report.Metrics),
	}}
	if report.Failed {
		w.Report.Status = StepFailed
	}
	if items := r.LoopItems(step); p.Index < len(items) {
		w.Item = items[p.Index]
	}
	v := weigh(s.Loop.UntilCondition, condition.Until, w)
	return &v
}

// ReportSoFar returns the report that a person's answer refers to: what the step produced. A step that asks
// before it runs has none.
func ReportSoFar(r *workflow.Run, step workflow.StepID) workflow.Report {
	_, p, ok := r.Find(step)
	if !ok {
		return workflow.Report{}
	}
	return workflow.Report{Facts: p.Facts}
}

func weigh(text string, kind condition.Kind, w condition.World) workflow.Verdict {
	holds, err := condition.Eval(text, kind, w)
	if err != nil {
		return workflow.Verdict{Fault: string(kind) + ", " + err.Error()}
	}
	return workflow.Verdict{Holds: holds}
}

// stepsOf gives conditions access to a run's steps.
func stepsOf(r *workflow.Run) func(id string) (condition.Step, bool) {
	return func(id string) (condition.Step, bool) {
		_, p, ok := r.Find(workflow.StepID(id))
		if !ok {
			return condition.Step{}, false
		}
		return condition.Step{
			Status: string(p.State), Iteration: p.Iteration, Attempts: p.Attempts, Artifacts: p.Artifacts, Metrics: metricMap(p.Metrics),
		}, true
	}
}

// metricMap returns metrics by name. If a name occurs twice, the last one counts, as in JSON.
func metricMap(list []workflow.Metric) map[string]string {
	m := make(map[string]string, len(list))
	for _, one := range list {
		m[one.Name] = one.Value
	}
	return m
}
