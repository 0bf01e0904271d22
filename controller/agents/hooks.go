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
	crowd     = 100             // agents from which on the memory that a start used is given back to the system,
	calmAfter = 5 * time.Second // so long after it, when the watchers of the journal have read it
)

// agentHooks are what the agents' controller does in the loop.
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
				e.errandsOf(name)
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

// dueOfAgents are the timers of agents that have run out, and the files that are tried again.
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

// deadline is the next one of an agent. A session that is over, and whose end is on its way
// to the journal, reaches no limit any more: it may have ended long before, while we were
// away, and to say that it used its time up would be a guess.
func (e *Controller) deadline(a *team.Agent) time.Time {
	at := e.State().Deadline(a)
	if s := a.Session; s != nil && !at.IsZero() {
		if proc := e.sessions.Proc(s.ID); proc != nil && sessions.IsDone(proc) {
			return time.Time{}
		}
	}
	return at
}

// filesSettled says whether every file says what it is to say, or cannot be made to at present.
func (e *Controller) filesSettled() bool {
	for name, m := range e.Files {
		waits := m.Failed != "" || !m.Again.IsZero()
		if m.Writing || (!waits && e.FileDue(m, e.State().Agents[name])) {
			return false
		}
	}
	return true
}

// releaseMemory gives back what the start of a large team has used.
func (e *Controller) releaseMemory() {
	if len(e.Files) < crowd {
		return
	}
	e.Go(func(ctx context.Context) {
		if loop.Rest(ctx, calmAfter) {
			debug.FreeOSMemory()
		}
	})
}
