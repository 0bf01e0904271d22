// Package notice decides which notices each target receives, and when.
//
// A notice is something that a person may want to know: an agent asks, a run failed. All notices
// are derived from the team's state, so there is no queue that could be lost. Plan compares them
// with the record of what a target was sent. It returns what is due now, or when something will be.
// The caller sends the message. After returns the record with the outcome, which the caller
// journals.
//
//	notices ─┐
//	record ──┼─► Plan ─► send now: these, and how many more   ─► After ─► record
//	time ────┘      └──► or look again at this time
//
// The one promise: a target is sent each notice once, also across restarts, never in its quiet
// hours, and never more messages in an hour than its limit. A notice that ended before it was due
// is not sent.
package notice

import (
	"cmp"
	"slices"
	"time"
)

// Event is the kind of a notice. Targets choose by it.
type Event string

const (
	NeedsYou      Event = "needs_you"       // a step or an agent waits for an answer
	StillNeedsYou Event = "still_needs_you" // it has waited for ReminderAfter
	GaveUp        Event = "gave_up"         // an agent failed too often and is no longer started
	RunFailed     Event = "run_failed"
	TaskFailed    Event = "task_failed"
	LimitReached  Event = "limit_reached" // a provider's rate limit, or a daily limit of fairlead.yaml
	Finished      Event = "finished"      // a run or a task was completed
	Test          Event = "test"          // a person asked for it; no target chooses it
)

// Events lists what a target can choose.
func Events() []Event {
	return []Event{NeedsYou, StillNeedsYou, GaveUp, RunFailed, TaskFailed, LimitReached, Finished}
}

// Usual lists what a target that chooses nothing is sent.
func Usual() []Event { return slices.DeleteFunc(Events(), func(e Event) bool { return e == Finished }) }

// Matter is one thing to report. Its texts are untrusted: names of workflows and titles of tasks.
type Notice struct {
	Event Event
	Cause string    // what it is about: question/q17, step/r1/review, agent/coder
	Since time.Time // identifies the notice together with Event and Cause
	Past  bool      // it is an event and not a condition, so it has no end after which it is no longer sent

	Kind     string // step, permission, question or resume, for NeedsYou; otherwise empty
	Run      string
	Step     string
	Workflow string
	Agent    string
	Title    string // of a task
	Why      string // one sentence without text of an agent
	Path     string // of the file to which an answer can be written
	Page     string // the part of the page that shows it, such as #/runs/r1/review
}

// Target is one address with its rules.
type Target struct {
	Name    string
	Events  []Event
	Quiet   Quiet
	PerHour int  // messages in any 60 minutes
	Each    bool // a message for each notice, because a program reads it
}

// Quiet is the hours of each day in which nothing is sent. From after To spans midnight; equal
// times mean none.
type Quiet struct {
	From, To time.Duration // since midnight
	Zone     *time.Location
}

// End returns when the quiet hours that include a time end. It returns false outside of quiet
// hours.
func (q Quiet) End(now time.Time) (time.Time, bool) {
	if q.From == q.To || q.Zone == nil {
		return time.Time{}, false
	}
	local := now.In(q.Zone)
	at := func(days int, of time.Duration) time.Time { // by the local clock, also on a day of 23 or 25 hours
		return time.Date(local.Year(), local.Month(), local.Day()+days, 0, int(of/time.Minute), 0, 0, q.Zone)
	}
	for _, day := range []int{-1, 0} {
		end := day
		if q.From > q.To {
			end++
		}
		if from, to := at(day, q.From), at(end, q.To); !now.Before(from) && now.Before(to) {
			return to, true
		}
	}
	return time.Time{}, false
}

const (
	ReminderAfter = 15 * time.Minute // a person who was away for a coffee has seen the first notice by then
	// the shortest time between two notices with the same cause, unless it waits for an answer: an agent can reach a limit every minute
	SameWindow = 10 * time.Minute
	gatherFor  = 10 * time.Second   // between two messages: notices in this time share the next message
	AgeMax     = 7 * 24 * time.Hour // older notices are not sent: they have been in the inbox for long
	pendingMax = 200                // notices that one message counts; the others follow in the next
	listedMax  = 10                 // notices that one message lists; a phone shows no more
	noticesMax = 400                // notices that a record remembers; the oldest are forgotten
	hour       = time.Hour
)

// Plan is what is due for a target.
type Plan struct {
	Notices []Notice  // to be sent now, in one message; empty: nothing is due
	More    []Notice  // further ones that the message only counts
	Again   time.Time // look again at this time; zero: only after a change
}

// Plan returns what is due for a target at a time. Started is when the daemon started: a target
// without a record is not sent notices from before.
func (t Target) Plan(r Record, notices []Notice, started, now time.Time) Plan {
	pending, again := t.pending(r, notices, started, now)
	if len(pending) == 0 {
		return Plan{Again: again}
	}
	if end, quiet := t.Quiet.End(now); quiet {
		return Plan{Again: end}
	}
	if at := t.free(r, now); at.After(now) {
		return Plan{Again: at}
	}
	n := listedMax
	if t.Each {
		n, pending = 1, pending[:1]
	}
	n = min(n, len(pending))
	return Plan{Notices: pending[:n:n], More: pending[n:], Again: again}
}

// Waiting counts the notices that the target has not been sent, up to a limit.
func (t Target) Waiting(r Record, notices []Notice, started, now time.Time) int {
	pending, _ := t.pending(r, notices, started, now)
	return len(pending)
}

// pending lists the notices that the target has not been sent, oldest first, and when the next one
// will be due.
func (t Target) pending(r Record, notices []Notice, started, now time.Time) (pending []Notice, again time.Time) {
	from := r.From
	if from.IsZero() {
		from = started
	}
	waits := func(at time.Time) {
		if again.IsZero() || at.Before(again) {
			again = at
		}
	}
	add := func(m Notice) bool {
		told, known := r.sentBefore(m)
		switch {
		case !slices.Contains(t.Events, m.Event), now.Sub(m.Since) > AgeMax, m.Past && m.Since.Before(from),
			known && !m.Since.After(told.Since):
			return false
		case known && m.Event != NeedsYou && now.Before(told.At.Add(SameWindow)):
			waits(told.At.Add(SameWindow))
			return false
		}
		pending = append(pending, m)
		return true
	}
	for _, m := range notices {
		if add(m) || m.Event != NeedsYou || !slices.Contains(t.Events, StillNeedsYou) {
			continue
		}
		reminder := m
		reminder.Event = StillNeedsYou
		due := m.Since.Add(ReminderAfter)
		if told, known := r.sentBefore(m); known && told.At.After(m.Since) { // it may have been held for hours
			due = told.At.Add(ReminderAfter)
		}
		if now.Before(due) {
			if told, known := r.sentBefore(reminder); !known || reminder.Since.After(told.Since) {
				waits(due)
			}
			continue
		}
		add(reminder)
	}
	slices.SortStableFunc(pending, func(a, b Notice) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Cause, b.Cause)) })
	return pending[:min(len(pending), pendingMax)], again
}

// free returns the earliest time of the target's next message.
func (t Target) free(r Record, now time.Time) time.Time {
	at := now
	if n := len(r.Sent); n > 0 {
		if n >= t.PerHour {
			at = r.Sent[n-t.PerHour].Add(hour)
		}
		// a clock that was set back delays no message
		if next := r.Sent[n-1].Add(gatherFor); !t.Each && next.After(at) && !r.Sent[n-1].After(now) {
			at = next
		}
	}
	return at
}
