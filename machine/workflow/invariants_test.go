package workflow

import "slices"

// What must hold is written here by hand: from the plan and the steps alone, without the
// indexes, the places and the table by which the run decides.

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

// stepOf is the step of an action; none if the action concerns the run.
func (w *world) stepOf(t Action) (Step, Value) {
	if t.Lease.Step == "" {
		return Step{}, Value{}
	}
	return w.of(t.Lease.Step)
}

func done(v Value) bool { return v.State == Completed || v.State == Skipped }

// judge looks at one change with a person's eyes, before it is made.
func (w *world) judge(ch Change, in Input) {
	switch {
	case ch.Body.Step != nil:
		w.judgeStep(ch, in)
	case ch.Body.Reset != nil:
		w.judgeReset(ch)
	case ch.Body.Moved != nil:
		w.judgeMoved(ch)
	case ch.Body.Head != nil && ch.Trigger != string(RunReplanned) && w.run.StepCount > 0 && ch.Body.Head.StepCount != w.run.StepCount:
		w.t.Fatalf("a run that there is was started once more: %T", in)
	}
}

func (w *world) judgeStep(ch Change, in Input) {
	s, was := w.of(ch.Step)
	is := ch.Body.Step.Value
	if string(was.State) != ch.From || string(is.State) != ch.To {
		w.t.Fatalf("%s: %s -> %s is said, and it is %s -> %s", ch.Step, ch.From, ch.To, was.State, is.State)
	}
	if done(was) && is.State != was.State {
		w.t.Fatalf("%s was %s, and becomes %s by %s without having been sent back", ch.Step, was.State, is.State, ch.Trigger)
	}
	if is.N < was.N || is.N > was.N+1 {
		w.t.Fatalf("%s: lease %d comes after %d", ch.Step, is.N, was.N)
	}
	if was.State == Pending && is.State == Running {
		w.judgeStart(s, was)
	}
	if ch.Trigger == string(Withdrawn) { // perhaps before anybody could begin it
		delete(w.alive, Lease{ch.Step, was.Proc})
	}
	if is.Proc != was.Proc && is.Proc != 0 {
		w.judgeProcess(ch, was, is)
	}
	if is.State == Skipped && s.When == "" && ch.Row == "W11" {
		w.t.Fatalf("%s has no condition, and one was found false", ch.Step)
	}
	if ch.Trigger == string(ReportedAgain) && (is.Attempts != 0 || is.LastError != "" || is.Rounds != was.Rounds+1 || !is.DueAt.After(ch.At) || is.Iteration != was.Iteration) {
		w.t.Fatalf("%s is to be run again, and it is %+v", ch.Step, is)
	}
	if ch.Trigger == string(WaitElapsed) && (was.DueAt.IsZero() || ch.At.Before(was.DueAt) || !is.DueAt.IsZero()) {
		w.t.Fatalf("%s may go on at %s, and asked for %s", ch.Step, ch.At, was.DueAt)
	}
	if was.State == Running && is.State == Completed && is.LastError != "" && ch.Row != "W6" {
		w.t.Fatalf("%s is COMPLETED with the error %q", ch.Step, is.LastError)
	}
}

// judgeProcess: a process begins under a lease that there never was, and beside none of its step.
func (w *world) judgeProcess(ch Change, was, is Value) {
	l := Lease{ch.Step, is.Proc}
	for other := range w.alive {
		if other.Step == ch.Step {
			w.t.Fatalf("%s begins as lease %d, and the process of lease %d is still there", ch.Step, is.N, other.N)
		}
	}
	switch {
	case w.begun[l]:
		w.t.Fatalf("lease %v was given before", l)
	case was.State != Pending && was.State != Waiting:
		w.t.Fatalf("a process begins for %s, which is %s", ch.Step, was.State)
	}
	w.begun[l], w.alive[l] = true, true
	if len(w.alive) > w.run.Options.SideBySide && ch.Trigger != string(AnsweredFirst) {
		w.t.Fatalf("%d processes side by side", len(w.alive))
	}
}

// judgeStart: no step starts before its needs, behind a loop, past a gate, a hold or a limit.
func (w *world) judgeStart(s Step, was Value) {
	for _, need := range s.Needs {
		if _, v := w.of(need); !done(v) {
			w.t.Fatalf("%s starts, and %s, which it needs, is %s", s.ID, need, v.State)
		}
	}
	for _, gate := range s.Gates {
		if w.run.Options.GateFile && !slices.Contains(w.run.OpenGates, gate) {
			w.t.Fatalf("%s starts, and gate %s is closed", s.ID, gate)
		}
	}
	switch {
	case was.BlockedBy != "":
		w.t.Fatalf("%s starts, and is blocked by the loop of %s", s.ID, was.BlockedBy)
	case w.now.Held || w.run.Stage != Driven:
		w.t.Fatalf("%s starts, and the run is %s, held %v", s.ID, w.run.Stage, w.now.Held)
	case len(w.alive) >= w.run.Options.SideBySide && s.Ask != AskBefore:
		w.t.Fatalf("%s starts beside %d others", s.ID, len(w.alive))
	case !was.RetryAt.IsZero():
		w.t.Fatalf("%s starts, and is tried again at %s only", s.ID, was.RetryAt)
	case !was.DueAt.IsZero():
		w.t.Fatalf("%s starts, and asked to be run again at %s only", s.ID, was.DueAt)
	case s.When != "" && !was.Weighed:
		w.t.Fatalf("%s starts, and nobody has weighed its condition", s.ID)
	case s.LoopBackTo != "" && was.Iteration > 0:
		if _, v := w.of(s.LoopBackTo); !done(v) {
			w.t.Fatalf("%s starts, and %s, which it had sent back, is %s", s.ID, s.LoopBackTo, v.State)
		}
	}
}

// after is a step and everything behind it, found the slow way.
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

// judgeReset: exactly what hangs on the target goes back, and as often as is allowed.
func (w *world) judgeReset(ch Change) {
	reset := ch.Body.Reset
	var moved []StepID
	for _, move := range reset.Moves {
		moved = append(moved, move.Step)
		if _, v := w.of(move.Step); v.State != move.From {
			w.t.Fatalf("%s: %s goes back from %s, and is %s", ch.Trigger, move.Step, move.From, v.State)
		}
	}
	if reset.Gate == "" {
		for _, id := range moved {
			w.loops[id] = 0
		}
		return
	}
	if !reset.Uncounted {
		w.loops[reset.Gate]++
	}
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
		w.t.Fatalf("the gate %s leads back to %s: %v go, and it should be %v", gate.ID, reset.Target, moved, want)
	case reset.Uncounted && !w.run.Options.AnswersFree:
		w.t.Fatalf("the gate %s leads back without being counted", gate.ID)
	case !reset.Uncounted && (v.Iteration-v.Uncounted >= w.run.Options.MaxIterations || w.loops[gate.ID] > w.run.Options.MaxIterations):
		w.t.Fatalf("the gate %s has led back %d times, in iteration %d", gate.ID, w.loops[gate.ID], v.Iteration)
	}
}

func (w *world) judgeMoved(ch Change) {
	for _, move := range ch.Body.Moved.Moves {
		s, v := w.of(move.Step)
		if v.State != Pending || v.State != move.From {
			w.t.Fatalf("%s moves %s, which is %s", ch.Trigger, s.ID, v.State)
		}
		if ch.Body.Moved.To == Pending {
			gate, _ := w.of(v.BlockedBy)
			if gate.LoopBackTo == "" {
				w.t.Fatalf("%s is free, and was blocked by nobody", s.ID)
			}
			if _, target := w.of(gate.LoopBackTo); !done(target) {
				w.t.Fatalf("%s is free, and %s is %s", s.ID, gate.LoopBackTo, target.State)
			}
			continue
		}
		empty := s.Loop != nil && s.Loop.Items != nil && len(s.Loop.Items) == 0
		all := len(s.Needs) > 0 && !slices.ContainsFunc(s.Needs, func(need StepID) bool { _, v := w.of(need); return v.State != Skipped })
		if !empty && !all || v.BlockedBy != "" {
			w.t.Fatalf("%s is skipped, and has something to do", s.ID)
		}
	}
}

// check is what must hold after every event.
func (w *world) check() {
	r := w.run
	for i, s := range r.Plan.Steps {
		if w.foreign {
			break // another program's value counts, and so do steps that are RUNNING only in its file
		}
		v := r.Steps[i].Value
		switch {
		case v.Attempts < 0 || v.Attempts > r.Options.MaxAttempts:
			w.t.Fatalf("%s: %d attempts, and there are %d", s.ID, v.Attempts, r.Options.MaxAttempts)
		case v.Iteration < 0 || v.Iteration > w.backs:
			w.t.Fatalf("%s: iteration %d, and gates have led back %d times", s.ID, v.Iteration, w.backs)
		case v.State == Running && (v.Proc == 0 || v.Proc != v.N || v.Ending != ""):
			w.t.Fatalf("%s is RUNNING without a process: %+v", s.ID, v)
		case v.Proc != 0 && !w.alive[Lease{s.ID, v.Proc}]:
			w.t.Fatalf("%s has a process that is gone: %+v", s.ID, v)
		case v.Proc != 0 && v.State != Running && v.Ending == "":
			w.t.Fatalf("%s is %s, and nobody ends its process", s.ID, v.State)
		case v.State == Waiting && v.ManualInputPath == "":
			w.t.Fatalf("%s waits for people who do not know", s.ID)
		case v.BlockedBy != "" && v.State != Pending:
			w.t.Fatalf("%s is %s, and blocked by %s", s.ID, v.State, v.BlockedBy)
		case v.Done > v.Index+1:
			w.t.Fatalf("%s: %d items are done, and it is at the one with the index %d", s.ID, v.Done, v.Index)
		}
		for _, need := range s.Needs {
			if _, n := w.of(need); n.State == Failed && v.State == Running {
				w.t.Fatalf("%s is %s, and %s, which it needs, has failed", s.ID, v.State, need)
			}
		}
	}
	w.checkWhole()
}

// checkWhole: a run that is not over has something to do, or waits for something with a name.
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
		w.t.Fatalf("%d steps may start beside %d", starts, len(w.alive))
	}
	switch status := r.Status(); status {
	case IsRunning:
		if len(actions) == 0 && r.Deadline().At.IsZero() && !w.now.Held {
			w.t.Fatalf("it runs, and there is nothing to do")
		}
	case IsWaiting:
		if len(r.Waits()) == 0 {
			w.t.Fatalf("it waits, and nobody knows for what")
		}
	case IsCompleted, IsFailed:
		failed := false
		for i := range r.Steps {
			v := r.Steps[i].Value
			failed = failed || v.State == Failed
			if status == IsCompleted && !done(v) || v.State == Running || v.State == Waiting {
				w.t.Fatalf("the run is %s, and %s is %s", status, r.Plan.Steps[i].ID, v.State)
			}
		}
		if failed != (status == IsFailed) {
			w.t.Fatalf("the run is %s, and a step failed: %v", status, failed)
		}
	}
	for _, s := range r.Plan.Steps {
		id := s.ID
		for _, t := range r.ActionsOf(id) {
			if !slices.Contains(actions, t) {
				w.t.Fatalf("of %s alone %+v is to be done, and of the run it is not", id, t)
			}
		}
	}
}
