// Package control decides whether one agent should run, and knows whether it does.
//
// A person's wish stands in a file, and so does what the agent is doing; each side
// writes its own half. A session that has begun is never cut short by a wish: the
// wish is noted and obeyed when the session ends. A one-shot is spent by its
// session, and a newer wish is never overwritten by the end of an older one.
//
// The one promise: nothing is started that the newest wish does not ask for.
package control

import (
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
)

// The four words of seed 000, for desired_state and current_state alike.
const (
	WordContinuous = "continuous"
	WordPause      = "pause"
	WordRunOnce    = "run_once"
	WordRunCleanup = "run_cleanup"
)

// Control is one agent's half of the truth: what is wanted of it, and what it does.
type Control struct {
	Name   string // of the agent, for refusals
	Policy Policy
	Value
}

// Policy is what the configuration says of an agent's control.
type Policy struct {
	Foreign      bool          `json:"foreign,omitempty"`       // it runs the seed's loop itself
	Program      bool          `json:"program,omitempty"`       // and we keep its program running
	CleanupEvery int           `json:"cleanup_every,omitempty"` // continuous sessions; 0: never
	FailuresMax  int           `json:"failures_max,omitempty"`  // in a row; C16
	BackoffFirst time.Duration `json:"backoff_first,omitempty"`
	BackoffMax   time.Duration `json:"backoff_max,omitempty"`
}

// Value is everything about control that changes. A change holds the whole value as
// it is afterwards, so that a journal can be read without the table that wrote it.
type Value struct {
	State        State     `json:"state"`
	Desired      Desired   `json:"wish"`
	Took         uint64    `json:"took,omitempty"`          // number of the wish that the session under way obeys
	Stamp        time.Time `json:"stamp,omitzero"`          // the file's timestamp; grows with every write
	Failures     int       `json:"failures,omitempty"`      // in a row
	RetryAt      time.Time `json:"retry_at,omitzero"`       // backing off until then
	SinceCleanup int       `json:"since_cleanup,omitempty"` // continuous sessions since the last cleanup
	Limit        string    `json:"limit,omitempty"`         // reached by the session under way
	Reported     string    `json:"reported,omitempty"`      // current_state as a foreign loop wrote it
	Running      bool      `json:"running,omitempty"`       // the foreign loop's program was started by us
	Extra        string    `json:"extra,omitempty"`         // unknown fields of the file, opaque here; X7
	Before       Desired   `json:"before,omitzero"`         // the wish that our last command to a foreign loop replaced
}

// Desired is what is wanted: desired_state with who set it and why.
type Desired struct {
	State   string    `json:"desired"`           // as written, even where it is no word we know (C13)
	By      string    `json:"by,omitempty"`      // human or agent
	Note    string    `json:"note,omitempty"`    //
	At      time.Time `json:"at,omitzero"`       // when somebody wished it; zero where a rule did
	N       uint64    `json:"n,omitempty"`       // grows with every wish; a session remembers the one that it obeys
	Rested  bool      `json:"rested,omitempty"`  // nobody asked: the pause of a new, a deleted or a broken file
	Unknown bool      `json:"unknown,omitempty"` // treated as pause
}

// Change is one rule taken for one agent.
type Change struct {
	Row     string
	From    State
	To      State
	Trigger Event
	Value   Value
	Open    Kind   // a session of this kind is to be opened; empty: none
	End     string // the session under way is to be ended, and why; empty: no

	// Overtaken is a wish that somebody else's newer one had gone over before it was seen: it
	// changes nothing, and is on record.
	Overtaken *Desired
}

// Kind is what a session is for.
type Kind string

const (
	Work        Kind = "session"
	Cleanup     Kind = "cleanup"
	Program     Kind = "foreign"
	ChannelTurn Kind = "turn" // of a channel: no wish asks for it
	Lead        Kind = "lead" // answers for the team: no wish asks for it either
)

// File is what agent_state.json is to say.
type File struct {
	Desired, Current, By, Note string
	Stamp                      time.Time
	Extra                      string
}

// Now is what a decision may know of the world beside the agent itself.
type Now struct {
	At        time.Time
	Held      bool
	Stopping  bool
	OverLimit string // a limit of the day that is used up; empty: none
}

// Apply makes a change true. It cannot fail, and it does not look at the table.
func (c *Control) Apply(ch Change) { c.Value = ch.Value }

// Current is current_state, or what the foreign loop last reported.
func (v *Value) Current() string {
	switch v.State {
	case Continuous, BackingOff:
		return WordContinuous
	case RunOnce:
		return WordRunOnce
	case RunCleanup:
		return WordRunCleanup
	case Foreign:
		return v.Reported
	default:
		return WordPause
	}
}

// UnderWay says whether a session of ours has been opened and has not ended.
func (v *Value) UnderWay() bool {
	return v.State == Continuous || v.State == RunOnce || v.State == RunCleanup
}

// Wants says whether the wish as it stands asks for a session of some kind.
func (v *Value) Wants() bool { return v.word() != WordPause }

// word is the wish as it is obeyed: what is not known is a pause (C13).
func (v *Value) word() string {
	if v.Desired.Unknown || v.Desired.State == "" {
		return WordPause
	}
	return v.Desired.State
}

// File is the projection of the agent's control. A foreign loop that is held reads pause;
// what is wanted of it comes back with the release (X8).
func (c *Control) File(held bool) File {
	f := File{Desired: c.Desired.State, Current: c.Current(), By: c.Desired.By, Note: c.Desired.Note, Stamp: c.Stamp, Extra: c.Extra}
	if c.Desired.N == 0 {
		f.Desired = WordPause // nobody ever asked for anything
	}
	if held && c.State == Foreign && c.Wants() {
		f.Note = heldNote(f.Desired)
		f.Desired = WordPause
	}
	return f
}

func heldNote(desired string) string {
	return "the team is held; " + desired + " waits for the release"
}

// Badge is the seed's word for a current_state: RUNNING or IDLE, from it alone (J5). What
// is no word of the seed is treated as pause.
func Badge(current string) string {
	switch current {
	case WordContinuous, WordRunOnce, WordRunCleanup:
		return "RUNNING"
	default:
		return "IDLE"
	}
}

// Retry is when something that failed is to be tried again; zero: nothing waits for that.
func (c *Control) Retry() time.Time {
	if c.State == BackingOff || c.programDue() {
		return c.RetryAt
	}
	return time.Time{}
}

// begun says whether a foreign loop was seen at work on the one-shot that stands.
func (v *Value) begun() bool {
	return (v.word() == WordRunOnce || v.word() == WordRunCleanup) && v.Desired.N <= v.Took
}

// programDue says whether a foreign loop's program ought to run and does not.
func (c *Control) programDue() bool {
	return c.State == Foreign && c.Policy.Foreign && c.Policy.Program && !c.Running
}

// Decide says what an input leads to, or why it is refused. No change at all is an
// answer too: what was said is so already.
func (c *Control) Decide(in Input, now Now) ([]Change, error) {
	events, err := c.classify(in, now)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for i, event := range events {
		if i > 0 { // it is judged on what the one before it made
			next := *c
			next.Apply(changes[i-1])
			c = &next
		}
		change, err := c.take(event, in, now)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// take looks the event up and carries its acts out on a copy of the value.
func (c *Control) take(event Event, in Input, now Now) (Change, error) {
	rule, err := Table.Look(c.Name, c.State, event)
	if err != nil {
		return Change{}, err
	}
	ch := Change{Row: rule.ID, From: c.State, To: rule.To, Trigger: event, Value: c.Value}
	for _, act := range rule.Do {
		c.act(act, &ch, in, now)
	}
	v := &ch.Value
	v.State = rule.To
	if !v.UnderWay() {
		v.Limit = ""
	}
	if v.State != Foreign {
		v.Reported, v.Before = "", Desired{}
	} else if c.State != Foreign {
		v.Took = 0 // whatever is wanted still, the foreign loop has not begun
	}
	if (c.State == BackingOff && v.State != BackingOff) || ch.Open == Program {
		v.RetryAt = time.Time{}
	}
	if writes(rule.Do) || (c.Current() != v.Current() && v.State != Foreign) {
		v.Stamp = nextStamp(c.Stamp, now.At, in)
	}
	return ch, nil
}

// writes says whether acts change what the file is to say. A foreign loop's file is
// written only where a rule says so: every other write of ours is one that it can bury.
func writes(acts []Act) bool {
	for _, act := range acts {
		switch act {
		case Rewrite, SpendDesired, RestDesired:
			return true
		case TakeDesired:
			if !slices.Contains(acts, TakeReport) {
				return true
			}
		default:
		}
	}
	return false
}

// stampAheadMax is how far another writer's clock may be ahead for us to follow it. A
// file that claims to be from the year 9999 would otherwise leave no room after it.
const stampAheadMax = 24 * time.Hour

// nextStamp is the time of a write, in milliseconds, later than every timestamp that the
// file had and that can be believed.
func nextStamp(last, at time.Time, in Input) time.Time {
	stamp := at.UTC().Truncate(time.Millisecond)
	if file, ok := in.(FileRead); ok && !stamp.After(file.Stamp) && believable(file.Stamp, at) {
		stamp = file.Stamp.UTC().Truncate(time.Millisecond).Add(time.Millisecond)
	}
	if !stamp.After(last) {
		stamp = last.Add(time.Millisecond)
	}
	return stamp
}

func believable(stamp, at time.Time) bool { return stamp.Before(at.Add(stampAheadMax)) }

// refuse is the refusal of a wish that a limit forbids.
func (c *Control) refuse(event Event, row, reason string) error {
	return &machine.Refusal{
		Subject: c.Name, Event: string(event), State: string(c.State), Row: row, Reason: reason,
		Takes: []string{string(WantedPause)},
	}
}

// StillWanted says whether the session that was opened is what the newest wish asks for.
func (v *Value) StillWanted() bool { return v.word() == v.Current() }
