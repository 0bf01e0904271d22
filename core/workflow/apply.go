package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Apply performs a change. It uses no table and decides nothing; an empty change is a bug.
func (r *Run) Apply(ch change.Change) {
	body := change.As[Body](ch.Body)
	switch {
	case body.Head != nil:
		r.Head = *body.Head
	case body.Plan != nil:
		r.addPlan(body.Plan)
	case body.Step != nil:
		r.setStep(r.index.at[StepOf(&ch)], body.Step)
	case body.Reset != nil:
		for _, move := range body.Reset.Moves {
			r.reset(move.Step, body.Reset)
		}
	case body.Moved != nil:
		r.move(body.Moved, &ch)
	case body.Taken != nil:
		for _, taken := range body.Taken {
			i := r.index.at[taken.Step]
			r.Steps[i].Facts, r.Steps[i].Items, r.Steps[i].Extra = taken.Facts.clipped(), taken.Items, taken.Extra
			r.Steps[i].Value = taken.Value
		}
	default:
		panic(fmt.Sprintf("workflow: a change of %s by row %s is empty", ch.Entity, ch.Row))
	}
	r.UpdatedAt = ch.At
}

func (r *Run) addPlan(part *PlanPart) {
	if part.Name != "" {
		r.Plan = Plan{Name: part.Name, Description: part.Description}
		r.Steps = nil
	}
	r.Plan.Steps = append(r.Plan.Steps, part.Steps...)
	for range part.Steps {
		r.Steps = append(r.Steps, Progress{Value: Value{State: Pending, N: r.LeaseFloor}})
	}
	if r.complete() {
		r.build()
	}
}

func (r *Run) setStep(i int, set *StepSet) {
	p := &r.Steps[i]
	switch {
	case set.Facts != nil && set.Add:
		p.Facts = p.plus(*set.Facts)
	case set.Facts != nil:
		p.Facts = set.Facts.clipped()
	}
	if set.Items != nil {
		p.Items = set.Items
	}
	p.Value = set.Value
}

// clipped returns the facts with slices of limited capacity, so that later appends do not overwrite
// memory of the caller's report.
func (f *Facts) clipped() Facts {
	return Facts{
		Artifacts: slices.Clip(f.Artifacts), Metrics: slices.Clip(f.Metrics), Logs: slices.Clip(f.Logs),
		Denied: slices.Clip(f.Denied), Cut: slices.Clip(f.Cut),
	}
}

// plus appends the facts of a loop's next item. Of metrics with the same name, the newer one
// applies. Of the log, the newest lines are kept. Of the denied calls, and of
// what was cut, those of the newest item that has any are kept.
func (f *Facts) plus(more Facts) Facts {
	sum := Facts{Artifacts: append(f.Artifacts, more.Artifacts...), Denied: f.Denied}
	if len(more.Denied) > 0 {
		sum.Denied = more.Denied
	}
	if sum.Cut = f.Cut; len(more.Cut) > 0 {
		sum.Cut = more.Cut
	}
	named := make(map[string]int, len(f.Metrics))
	for _, list := range [][]Metric{f.Metrics, more.Metrics} {
		for _, m := range list {
			if at, ok := named[m.Name]; ok {
				sum.Metrics[at] = m
				continue
			}
			named[m.Name] = len(sum.Metrics)
			sum.Metrics = append(sum.Metrics, m)
		}
	}
	sum.Logs = append(f.Logs, more.Logs...)
	if len(sum.Logs) > logsKeptMax {
		sum.Logs = append([]string{logsCut}, sum.Logs[len(sum.Logs)-logsKeptMax+1:]...)
	}
	return sum
}

// reset returns a step to PENDING. A process that is still alive keeps its lease: the step does not
// start again until the process has ended.
func (r *Run) reset(id StepID, how *Reset) {
	i := r.index.at[id]
	p := &r.Steps[i]
	v := Value{State: Pending, N: p.N, Proc: p.Proc, Ending: p.Ending, EndReason: p.EndReason}
	if v.Proc != 0 && v.Ending == "" {
		v.Ending, v.EndReason = how.Ending, EndOver
	}
	if how.Gate != "" {
		v.Iteration = p.Iteration + 1
	}
	if how.Order > 0 {
		v.Iteration = how.Iteration
	}
	if how.Order > 0 && id == how.Target {
		v.Order = how.Order
	}
	if how.Gate != "" && id != how.Target {
		v.BlockedBy = how.Gate
	}
	kept := Facts{}
	if how.Gate == id {
		v.ReportPath, v.LastError = p.ReportPath, p.LastError
		kept.Metrics = p.Metrics // what it measured says with its error why it sent the run back
	}
	p.Value, p.Facts, p.Items = v, kept, nil
}

func (r *Run) move(moved *Moved, ch *change.Change) {
	for _, move := range moved.Moves {
		i := r.index.at[move.Step]
		v := r.Steps[i].Value
		switch moved.To {
		case Skipped:
			v.State, v.EndedAt, v.RetryAt, v.DueAt = Skipped, ch.At, time.Time{}, time.Time{}
		case Pending:
			v.BlockedBy = ""
		default:
			panic(fmt.Sprintf("workflow: run %s moves steps to %s by row %s", r.ID, moved.To, ch.Row))
		}
		r.Steps[i].Value = v
	}
}
