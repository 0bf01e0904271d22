package agents

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	largeTeamMin       = 100             // from this number of agents on, memory that the start used is returned to the system
	releaseMemoryAfter = 5 * time.Second // delay after the start, so that the readers of the journal have finished
)

// AgentHooks returns the agents' hooks into the loop.
func (e *Controller) AgentHooks() loop.Hooks {
	return loop.Hooks{
		Note: func(ch team.Change, t *loop.Touched) bool {
			e.warn(ch)
			if ch.Body.Team == nil && !strings.HasPrefix(ch.Entity, "run/") {
				t.Agent(loop.AgentOf(ch.Entity))
			}
			return true
		},
		Act: func(t *loop.Touched) {
			for name := range t.Agents {
				e.beginActions(name)
			}
		},
		Next:    e.nextOfAgents,
		Due:     e.dueOfAgents,
		Settled: func(bool) bool { return e.filesSettled() },
		Ready:   e.releaseMemory,
		Drain: func() <-chan struct{} {
			e.Pumping()
			return e.pumped
		},
	}
}

func (e *Controller) nextOfAgents() time.Time {
	var next time.Time
	for name, a := range e.State().Agents {
		next = loop.Earlier(next, e.deadline(a))
		if m := e.Files[name]; m != nil {
			next = loop.Earlier(next, m.Again)
		}
	}
	return next
}

// dueOfAgents returns a request for each expired timer of an agent and for each file whose write is
// due again.
func (e *Controller) dueOfAgents(now time.Time) []loop.Request {
	var batch []loop.Request
	for _, name := range e.State().Names() {
		a := e.State().Agents[name]
		if at := e.deadline(a); !at.IsZero() && !now.Before(at) {
			batch = append(batch, loop.Request{Event: &team.Event{Actor: sessions.ByTimer, Agent: name, What: team.TimerFired{}}})
		}
		if m := e.Files[name]; m != nil && !m.Again.IsZero() && !now.Before(m.Again) {
			m.Again = time.Time{}
			if !m.Known {
				e.lookAgain(m)
			}
			batch = append(batch, loop.Request{Agent: name})
		}
	}
	return batch
}

// deadline is the next deadline of an agent. A session that has ended, but whose end is not yet in
// the journal, has none: it may have ended long before, while no daemon ran, and must not be
// reported as timed out.
func (e *Controller) deadline(a *team.Agent) time.Time {
	at := e.State().Deadline(a)
	if s := a.Session; s != nil && !at.IsZero() {
		if proc := e.sessions.Proc(s.ID); proc != nil && sessions.IsDone(proc) {
			return time.Time{}
		}
	}
	return at
}

// filesSettled reports whether every file is up to date or cannot be written at present.
func (e *Controller) filesSettled() bool {
	for name, m := range e.Files {
		waits := m.Failed != "" || !m.Again.IsZero()
		if m.Writing || (!waits && e.FileDue(m, e.State().Agents[name])) {
			return false
		}
	}
	return true
}

// releaseMemory returns memory to the system after the start of a large team.
func (e *Controller) releaseMemory() {
	if len(e.Files) < largeTeamMin {
		return
	}
	e.Go(func(ctx context.Context) {
		if loop.Rest(ctx, releaseMemoryAfter) {
			debug.FreeOSMemory()
		}
	})
}
