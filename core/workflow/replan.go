package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// replan replaces the workflow by its edited version. Steps keep their results by ID; new ones are
// PENDING. The draft continues with the resulting run.
func (d *runDraft) replan(in ResumeAsked) (why string, err error) {
	r := d.run
	if slices.EqualFunc(r.Plan.Steps, in.Plan.Steps, sameStep) {
		return "", nil
	}
	if faults := in.Plan.Check(); len(faults) > 0 {
		return fmt.Sprintf("the workflow has %d faults, the first one: %s", len(faults), faults[0].Error()), nil
	}
	gates := make(map[StepID]bool, len(in.Plan.Steps))
	for i := range in.Plan.Steps {
		gates[in.Plan.Steps[i].ID] = in.Plan.Steps[i].LoopBackTo != ""
	}
	floor := r.LeaseFloor
	for i := range r.Plan.Steps {
		id, p := r.Plan.Steps[i].ID, &r.Steps[i]
		if _, stays := gates[id]; stays {
			continue
		}
		if p.Proc != 0 {
			return fmt.Sprintf("the workflow no longer has %s, whose process has not ended yet", id), nil
		}
		floor = max(floor, p.N)
	}
	var kept []Taken
	for i := range in.Plan.Steps {
		s := &in.Plan.Steps[i]
		was, p, known := r.Find(s.ID)
		if !known { // an earlier step may have had this ID: its late reports must not count
			kept = append(kept, Taken{Step: s.ID, Progress: Progress{Value: Value{State: Pending, N: floor}}})
			continue
		}
		taken := Taken{Step: s.ID, Progress: *p}
		if !gates[taken.BlockedBy] {
			taken.BlockedBy = ""
		}
		taken.Weighed = taken.Weighed && s.When == was.When
		if !sameStep(Step{Loop: s.Loop}, Step{Loop: was.Loop}) && !taken.settled() {
			taken.Found, taken.Index, taken.Done, taken.Items = false, 0, 0, nil
		}
		kept = append(kept, taken)
	}
	if _, err := d.setHead(RunReplanned, func(h *Head) { h.StepCount, h.LeaseFloor = len(in.Plan.Steps), floor }); err != nil {
		return "", err
	}
	d.planParts("W12", RunReplanned, in.Plan)
	blockedNow(d.applied(), kept)
	d.takeSteps("W12", RunReplanned, kept)
	if len(d.changes) > batchMax {
		return fmt.Sprintf("its steps have produced too much for one change of plan (%d changes)", len(d.changes)), nil
	}
	d.run = d.applied()
	return "", nil
}

// sameStep compares two steps as the journal would store them.
func sameStep(a, b Step) bool {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

// applied returns the run with the changes so far applied; the run itself is not modified.
func (d *runDraft) applied() *Run {
	next := &Run{Head: d.run.Head}
	for _, ch := range d.changes {
		next.Apply(ch)
	}
	return next
}
