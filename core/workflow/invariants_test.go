package workflow

import (
	"slices"

	"github.com/fairlead-dev/fairlead/core/change"
)

// The invariants below use only the plan and the steps: not the indexes, places and table by which
// the run decides.

// of finds a step of the plan without the index.
func (w *world) of(id StepID) (Step, Value) {
	for i, s := range w.run.Plan.Steps {
		if s.ID == id {
			return s, w.run.Steps[i].Value
		}
	}
	w.t.Fatalf("no step is called %s", id)
	return Step{}, Value{}
}

// stepOf returns the step of an action, or none if the action concerns the run.
func (w *world) stepOf(t Action) (Step, Value) {
	if t.Lease.Step == "" {
		return Step{}, Value{}
	}
	return w.of(t.Lease.Step)
}

func done(v Value) bool { return v.State == Completed || v.State == Skipped }

// judge checks one change against the specification before it is applied.
func (w *world) judge(ch change.Change, in Input) {
	switch body := change.As[Body](ch.Body); {
	case body.Step != nil:
		w.judgeStep(ch, in)
	case body.Reset != nil:
		w.judgeReset(ch)
	case body.Moved != nil:
		w.judgeMoved(ch)
	case body.Head != nil && ch.Trigger != string(RunReplanned) && w.run.StepCount > 0 && body.Head.StepCount != w.run.StepCount:
		w.t.Fatalf("an existing run is started again: %T", in)
	}
}

func (w *world) judgeStep(ch change.Change, in Input) {
	step := StepOf(&ch)
	s, was := w.of(step)
	is := change.As[Body](ch.Body).Step.Value
	if string(was.State) != ch.From || string(is.State) != ch.To {
		w.t.Fatalf("%s: the change says %s -> %s, want %s -> %s", step, ch.From, ch.To, was.State, is.State)
	}
	if done(was) && is.State != was.State {
		w.t.Fatalf("%s was %s and becomes %s by %s without a loop-back", step, was.State, is.State, ch.Trigger)
	}
	if is.N < was.N || is.N > was.N+1 {
		w.t.Fatalf("%s: lease %d comes after %d", step, is.N, was.N)
	}
	if was.State == Pending && is.State == Running {
		w.judgeStart(s, was)
	}
	if ch.Trigger == string(Withdrawn) { // it may be withdrawn before its process exists
		delete(w.alive, Lease{step, was.Proc})
	}
	if is.Proc != was.Proc && is.Proc != 0 {
		w.judgeProcess(ch, was, is)
	}
	if is.State == Skipped && s.When == "" && ch.Row == "W11" {
		w.t.Fatalf("%s has no condition, but a condition was false", step)
	}
	if ch.Trigger == string(ReportedAgain) &&
		(is.Attempts != 0 || is.LastError != "" || is.Rounds != was.Rounds+1 || !is.DueAt.After(ch.At) || is.Iteration != was.Iteration) {
		w.t.Fatalf("%s is due to run again, but it is %+v", step, is)
	}
	if ch.Trigger == string(WaitElapsed) && (was.DueAt.IsZero() || ch.At.Before(was.DueAt) || !is.DueAt.IsZero()) {
		w.t.Fatalf("%s may continue at %s, but asked for %s", step, ch.At, was.DueAt)
	}
	if was.State == Running && is.State == Completed && is.LastError != "" && ch.Row != "W6" {
		w.t.Fatalf("%s is COMPLETED with the error %q", step, is.LastError)
	}
}

// judgeProcess checks that a process starts under a new lease, and that no other process of its
// step is alive.
func (w *world) judgeProcess(ch change.Change, was, is Value) {
	step := StepOf(&ch)
	l := Lease{step, is.Proc}
	for other := range w.alive {
		if other.Step == step {
			w.t.Fatalf("%s begins as lease %d while the process of lease %d is alive", step, is.N, other.N)
		}
	}
	switch {
	case w.begun[l]:
		w.t.Fatalf("lease %v was used before", l)
	case was.State != Pending && was.State != Waiting:
		w.t.Fatalf("a process begins for %s, which is %s", step, was.State)
	}
	w.begun[l], w.alive[l] = true, true
	if len(w.alive) > w.run.Options.SideBySide && ch.Trigger != string(AnsweredFirst) {
		w.t.Fatalf("%d parallel processes", len(w.alive))
	}
}

// judgeStart checks that no step starts before its needs, while a loop blocks it, past a closed
// gate, during a hold or above a limit.
func (w *world) judgeStart(s Step, was Value) {
	for _, need := range s.Needs {
		if _, v := w.of(need); !done(v) {
			w.t.Fatalf("%s starts, but %s, which it needs, is %s", s.ID, need, v.State)
		}
	}
	for _, gate := range s.Gates {
		if w.run.Options.GateFile && !slices.Contains(w.run.OpenGates, gate) {
			w.t.Fatalf("%s starts, but gate %s is closed", s.ID, gate)
		}
	}
	switch {
	case was.BlockedBy != "":
		w.t.Fatalf("%s starts, but is blocked by the loop of %s", s.ID, was.BlockedBy)
	case w.now.Held || w.run.Stage != Driven:
		w.t.Fatalf("%s starts, but the run is %s, held %v", s.ID, w.run.Stage, w.now.Held)
	case len(w.alive) >= w.run.Options.SideBySide && s.Ask != AskBefore:
		w.t.Fatalf("%s starts beside %d others", s.ID, len(w.alive))
	case !was.RetryAt.IsZero():
		w.t.Fatalf("%s starts before its retry at %s", s.ID, was.RetryAt)
	case !was.DueAt.IsZero():
		w.t.Fatalf("%s starts before the time %s that its report named", s.ID, was.DueAt)
	case s.When != "" && !was.Weighed:
		w.t.Fatalf("%s starts before its condition was evaluated", s.ID)
	case s.LoopBackTo != "" && was.Iteration > 0:
		if _, v := w.of(s.LoopBackTo); !done(v) {
			w.t.Fatalf("%s starts, but %s, which it had sent back, is %s", s.ID, s.LoopBackTo, v.State)
		}
	}
}

// after returns the given steps and all that depend on them, without the index.
func (w *world) after(from ...StepID) []StepID {
	all := slices.Clone(from)
	for more := true; more; {
		more = false
		for _, s := range w.run.Plan.Steps {
			hangs := slices.ContainsFunc(s.Needs, func(need StepID) bool { return slices.Contains(all, need) })
			if hangs && !slices.Contains(all, s.ID) {
				all = append(all, s.ID)
				more = true
			}
		}
	}
	return all
}

// judgeReset checks that a loop-back resets exactly the target and the steps that depend on it, and
// at most as often as allowed.
func (w *world) judgeReset(ch change.Change) {
	reset := change.As[Body](ch.Body).Reset
	var moved []StepID
	for _, move := range reset.Moves {
		moved = append(moved, move.Step)
		if _, v := w.of(move.Step); v.State != move.From {
			w.t.Fatalf("%s: %s is reset from %s, but is %s", ch.Trigger, move.Step, move.From, v.State)
		}
	}
	if reset.Gate == "" {
		for _, id := range moved {
			w.loops[id] = 0
		}
		return
	}
	w.loops[reset.Gate]++
	w.backs++
	gate, v := w.of(reset.Gate)
	want := w.after(gate.LoopBackTo)
	if !slices.Contains(want, gate.ID) {
		want = append(want, gate.ID)
	}
	slices.Sort(want)
	slices.Sort(moved)
	switch {
	case reset.Target != gate.LoopBackTo || !slices.Equal(moved, want):
		w.t.Fatalf("the gate %s leads back to %s and resets %v, want %v", gate.ID, reset.Target, moved, want)
	case v.Iteration >= w.run.Options.MaxIterations || w.loops[gate.ID] > w.run.Options.MaxIterations:
		w.t.Fatalf("the gate %s has led back %d times, in iteration %d", gate.ID, w.loops[gate.ID], v.Iteration)
	}
}

func (w *world) judgeMoved(ch change.Change) {
	moved := change.As[Body](ch.Body).Moved
	for _, move := range moved.Moves {
		s, v := w.of(move.Step)
		if v.State != Pending || v.State != move.From {
			w.t.Fatalf("%s moves %s, which is %s", ch.Trigger, s.ID, v.State)
		}
		if moved.To == Pending {
			gate, _ := w.of(v.BlockedBy)
			if gate.LoopBackTo == "" {
				w.t.Fatalf("%s is unblocked, but was not blocked", s.ID)
			}
			if _, target := w.of(gate.LoopBackTo); !done(target) {
				w.t.Fatalf("%s is unblocked, but %s is %s", s.ID, gate.LoopBackTo, target.State)
			}
			continue
		}
		empty := s.Loop != nil && s.Loop.Items != nil && len(s.Loop.Items) == 0
		all := len(s.Needs) > 0 && !slices.ContainsFunc(s.Needs, func(need StepID) bool { _, v := w.of(need); return v.State != Skipped })
		if !empty && !all || v.BlockedBy != "" {
			w.t.Fatalf("%s is skipped although it is necessary", s.ID)
		}
	}
}

// check checks the invariants after every input.
func (w *world) check() {
	r := w.run
	for i, s := range r.Plan.Steps {
		if w.foreign {
			break // values of another program apply, and steps may be RUNNING only in its file
		}
		v := r.Steps[i].Value
		switch {
		case v.Attempts < 0 || v.Attempts > r.Options.MaxAttempts:
			w.t.Fatalf("%s: %d attempts, the limit is %d", s.ID, v.Attempts, r.Options.MaxAttempts)
		case v.Iteration < 0 || v.Iteration > w.backs:
			w.t.Fatalf("%s: iteration %d, but gates have led back %d times", s.ID, v.Iteration, w.backs)
		case v.State == Running && (v.Proc == 0 || v.Proc != v.N || v.Ending != ""):
			w.t.Fatalf("%s is RUNNING without a process: %+v", s.ID, v)
		case v.Proc != 0 && !w.alive[Lease{s.ID, v.Proc}]:
			w.t.Fatalf("%s has a process that has ended: %+v", s.ID, v)
		case v.Proc != 0 && v.State != Running && v.Ending == "":
			w.t.Fatalf("%s is %s, but its process is not ended", s.ID, v.State)
		case v.State == Waiting && v.ManualInputPath == "":
			w.t.Fatalf("%s waits for people without a question", s.ID)
		case v.BlockedBy != "" && v.State != Pending:
			w.t.Fatalf("%s is %s but blocked by %s", s.ID, v.State, v.BlockedBy)
		case v.Done > v.Index+1:
			w.t.Fatalf("%s: %d items are done, but the current index is %d", s.ID, v.Done, v.Index)
		}
		for _, need := range s.Needs {
			if _, n := w.of(need); n.State == Failed && v.State == Running {
				w.t.Fatalf("%s is %s, but %s, which it needs, has failed", s.ID, v.State, need)
			}
		}
	}
	w.checkWhole()
}

// checkWhole checks that an open run has an action, or waits for something that it names.
func (w *world) checkWhole() {
	r := w.run
	actions := slices.Collect(r.Actions(w.now))
	starts := 0
	for _, t := range actions {
		if s, _ := w.stepOf(t); t.Do == StartIt && s.Ask != AskBefore {
			starts++
		}
	}
	if starts > 0 && len(w.alive)+starts > r.Options.SideBySide {
		w.t.Fatalf("%d steps may start while %d run", starts, len(w.alive))
	}
	switch status := r.Status(); status {
	case IsRunning:
		if len(actions) == 0 && r.Deadline().At.IsZero() && !w.now.Held {
			w.t.Fatalf("the run is running without an action")
		}
	case IsWaiting:
		if len(r.Waits()) == 0 {
			w.t.Fatalf("the run waits without a reason")
		}
	case IsCompleted, IsFailed:
		failed := false
		for i := range r.Steps {
			v := r.Steps[i].Value
			failed = failed || v.State == Failed
			if status == IsCompleted && !done(v) || v.State == Running || v.State == Waiting {
				w.t.Fatalf("the run is %s, but %s is %s", status, r.Plan.Steps[i].ID, v.State)
			}
		}
		if failed != (status == IsFailed) {
			w.t.Fatalf("the run is %s, but whether a step failed is %v", status, failed)
		}
	}
	for _, s := range r.Plan.Steps {
		id := s.ID
		for _, t := range r.ActionsOf(id) {
			if !slices.Contains(actions, t) {
				w.t.Fatalf("ActionsOf %s lists %+v, but Actions does not", id, t)
			}
		}
	}
}
