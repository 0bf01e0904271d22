package notice

import (
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
)

// State says whether a target can be reached.
type State string

const (
	Reached State = "reached" // the last message was delivered, or none was sent yet
	Failing State = "failing" // the last message was not delivered
)

// Outcome is the result of a message.
type Outcome string

const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"
)

// Act is what a row does with the record.
type Act string

const (
	NoteSent  Act = "note_sent"  // its notices are not sent again
	NoteCause Act = "note_cause" // why it failed
	Forget    Act = "forget"     // drops the cause of the last failure
)

// Table is the life of a target. The rows are Fairlead's own.
var Table = table.Table[State, Outcome, Act]{
	Reached: {
		Delivered: {ID: "G1", To: Reached, Do: table.Do(NoteSent)},
		Failed:    {ID: "G2", To: Failing, Do: table.Do(NoteCause), Why: "the notices stay due, and the message is tried again"},
	},
	Failing: {
		Delivered: {ID: "G3", To: Reached, Do: table.Do(NoteSent, Forget)},
		Failed:    {ID: "G4", To: Failing, Do: table.Do(NoteCause), Why: "for another cause; the same one is journaled once"},
	},
}

// Record is what a target was sent. It is journaled whole.
type Record struct {
	From    time.Time    `json:"from"`              // notices from before this are not sent
	Notices []SentNotice `json:"told,omitempty"`    // oldest first, toldMax at most
	Sent    []time.Time  `json:"sent,omitempty"`    // messages of the last hour
	Counted int          `json:"counted,omitempty"` // notices that messages of the last hour only counted
	Failure *Failure     `json:"failure,omitempty"` // nil: it can be reached
}

// JSONKey is the key of a change in the journal.
func (*Record) JSONKey() string { return "notice" }

// SentMatter is one notice that was sent.
type SentNotice struct {
	Event Event     `json:"event"`
	Cause string    `json:"cause"`
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
}

// Failure is why a target could not be reached. Its texts are fixed: nothing in them comes from an address or a
// server.
type Failure struct {
	Cause  string    `json:"cause"`
	WayOut string    `json:"way_out"`
	Since  time.Time `json:"since"`

	Again bool          `json:"-"` // a retry may succeed without a change of the configuration
	Wait  time.Duration `json:"-"` // the delay that the server asked for; 0: none
}

func (f *Failure) Error() string { return f.Cause + "; " + f.WayOut }

// State reports whether the target can be reached.
func (r Record) State() State {
	if r.Failure != nil {
		return Failing
	}
	return Reached
}

// Last returns when the target was sent its last message, or was first used.
func (r Record) Last() time.Time {
	if n := len(r.Notices); n > 0 {
		return r.Notices[n-1].At
	}
	return r.From
}

func (r Record) sentBefore(m Notice) (SentNotice, bool) {
	for i := range r.Notices {
		if t := r.Notices[i]; t.Event == m.Event && t.Cause == m.Cause {
			return t, true
		}
	}
	return SentNotice{}, false
}

// Sent is the outcome of a message to a target.
type Sent struct {
	Target  string
	Notices []SentNotice // the notices, without their time
	Counted int          // how many of them the message only counted
	Began   time.Time    // when the daemon started
	Failure *Failure     // nil: it was delivered
}

// Outcome returns the event of the table.
func (s Sent) Outcome() Outcome {
	if s.Failure != nil {
		return Failed
	}
	return Delivered
}

// Marks returns the notices of a plan as its outcome records them.
func (p Plan) Marks() []SentNotice {
	told := make([]SentNotice, 0, len(p.Notices)+len(p.More))
	for _, m := range slices.Concat(p.Notices, p.More) {
		told = append(told, SentNotice{Event: m.Event, Cause: m.Cause, Since: m.Since})
	}
	return told
}

// After returns the record with the outcome of a message. A failure with a known cause changes
// nothing.
func (r Record) After(s Sent, at time.Time) (next Record, rule table.Rule[State, Act], changed bool) {
	rule, err := Table.Look(s.Target, r.State(), s.Outcome())
	if err != nil {
		panic("notice: the table lacks a case: " + err.Error())
	}
	next = r
	if next.From.IsZero() {
		next.From = s.Began.UTC().Round(0)
	}
	for _, act := range rule.Do {
		switch act {
		case NoteSent:
			next.note(s, at)
		case Forget:
			next.Failure = nil
		case NoteCause:
			if r.Failure != nil && r.Failure.Cause == s.Failure.Cause {
				return r, rule, false
			}
			next.Failure = &Failure{Cause: s.Failure.Cause, WayOut: s.Failure.WayOut, Since: at}
			if r.Failure != nil {
				next.Failure.Since = r.Failure.Since
			}
		}
	}
	return next, rule, true
}

// note adds the notices of a message. It copies slices, because the caller may still use the old
// record.
func (r *Record) note(s Sent, at time.Time) {
	kept := slices.DeleteFunc(slices.Clone(r.Notices), func(t SentNotice) bool {
		again := slices.ContainsFunc(s.Notices, func(m SentNotice) bool { return m.Event == t.Event && m.Cause == t.Cause })
		return again || at.Sub(t.At) > AgeMax
	})
	for _, m := range s.Notices {
		m.At = at
		m.Since = m.Since.UTC().Round(0)
		kept = append(kept, m)
	}
	r.Notices = kept[max(0, len(kept)-noticesMax):]
	old := func(t time.Time) bool { return at.Sub(t) >= hour }
	if r.Sent = append(slices.DeleteFunc(slices.Clone(r.Sent), old), at); len(r.Sent) == 1 {
		r.Counted = 0
	}
	r.Counted += s.Counted
}
