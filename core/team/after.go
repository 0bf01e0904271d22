package team

import (
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// afterMax is how many runs a run may wait for.
const afterMax = 16

// BlockedBy lists the runs that a run waits for: those of its settings that have not completed. One that failed
// or was cancelled may be resumed, so it still blocks.
func (t *Team) BlockedBy(run string) (blocked []string) {
	for _, id := range t.Notes[run].Settings.After {
		if t.anyOpen([]string{id}) {
			blocked = append(blocked, id)
		}
	}
	return blocked
}

// anyOpen reports whether one of some runs has not completed.
func (t *Team) anyOpen(runs []string) bool {
	return slices.ContainsFunc(runs, func(id string) bool {
		r := t.Runs[id]
		return r == nil || r.Status() != workflow.IsCompleted
	})
}

// waitersOf calls found for each run that waits for another one.
func (t *Team) waitersOf(run string, found func(id string)) {
	for id, note := range t.Notes {
		if slices.Contains(note.Settings.After, run) && t.Runs[id] != nil {
			found(id)
		}
	}
}

// waitingFor returns a run that is not over and waits for another one; empty: none.
func (t *Team) waitingFor(run string) (waits string) {
	t.waitersOf(run, func(id string) {
		if r := t.Runs[id]; !atRest(r) && (waits == "" || id < waits) {
			waits = id
		}
	})
	return waits
}

// mayWaitFor checks the runs that a new run is to wait for. Only runs that exist are possible, so there are no
// circles.
func (t *Team) mayWaitFor(run string, after []string) error {
	for _, id := range after {
		_, gone := t.Archive[id]
		if t.Runs[id] != nil && id != run {
			continue
		}
		why := fmt.Sprintf("it cannot wait for %q: there is no such run", id)
		if gone {
			why = fmt.Sprintf("it cannot wait for %q, which is archived", id)
		}
		return &table.Refusal{Subject: "run " + run, Event: "run_asked", State: "asked", Row: "W1", Reason: why}
	}
	return nil
}
