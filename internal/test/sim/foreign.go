package sim

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// outsider is the agent that runs the seed's loop itself: Fairlead never starts it, and communicates
// with it only through its file.
const outsider = "outsider"

const (
	outsiderLooks = 10 * time.Second // as often as the seed's loop looks
	outsiderWorks = 25 * time.Second // for a session
)

// foreign is the state of the outsider's loop. It lives on whatever becomes of us.
type foreign struct {
	next  time.Time // its next look
	until time.Time // the end of its session; zero: it rests
	doing string    // the word that began the session
}

// playForeign lets the outsider do what it does at this moment; the caller holds the lock.
func (w *world) playForeign() {
	me, now := &w.foreign, time.Now()
	if now.Before(me.next) || now.Before(me.until) {
		return
	}
	me.next = now.Add(outsiderLooks)
	state, whole := w.files[outsider].now.state()
	if !whole {
		return // it waits until the file exists
	}
	was := state
	if !me.until.IsZero() {
		me.until = time.Time{}
		if me.doing != control.WordContinuous && state.DesiredState == me.doing { // C8 and C9 as the seed has them
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
	w.came("the outsider says %s/%s", state.DesiredState, state.CurrentState)
	w.written(outsider)
}

// checkForeignFile: what is wanted is in the outsider's file, and what it says of itself
// is known.
func (w *world) checkForeignFile(a *team.Agent, is control.File) {
	f := w.files[outsider]
	state, whole := f.now.state()
	if !whole || a.Control.Desired.N == 0 {
		return // there is no file, and no desired state was ever set
	}
	w.check(foreignLoop, state.DesiredState == is.Desired, "the outsider is wanted to be %s, and its file says %s", is.Desired, state.DesiredState)
	known := is.Current != "unknown"
	w.check(foreignLoop, !known || state.CurrentState == is.Current, "the outsider says that it is %s, and the journal says %s", state.CurrentState, is.Current)
	if f.extra != "" {
		kept := extraOf(f.now)
		w.check(extraSurvives, kept == f.extra, "the file of %s holds %s in fields of others, who wrote %s", outsider, kept, f.extra)
	}
	if f.now.foreign && f.now.note != "" {
		w.owed[f.now.note] = owed{agent: outsider, ident: fmt.Sprintf("write-%d", f.now.n)}
	}
}

// checkForeignWrite: into the file of a foreign loop, Fairlead writes the desired state and no
// actual state. Content that the loop wrote between the engine's read and its exchange is found in
// the replaced file; checkForeignFile checks at the end that it was restored.
func (w *world) checkForeignWrite(agent string, known, old *sheet, content []byte) {
	if agent != outsider || known != old || old == nil || !old.foreign {
		return
	}
	was, whole := old.state()
	now, err := agentfile.Parse(content)
	if !whole || err != nil || was.CurrentState == "" || was.CurrentState == now.CurrentState {
		return
	}
	w.broken(foreignLoop, "the outsider says that it is %q, and we wrote %q", was.CurrentState, now.CurrentState)
}
