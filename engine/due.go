package engine

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	crowd     = 100             // agents from which on the memory that a start used is given back to the system,
	calmAfter = 5 * time.Second // so long after it, when the watchers of the journal have read it
)

// registerAll adds the hooks of every controller, in the order in which they act.
func (e *Engine) registerAll() {
	e.Register(e.channelHooks())
	e.Register(e.crewHooks())
	e.Register(e.dispatchHooks())
	e.Register(e.questionHooks())
	e.Register(e.agentHooks())
	e.Register(e.runHooks())
}

// agentHooks are what the agents' controller does in the loop.
func (e *Engine) agentHooks() loop.Hooks {
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
			e.pumping()
			return e.pumped
		},
	}
}

// questionHooks are what the questions' controller does in the loop.
func (e *Engine) questionHooks() loop.Hooks {
	return loop.Hooks{
		Note: func(ch team.Change, t *loop.Touched) bool {
			if ch.Body.Question == nil {
				return false
			}
			if q := ch.Body.Question.Question; q != nil {
				t.Agent(q.Agent)
			}
			return true
		},
		Act: func(t *loop.Touched) {
			for name := range t.Agents {
				if a, m := e.State().Agents[name], e.members[name]; a != nil && m != nil && !e.Holding() {
					e.answersOf(m, a)
					e.wanted(name)
				}
			}
		},
		Next: func() time.Time { return e.State().Book.Deadline() },
		Due: func(now time.Time) []loop.Request {
			if at := e.State().Book.Deadline(); at.IsZero() || now.Before(at) {
				return nil
			}
			return []loop.Request{{Event: &team.Event{Actor: byTimer, What: question.Due{}}}}
		},
	}
}

// runHooks are what the runs' controller does in the loop.
func (e *Engine) runHooks() loop.Hooks {
	return loop.Hooks{
		Act: func(t *loop.Touched) {
			for id := range t.Runs {
				e.errandsOfRun(id)
			}
		},
		Next: func() time.Time {
			var next time.Time
			for id := range e.State().Runs {
				next = loop.Earlier(next, e.State().DeadlineRun(id))
			}
			return next
		},
		Due: func(now time.Time) []loop.Request {
			var batch []loop.Request
			for _, id := range e.State().RunIDs() {
				if at := e.State().DeadlineRun(id); !at.IsZero() && !now.Before(at) {
					batch = append(batch, loop.Request{Event: &team.Event{Actor: byTimer, Run: id, What: team.TimerFired{}}})
				}
			}
			return batch
		},
	}
}

func (e *Engine) nextOfAgents() time.Time {
	var next time.Time
	for name, a := range e.State().Agents {
		next = loop.Earlier(next, e.deadline(a))
		if m := e.files[name]; m != nil {
			next = loop.Earlier(next, m.again)
		}
	}
	return next
}

// dueOfAgents are the timers of agents that have run out, and the files that are tried again.
func (e *Engine) dueOfAgents(now time.Time) []loop.Request {
	var batch []loop.Request
	for _, name := range e.State().Names() {
		a := e.State().Agents[name]
		if at := e.deadline(a); !at.IsZero() && !now.Before(at) {
			batch = append(batch, loop.Request{Event: &team.Event{Actor: byTimer, Agent: name, What: team.TimerFired{}}})
		}
		if m := e.files[name]; m != nil && !m.again.IsZero() && !now.Before(m.again) {
			m.again = time.Time{}
			if !m.known {
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
func (e *Engine) deadline(a *team.Agent) time.Time {
	at := e.State().Deadline(a)
	if s := a.Session; s != nil && !at.IsZero() {
		if proc := e.proc(s.ID); proc != nil && isDone(proc) {
			return time.Time{}
		}
	}
	return at
}

// filesSettled says whether every file says what it is to say, or cannot be made to at present.
func (e *Engine) filesSettled() bool {
	for name, m := range e.files {
		waits := m.failed != "" || !m.again.IsZero()
		if m.writing || (!waits && e.fileDue(m, e.State().Agents[name])) {
			return false
		}
	}
	return true
}

// releaseMemory gives back what the start of a large team has used.
func (e *Engine) releaseMemory() {
	if len(e.files) < crowd {
		return
	}
	e.Go(func(ctx context.Context) {
		if loop.Rest(ctx, calmAfter) {
			debug.FreeOSMemory()
		}
	})
}

// documentsSettled says whether the files of the agents' documents were brought up to the journal: who
// copies them after a stop copies what was true.
func (e *Engine) documentsSettled() bool {
	return e.opts.Documents == nil || e.crew.filed.Load() == e.crew.changed.Load()
}
