package sim

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// outsider is a foreign agent, which runs its own loop. Fairlead never starts it and communicates
// with it only through its state file.
const outsider = "outsider"

const (
	outsiderLooks = 10 * time.Second // the polling interval of seed 000
	outsiderWorks = 25 * time.Second // the length of a session
)

// foreign is the state of the outsider's loop. Crashes do not affect it.
type foreign struct {
	next  time.Time // time of its next look at the file
	until time.Time // end of its session; zero: it is idle
	doing string    // the desired state that began the session
}

// playForeign does what the outsider's loop does at this moment; the caller holds the lock.
func (w *world) playForeign() {
	me, now := &w.foreign, time.Now()
	if now.Before(me.next) || now.Before(me.until) {
		return
	}
	me.next = now.Add(outsiderLooks)
	state, whole := w.files[outsider].now.state()
	if !whole {
		return // it waits for a readable file
	}
	was := state
	if !me.until.IsZero() {
		me.until = time.Time{}
		if me.doing != control.WordContinuous && state.DesiredState == me.doing { // rows C8 and C9, as seed 000 describes them
			state.DesiredState, state.SetBy, state.Note = control.WordPause, agentfile.SetByAgent, me.doing+" is done"
		}
	}
	switch state.DesiredState {
	case control.WordContinuous, control.WordRunOnce, control.WordRunCleanup:
		me.until, me.doing = now.Add(outsiderWorks), state.DesiredState
		state.CurrentState = state.DesiredState
	default:
		state.CurrentState = control.WordPause
	}
	if state.DesiredState == was.DesiredState && state.CurrentState == was.CurrentState {
		return
	}
	state.Timestamp = file.FormatTime(now)
	w.put(outsider, state.Render(), true, "")
	w.notef("the outsider writes %s/%s", state.DesiredState, state.CurrentState)
	w.written(outsider)
}

// checkForeignFile checks that the outsider's file has the desired state and that its report is in
// the journal.
func (w *world) checkForeignFile(a *team.Agent, is control.File) {
	f := w.files[outsider]
	state, whole := f.now.state()
	if !whole || a.Control.Desired.N == 0 {
		return // no desired state was ever set
	}
	w.check(foreignLoop, state.DesiredState == is.Desired, "the desired state of the outsider is %s, but its file says %s", is.Desired, state.DesiredState)
	known := is.Current != "unknown"
	w.check(foreignLoop, !known || state.CurrentState == is.Current, "the outsider reports %s, but the journal says %s", state.CurrentState, is.Current)
	if f.extra != "" {
		kept := extraOf(f.now)
		w.check(extraSurvives, kept == f.extra, "the file of %s has the unknown fields %s, want %s", outsider, kept, f.extra)
	}
	if f.now.foreign && f.now.note != "" {
		w.mustBeStored[f.now.note] = storedLater{agent: outsider, ident: fmt.Sprintf("write-%d", f.now.n)}
	}
}

// checkForeignWrite checks that Fairlead writes the desired state, and no current state, into the
// file of a foreign loop. If the loop writes between the engine's read and its exchange, its
// content is found in the replaced file; checkForeignFile checks at the end that it was restored.
func (w *world) checkForeignWrite(agent string, known, old *fileVersion, content []byte) {
	if agent != outsider || known != old || old == nil || !old.foreign {
		return
	}
	was, whole := old.state()
	now, err := agentfile.Parse(content)
	if !whole || err != nil || was.CurrentState == "" || was.CurrentState == now.CurrentState {
		return
	}
	w.broken(foreignLoop, "the outsider reported %q, but Fairlead wrote %q", was.CurrentState, now.CurrentState)
}
