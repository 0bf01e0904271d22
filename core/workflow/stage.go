package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// stage applies the run's rule for an event, including its effects on the steps.
func (d *runDraft) stage(event RunEvent, by, why string, pause PauseReason) error {
	_, err := d.setHead(event, func(h *Head) { h.By, h.Why, h.PauseReason = cut(by), cut(why), pause })
	return err
}

func (d *runDraft) setHead(event RunEvent, edit func(*Head)) (table.Rule[Stage, RunAct], error) {
	from := cmp.Or(d.run.Stage, Absent)
	rule, err := RunTable.Look("run "+string(d.run.ID), from, event)
	if err != nil {
		return rule, err
	}
	head := d.run.Head
	edit(&head)
	head.Stage, head.UpdatedAt = rule.To, d.now.At
	if head.Stage != Paused {
		head.PauseReason = ""
	}
	d.add("", rule.ID, string(from), string(rule.To), string(event), Body{Head: &head})
	return rule, nil
}

// layOut journals the plan with its steps, all PENDING, in as many changes as necessary.
func (d *runDraft) layOut(event RunEvent, in RunAsked) error {
	fault := idFault(string(in.ID), runIDBytesMax)
	for _, dir := range []string{in.RepoDir, in.ReportsDir, in.ManualInputsDir} {
		fault = cmp.Or(fault, pathFault(dir))
	}
	if faults := in.Plan.Check(); fault == "" && len(faults) > 0 {
		fault = fmt.Sprintf("the workflow has %d faults, the first one: %s", len(faults), faults[0].Error())
	}
	if faults := in.Options.Check(); fault == "" && len(faults) > 0 {
		fault = strings.Join(faults, "; ")
	}
	if fault != "" {
		return d.refuse("", string(event), string(Absent), "W1", fault)
	}
	_, err := d.setHead(event, func(h *Head) {
		*h = Head{
			ID: in.ID, Options: in.Options, RepoDir: in.RepoDir, ReportsDir: in.ReportsDir, ManualInputsDir: in.ManualInputsDir,
			CreatedAt: d.now.At, StepCount: len(in.Plan.Steps), By: cut(in.By), LeaseFloor: in.LeaseFloor,
		}
	})
	if err != nil {
		return err
	}
	d.planParts("W1", event, &in.Plan)
	return nil
}

func (d *runDraft) planParts(row string, event RunEvent, plan *Plan) {
	for n, part := range parts(plan.Steps) {
		set := &PlanPart{Steps: part}
		if n == 0 {
			set.Name, set.Description = plan.Name, plan.Description
		}
		d.add("", row, "", string(Pending), string(event), Body{Plan: set})
	}
}

// gates records the content of the gate-state file, as far as the plan uses it.
func (d *runDraft) gates(in GatesSeen) error {
	var open []string
	for _, name := range in.Open {
		if d.run.waitsForGate(name) {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	if open = slices.Compact(open); slices.Equal(open, d.run.OpenGates) {
		return nil
	}
	_, err := d.setHead(GatesRead, func(h *Head) { h.OpenGates = open })
	return err
}

// waitsForGate reports whether the plan has a step that waits for a gate.
func (r *Run) waitsForGate(name string) bool {
	for i := range r.Plan.Steps {
		if slices.Contains(r.Plan.Steps[i].Gates, name) {
			return true
		}
	}
	return false
}

// skip skips unnecessary steps, as many as fit into one batch of the journal. Steps that depend on
// them become unnecessary and are skipped next.
func (d *runDraft) skip() error {
	var needless, empty []Move
	var freed []int
	for i := range d.run.in(pointless) {
		move := Move{Step: d.run.Plan.Steps[i].ID, From: Pending}
		if d.run.needless(i) {
			needless = append(needless, move)
		} else {
			empty = append(empty, move)
		}
		freed = append(freed, i)
		if len(freed) == listMax {
			break
		}
	}
	skipped := func(part []Move) Body { return Body{Moved: &Moved{Moves: part, To: Skipped}} }
	d.list(needless, NeedsSkipped, Skipped, skipped)
	d.list(empty, NothingToLoop, Skipped, skipped)
	d.free(freed...)
	return nil
}

// cancel is W14. A step that waits for people or has not started stays as it is. Nothing starts
// afterwards.
func (d *runDraft) cancel(in CancelAsked) error {
	if in.Step != "" {
		o, err := d.find(in.Step, CancelledByHand)
		if err != nil {
			return err
		}
		if o.v.State == Running {
			return d.cancelStep(o, in)
		}
	}
	if status := d.run.Status(); status == IsCompleted {
		return d.refuse(in.Step, string(RunCancelled), string(status), "W14", "it is over")
	}
	if _, err := d.setHead(RunCancelled, func(h *Head) { h.By, h.Why = cut(in.By), cut(in.Why) }); err != nil {
		return err
	}
	for i := range d.run.in(running) {
		if err := d.cancelStep(d.step(i), in); err != nil {
			return err
		}
	}
	return nil
}

func (d *runDraft) cancelStep(o *stepDraft, in CancelAsked) error {
	o.why, o.whyCode = "cancelled by "+in.By, EndCancelled
	if in.Why != "" {
		o.why += ": " + in.Why
	}
	return o.take(CancelledByHand)
}

// resume is W12: the named step and all that depend on it start over, or all failed steps.
func (d *runDraft) resume(in ResumeAsked) error {
	status := string(d.run.Status())
	no := func(format string, args ...any) error {
		return d.refuse(in.From, string(RunResumed), status, "W12", fmt.Sprintf(format, args...))
	}
	if (d.run.Stage == Driven || d.run.Stage == Paused) && d.run.Status() == IsRunning {
		return no("the run is active; cancel it first, or wait")
	}
	if in.Options != nil {
		if faults := in.Options.Check(); len(faults) > 0 {
			return no("%s", strings.Join(faults, "; "))
		}
	}
	if in.Plan != nil {
		if why, err := d.replan(in); why != "" || err != nil {
			return cmp.Or(err, no("%s", why))
		}
	}
	r := d.run
	from, why := r.redone(in.From)
	if why != "" {
		return no("%s", why)
	}
	_, err := d.setHead(RunResumed, func(h *Head) {
		h.By, h.Why = cut(in.By), cut(in.Why)
		if in.Options != nil {
			h.Options = *in.Options
		}
	})
	if err != nil {
		return err
	}
	var moves []Move
	for i, is := range r.behind(from...) {
		if is && r.Steps[i].begun() {
			moves = append(moves, Move{Step: r.Plan.Steps[i].ID, From: r.Steps[i].State})
		}
	}
	ending := "the run starts over"
	if in.From != "" {
		ending += " at " + string(in.From)
	}
	d.list(moves, StartedOver, Pending, func(part []Move) Body { return Body{Reset: &Reset{Moves: part, Ending: ending}} })
	return nil
}

// begun reports whether anything happened to the step since its run began.
func (p *Progress) begun() bool {
	return p.State != Pending || p.Attempts > 0 || p.Iteration > 0 || p.BlockedBy != "" || p.Lost > 0 || p.Found || p.Weighed
}

// redone returns the steps from which a run starts over, or why it cannot.
func (r *Run) redone(named StepID) (from []int, why string) {
	if named != "" {
		i, known := r.index.at[named]
		if !known {
			return nil, "the plan has no such step"
		}
		if undone := r.undoneBefore(i); len(undone) > 0 {
			return nil, listed(undone, "is neither COMPLETED nor SKIPPED, and comes before it", "are neither COMPLETED nor SKIPPED, and come before it")
		}
		return []int{i}, ""
	}
	for i := range r.in(failed) {
		from = append(from, i)
	}
	if len(from) == 0 && r.Stage == Driven {
		return nil, "nothing has failed; name a step to start at"
	}
	return from, ""
}

// listed formats the first few of a list of steps.
func listed(ids []StepID, is, are string) string {
	words := make([]string, 0, problemsShown)
	for _, id := range ids[:min(len(ids), problemsShown)] {
		words = append(words, clip.Text(string(id), idBytesMax))
	}
	text := strings.Join(words, ", ")
	if more := len(ids) - problemsShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(ids) == 1 {
		return text + " " + is
	}
	return text + " " + are
}

// undoneBefore lists the steps before a step that are neither COMPLETED nor SKIPPED.
func (r *Run) undoneBefore(i int) []StepID {
	var undone []StepID
	for j, is := range reached(r.index.needs, r.index.needs[i]) {
		if is && !r.Steps[j].settled() {
			undone = append(undone, r.Plan.Steps[j].ID)
		}
	}
	return undone
}

// behind returns the given steps and everything that depends on them.
func (r *Run) behind(from ...int) []bool { return reached(r.index.dependants, from) }

// reached marks the given steps and those to which the edges lead from them.
func reached(edges [][]int, from []int) []bool {
	seen, todo := make([]bool, len(edges)), slices.Clone(from)
	for len(todo) > 0 {
		j := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[j] {
			seen[j] = true
			todo = append(todo, edges[j]...)
		}
	}
	return seen
}

// loopBack is the rest of W6. A gate has failed: its target, everything that depends on the target,
// and the gate itself advance to the next iteration.
func (o *stepDraft) loopBack() {
	r := o.run
	target := r.index.at[o.plan.LoopBackTo]
	back := r.behind(target)
	back[o.i] = true
	var moves []Move
	for i, is := range back {
		if !is {
			continue
		}
		move := Move{Step: r.Plan.Steps[i].ID, From: r.Steps[i].State}
		if i == o.i {
			move.From = o.v.State
		}
		moves = append(moves, move)
	}
	o.list(moves, LoopedBack, Pending, func(part []Move) Body {
		return Body{Reset: &Reset{
			Moves: part, Gate: o.plan.ID, Target: o.plan.LoopBackTo, Ending: "sent back: " + string(o.plan.ID) + " failed its gate",
		}}
	})
}
