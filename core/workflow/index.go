package workflow

import (
	"iter"
	"slices"
	"time"
)

// place is what prevents a step from starting, or what to do about it.
type place byte

const (
	idle      place = iota // PENDING: it was not ordered
	later                  // PENDING: a step that it needs is not done
	draining               // PENDING: the process of its last attempt has not ended
	pointless              // PENDING: to be skipped
	weighing               // PENDING: its condition is to be evaluated
	seeking                // PENDING: the items of its loop are to be found
	resting                // PENDING: it waits for a time, because it failed or its report asked for it
	closed                 // PENDING: a gate is closed
	ready                  // PENDING: it may start
	asking                 // PENDING: it may start with a question, which needs no place
	running
	waiting
	settled // COMPLETED or SKIPPED
	failed
	places
)

// index is what is derived from the plan. It is never stored.
type index struct {
	at         map[StepID]int
	needs      [][]int
	dependants [][]int
}

// build derives the index when the plan is complete.
func (r *Run) build() {
	n := len(r.Plan.Steps)
	x := index{at: make(map[StepID]int, n), needs: make([][]int, n), dependants: make([][]int, n)}
	for i := range r.Plan.Steps {
		x.at[r.Plan.Steps[i].ID] = i
	}
	for i := range r.Plan.Steps {
		for _, id := range r.Plan.Steps[i].Needs {
			need := x.at[id]
			x.needs[i] = append(x.needs[i], need)
			x.dependants[need] = append(x.dependants[need], i)
		}
	}
	r.index = x
}

// settled reports whether steps that need this one may continue.
func (v *Value) settled() bool { return v.State == Completed || v.State == Skipped }

// unmet reports whether a step that this one needs is not settled.
func (r *Run) unmet(i int) bool {
	return slices.ContainsFunc(r.index.needs[i], func(need int) bool { return !r.Steps[need].settled() })
}

// needless reports whether all steps that this one needs were skipped.
func (r *Run) needless(i int) bool {
	needs := r.index.needs[i]
	return len(needs) > 0 && !slices.ContainsFunc(needs, func(need int) bool { return r.Steps[need].State != Skipped })
}

// alive is the number of steps that may have a live process.
func (r *Run) alive() (n int) {
	for i := range r.Steps {
		if r.Steps[i].Proc != 0 {
			n++
		}
	}
	return n
}

// in iterates over the steps at a place, in the plan's order.
func (r *Run) in(at place) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !r.complete() {
			return
		}
		for i := range r.Steps {
			if r.place(i) == at && !yield(i) {
				return
			}
		}
	}
}

// counts is the number of steps at each place.
func (r *Run) counts() (n [places]int) {
	if r.complete() {
		for i := range r.Steps {
			n[r.place(i)]++
		}
	}
	return n
}

// retry returns when a step that failed, or that asked for it, may start again; zero: no time.
func (v *Value) retry() time.Time {
	if v.State != Pending {
		return time.Time{}
	}
	if !v.DueAt.IsZero() {
		return v.DueAt
	}
	return v.RetryAt
}

// timeoutOf returns when the current attempt reaches its timeout; zero: never.
func (r *Run) timeoutOf(i int) time.Time {
	v, limit := &r.Steps[i].Value, r.Plan.Steps[i].Timeout
	if limit == 0 || v.State != Running || v.Proc == 0 {
		return time.Time{}
	}
	return v.BegunAt.Add(limit)
}

// place returns a step's place. The order of the checks matters: a step that is to be skipped
// neither has its condition evaluated nor waits for a gate.
func (r *Run) place(i int) place {
	s, p := &r.Plan.Steps[i], &r.Steps[i]
	switch p.State {
	case Running:
		return running
	case Waiting:
		return waiting
	case Completed, Skipped:
		return settled
	case Failed:
		return failed
	}
	switch {
	case s.Ordered && p.Order == 0:
		return idle
	case r.unmet(i) || p.BlockedBy != "" || r.sentBack(i):
		return later
	case p.Proc != 0:
		return draining
	case r.needless(i), s.Loop != nil && s.Loop.Items != nil && len(s.Loop.Items) == 0:
		return pointless
	case s.When != "" && !p.Weighed:
		return weighing
	case s.Loop != nil && s.Loop.Items == nil && !s.Loop.endless() && !p.Found:
		return seeking
	case !p.RetryAt.IsZero() || !p.DueAt.IsZero():
		return resting
	case r.closedGate(i) != "":
		return closed
	case r.asksFirst(i):
		return asking
	default:
		return ready
	}
}

// asksFirst reports whether people are asked before the step's agent works.
func (r *Run) asksFirst(i int) bool {
	s := &r.Plan.Steps[i]
	return s.Human && (s.Ask == AskBefore || s.onlyAsks()) && r.Options.PauseForHumans && !r.Steps[i].Answered
}

// onlyAsks reports whether nothing is done in a step but asking people.
func (s *Step) onlyAsks() bool { return s.Ordered && s.Agent == "" && len(s.Command) == 0 }

// sentBack reports whether a gate waits for the target that it sent back, which need not be among
// its needs.
func (r *Run) sentBack(i int) bool {
	back := r.Plan.Steps[i].LoopBackTo
	return back != "" && r.Steps[i].Iteration > 0 && !r.Steps[r.index.at[back]].settled()
}

// closedGate returns the first closed gate that a step waits for; empty: all are open.
func (r *Run) closedGate(i int) string {
	if !r.Options.GateFile {
		return ""
	}
	for _, name := range r.Plan.Steps[i].Gates {
		if !slices.Contains(r.OpenGates, name) {
			return name
		}
	}
	return ""
}
