package workflow

import "fmt"

// Status is the progress of a run. It is derived from its steps, except for cancellation, and for a run whose steps are ordered.
type Status string

const (
	IsRunning   Status = "running"   // something is running or may start
	IsWaiting   Status = "waiting"   // for people, for a gate, or for a resume: see Waits
	IsCompleted Status = "completed" // every step is COMPLETED or SKIPPED
	IsFailed    Status = "failed"    // a step failed, and nothing else can continue
	IsCancelled Status = "cancelled" //
)

// Status returns the run's progress. As in seed 004, a run with a FAILED step is running while
// another branch still runs.
func (r *Run) Status() Status {
	n := r.counts()
	busy := n[running] + n[pointless] + n[weighing] + n[seeking] + n[resting] + n[draining] + n[ready] + n[asking]
	switch {
	case r.Stage == Stopped:
		return IsCancelled
	case !r.complete():
		return IsWaiting
	case r.Plan.ordered():
		return r.orderedStatus(n[running], busy, n[waiting]+n[closed])
	case n[settled] == len(r.Steps):
		return IsCompleted
	case r.Stage == Driven && busy > 0, r.Stage == Paused && n[running] > 0:
		return IsRunning
	case busy > 0 || n[waiting] > 0 || n[closed] > 0:
		return IsWaiting
	case n[failed] > 0:
		return IsFailed
	default:
		panic(fmt.Sprintf("workflow: run %s waits without a reason", r.ID))
	}
}

// orderedStatus is the progress of a run whose steps are ordered. One that has ended says nothing: another may be ordered.
func (r *Run) orderedStatus(running, busy, waiting int) Status {
	switch {
	case r.Judged != "":
		return r.Judged
	case r.Stage == Driven && (busy > 0 || waiting == 0), r.Stage == Paused && running > 0:
		return IsRunning
	default:
		return IsWaiting
	}
}

// NotOrdered is what a step waits for that starts only when it is ordered.
const NotOrdered = "nothing asks for it now"

// waitsMax limits the list of things that a run waits for.
const waitsMax = 100

// Waits describes what a run waits for, one sentence each; empty if it does not wait.
func (r *Run) Waits() []string {
	var waits []string
	if r.Stage == Stopped || !r.complete() {
		return nil
	}
	if r.Stage == Paused || r.Stage == Parked {
		text := "the run is " + string(r.Stage)
		if r.Why != "" {
			text += ": " + r.Why
		}
		waits = append(waits, text+"; it continues when a person resumes it")
	}
	for _, at := range []place{waiting, closed} {
		for i := range r.in(at) {
			if len(waits) == waitsMax {
				return append(waits, fmt.Sprintf("and more than %d others", waitsMax))
			}
			_, why := r.waitsFor(i)
			waits = append(waits, string(r.Plan.Steps[i].ID)+": "+why)
		}
	}
	return waits
}

// WaitsFor describes what prevents a step from starting or continuing; empty: nothing does.
func (r *Run) WaitsFor(id StepID) string {
	i, ok := r.index.at[id]
	if !ok {
		return "the plan has no such step"
	}
	_, why := r.waitsFor(i)
	return why
}

// waitsFor returns what prevents a step from starting, and the row that does.
func (r *Run) waitsFor(i int) (row, why string) {
	p := &r.Steps[i]
	switch r.place(i) {
	case idle:
		return "W12", NotOrdered
	case later:
		return r.waitsLater(i)
	case draining:
		return "J1", fmt.Sprintf("the process of lease %d has not ended yet (%s)", p.Proc, p.Ending)
	case pointless:
		return "W11", "it is to be skipped"
	case weighing:
		return "W11", "its condition has not been evaluated yet"
	case seeking:
		return "W15", "what it loops over has not been found yet"
	case resting:
		if !p.DueAt.IsZero() {
			return "W16", "it is not done, and asked to be run again at " + p.DueAt.Format("15:04:05.000Z07:00")
		}
		return "W4", "it failed, and is tried again at " + p.RetryAt.Format("15:04:05.000Z07:00")
	case closed:
		return "W2", fmt.Sprintf("gate %q is closed", r.closedGate(i))
	case waiting:
		text := "it waits for the answer of a person; fairlead inbox shows what is asked"
		if p.Fault != "" {
			text += " (the last one was not valid: " + p.Fault + ")"
		}
		return "W8", text
	default:
		return "", ""
	}
}

func (r *Run) waitsLater(i int) (row, why string) {
	p := &r.Steps[i]
	var unmet []StepID
	for _, need := range r.index.needs[i] {
		if !r.Steps[need].settled() {
			unmet = append(unmet, r.Plan.Steps[need].ID)
		}
	}
	switch {
	case len(unmet) > 0:
		return "W2", "it needs what " + listed(unmet, "has not completed", "have not completed")
	case p.BlockedBy != "":
		return "W6", fmt.Sprintf("it is blocked by the loop of %s", p.BlockedBy)
	default:
		return "W6", fmt.Sprintf("it has sent the run back to %s, which is not done again", r.Plan.Steps[i].LoopBackTo)
	}
}
