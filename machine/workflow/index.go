package workflow

import "time"

// place is what prevents a step from starting, or what to do about it. Every step has one. It is
// updated when something changes on which the step depends, so that no event needs to look at all
// steps.
type place byte

const (
	later     place = iota // PENDING: a step that it needs is not done
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

// index is derived from a run and never stored.
type index struct {
	at         map[StepID]int
	needs      [][]int
	dependants [][]int
	unmet      []int            // number of needs that are not settled
	skipped    []int            // number of needs that are SKIPPED
	gates      map[string][]int // steps that wait for a gate, by its name
	open       map[string]bool
	backTo     map[int][]int        // target → gates that lead back to it
	blocked    map[int]map[int]bool // gate → steps that it blocks
	where      []place
	in         [places]set
	alive      set // steps that may have a live process
	retries    timerHeap
	timeouts   timerHeap
}

// build derives everything when the plan is complete.
func (r *Run) build() {
	n := len(r.Plan.Steps)
	x := index{
		at: make(map[StepID]int, n), needs: make([][]int, n), dependants: make([][]int, n), unmet: make([]int, n), skipped: make([]int, n),
		gates: map[string][]int{}, open: map[string]bool{}, backTo: map[int][]int{}, blocked: map[int]map[int]bool{},
		where: make([]place, n), alive: newSet(n),
	}
	for p := range x.in {
		x.in[p] = newSet(n)
	}
	for i := range r.Plan.Steps {
		x.at[r.Plan.Steps[i].ID] = i
	}
	for _, name := range r.OpenGates {
		x.open[name] = true
	}
	for i := range r.Plan.Steps {
		s := &r.Plan.Steps[i]
		for _, id := range s.Needs {
			need := x.at[id]
			x.needs[i] = append(x.needs[i], need)
			x.dependants[need] = append(x.dependants[need], i)
			if !r.Steps[need].settled() {
				x.unmet[i]++
			}
			if r.Steps[need].State == Skipped {
				x.skipped[i]++
			}
		}
		for _, name := range s.Gates {
			x.gates[name] = append(x.gates[name], i)
		}
		if s.LoopBackTo != "" {
			target := x.at[s.LoopBackTo]
			x.backTo[target] = append(x.backTo[target], i)
		}
	}
	r.index = x
	for i := range r.Steps {
		r.index.in[later].add(i) // the place in which put expects a new step
		r.block(i, "", r.Steps[i].BlockedBy)
		r.watch(i, Value{}, r.Steps[i].Value)
	}
	for i := range r.Steps {
		r.put(i)
	}
}

// settled reports whether steps that need this one may continue.
func (v *Value) settled() bool { return v.State == Completed || v.State == Skipped }

// set sets a step's value and updates what depends on it.
func (r *Run) set(i int, v Value) {
	was := r.Steps[i].Value
	r.Steps[i].Value = v
	r.block(i, was.BlockedBy, v.BlockedBy)
	r.watch(i, was, v)
	r.put(i)
	if was.settled() == v.settled() && (was.State == Skipped) == (v.State == Skipped) {
		return
	}
	for _, j := range r.index.dependants[i] {
		r.index.unmet[j] += count(was.settled()) - count(v.settled())
		r.index.skipped[j] += count(v.State == Skipped) - count(was.State == Skipped)
		r.put(j)
	}
	for _, gate := range r.index.backTo[i] {
		r.put(gate)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// block tracks which steps each gate blocks.
func (r *Run) block(i int, was, is StepID) {
	if was == is {
		return
	}
	if was != "" {
		delete(r.index.blocked[r.index.at[was]], i)
	}
	if is == "" {
		return
	}
	gate := r.index.at[is]
	if r.index.blocked[gate] == nil {
		r.index.blocked[gate] = map[int]bool{}
	}
	r.index.blocked[gate][i] = true
}

// watch tracks processes and deadlines.
func (r *Run) watch(i int, was, is Value) {
	x := &r.index
	switch {
	case is.Proc != 0:
		x.alive.add(i)
	case was.Proc != 0:
		x.alive.drop(i)
	}
	if at := is.retry(); !at.IsZero() && !at.Equal(was.retry()) {
		x.retries.push(at, i)
	}
	if at := r.timeoutOf(i); !at.IsZero() && (is.Proc != was.Proc || is.State != was.State) {
		x.timeouts.push(at, i)
	}
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

// prune removes obsolete deadlines from the top of the heap.
func (r *Run) prune() {
	x := &r.index
	for len(x.retries) > 0 {
		top := x.retries[0]
		if at := r.Steps[top.i].retry(); !at.IsZero() && at.UnixNano() == top.at {
			break
		}
		x.retries.pop()
	}
	for len(x.timeouts) > 0 {
		top := x.timeouts[0]
		if at := r.timeoutOf(top.i); !at.IsZero() && at.UnixNano() == top.at {
			break
		}
		x.timeouts.pop()
	}
}

// put updates a step's place.
func (r *Run) put(i int) {
	x := &r.index
	to := r.placeOf(i)
	if x.where[i] != to {
		x.in[x.where[i]].drop(i)
		x.in[to].add(i)
		x.where[i] = to
	}
}

// placeOf computes a step's place. The order of the checks matters: a step that is to be skipped
// neither has its condition evaluated nor waits for a gate.
func (r *Run) placeOf(i int) place {
	x, s, p := &r.index, &r.Plan.Steps[i], &r.Steps[i]
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
	case x.unmet[i] > 0 || p.BlockedBy != "" || r.sentBack(i):
		return later
	case p.Proc != 0:
		return draining
	case len(s.Needs) > 0 && x.skipped[i] == len(s.Needs), s.Loop != nil && s.Loop.Items != nil && len(s.Loop.Items) == 0:
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
	return s.Human && s.Ask == AskBefore && r.Options.PauseForHumans && !r.Steps[i].Answered
}

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
		if !r.index.open[name] {
			return name
		}
	}
	return ""
}
