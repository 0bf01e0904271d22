package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	crowd     = 100             // agents, from which on what a start has used up is given back to the system,
	calmAfter = 5 * time.Second // so long after it, when whoever watches the journal has read it
	lookMax   = time.Minute     // a clock that was set, or a machine that slept, is noticed after so long
	spunFor   = time.Second     // the pause after a deadline of which nothing came
)

// untilDue is the time to the next deadline of anybody.
func (e *Engine) untilDue() time.Duration {
	next := time.Time{}
	earlier := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for name, a := range e.team.Agents {
		earlier(e.deadline(a))
		if m := e.members[name]; m != nil {
			earlier(m.again)
			earlier(e.partDue(m, a))
		}
	}
	for id := range e.team.Runs {
		earlier(e.team.DeadlineRun(id))
	}
	earlier(e.dues.next())
	earlier(e.team.Crew.Deadline())
	earlier(e.team.Book.Deadline())
	if next.IsZero() {
		return lookMax
	}
	wait := min(max(0, next.Sub(e.clock.now())), lookMax)
	if e.spun {
		wait = max(wait, spunFor)
	}
	return wait
}

// deadline is the next one of an agent. A session that is over, and whose end is on its way
// to the journal, reaches no limit any more: it may have ended long before, while we were
// away, and to say that it used its time up would be a guess.
func (e *Engine) deadline(a *team.Agent) time.Time {
	at := e.team.Deadline(a)
	if s := a.Session; s != nil && !at.IsZero() {
		if proc := e.proc(s.ID); proc != nil && isDone(proc) {
			return time.Time{}
		}
	}
	return at
}

// onTime does what is due. A deadline of which nothing comes would be due for ever: it is
// a fault of ours, and must not take a whole processor.
func (e *Engine) onTime(ctx context.Context) error {
	batch, head := e.dueEvents(), e.head
	if err := e.step(ctx, batch); err != nil {
		return err
	}
	spun := len(batch) > 0 && e.head == head
	if spun && !e.spun {
		e.log.Error("a deadline came to nothing, which is a fault in fairlead; it is tried again every second", "agent", batch[0].event.Agent, "what", fmt.Sprintf("%T", batch[0].event.What))
	}
	e.spun = spun
	return nil
}

// dueEvents are the timers that have run out.
func (e *Engine) dueEvents() []request {
	now := e.clock.now()
	var batch []request
	for _, name := range e.team.Names() {
		a := e.team.Agents[name]
		if at := e.deadline(a); !at.IsZero() && !now.Before(at) {
			batch = append(batch, request{event: &team.Event{Actor: byTimer, Agent: name, What: team.TimerFired{}}})
		}
		if m := e.members[name]; m != nil && !m.again.IsZero() && !now.Before(m.again) {
			m.again = time.Time{}
			if !m.known {
				e.lookAgain(m)
			}
			e.errandsOf(name)
		}
	}
	batch = append(batch, e.dueInChannels(now)...)
	batch = append(batch, e.leadDue()...)
	if at := e.team.Book.Deadline(); !at.IsZero() && !now.Before(at) {
		batch = append(batch, request{event: &team.Event{Actor: byTimer, What: question.Due{}}})
	}
	for _, id := range e.team.RunIDs() {
		if at := e.team.DeadlineRun(id); !at.IsZero() && !now.Before(at) {
			batch = append(batch, request{event: &team.Event{Actor: byTimer, Run: id, What: team.TimerFired{}}})
		}
	}
	return batch
}

// filesSettled says whether every file says what it is to say, or cannot be made to at present.
func (e *Engine) filesSettled() bool {
	for name, m := range e.members {
		waits := m.failed != "" || !m.again.IsZero()
		if m.writing || (!waits && e.fileDue(m, e.team.Agents[name])) {
			return false
		}
	}
	return true
}

// checkReady notices that the start is over.
func (e *Engine) checkReady() {
	select {
	case <-e.ready:
	default:
		if e.filesSettled() {
			close(e.ready)
			if len(e.members) >= crowd {
				e.beside(func(ctx context.Context) {
					if rest(ctx, calmAfter) {
						debug.FreeOSMemory()
					}
				})
			}
		}
	}
}

// documentsSettled says whether the files of the agents' documents were brought up to the journal: who
// copies them after a stop copies what was true.
func (e *Engine) documentsSettled() bool {
	return e.opts.Documents == nil || e.crew.filed.Load() == e.crew.changed.Load()
}

// checkStopped notices that a stop that was asked for is complete.
func (e *Engine) checkStopped() {
	select {
	case <-e.stopped:
	default:
		if e.team.Stopping && e.team.Idle() && e.filesSettled() && e.documentsSettled() {
			close(e.stopped)
		}
	}
}

// bucket allows a few of something at once, and then one now and again.
type bucket struct {
	used  float64
	since time.Time
}

// wait takes one, or says how long until there is one.
func (b *bucket) wait(now time.Time, most float64, every time.Duration) time.Duration {
	b.used = max(0, b.used-float64(now.Sub(b.since))/float64(every))
	b.since = now
	if b.used+1 <= most {
		b.used++
		return 0
	}
	return max(time.Millisecond, time.Duration((b.used+1-most)*float64(every)))
}
