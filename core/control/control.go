// Package control decides whether one agent should run, and records whether it does.
//
// The desired state of an agent and its current state are in one file, agent_state.json. Each side
// writes its own half. A new desired state never interrupts a session: it is recorded and takes
// effect when the session ends. A one-shot ends with its session. The end of a session never
// overwrites a newer desired state.
//
// The one promise: a session starts only if the newest desired state asks for one.
package control

import (
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
)

// The words of seed 000 for desired_state and current_state.
const (
	WordContinuous = "continuous"
	WordPause      = "pause"
	WordRunOnce    = "run_once"
	WordRunCleanup = "run_cleanup"
)

// Control is the state of one agent: its desired state and its current state.
type Control struct {
	Name   string // of the agent, for refusals
	Policy Policy
	Value
}

// Policy is the part of an agent's configuration that control depends on.
type Policy struct {
	Foreign      bool          `json:"foreign,omitempty"`       // the program runs the loop of seed 000 itself
	Program      bool          `json:"program,omitempty"`       // foreign only: Fairlead keeps the program running
	CleanupEvery int           `json:"cleanup_every,omitempty"` // continuous sessions between two cleanup sessions; 0: no cleanup sessions
	FailuresMax  int           `json:"failures_max,omitempty"`  // consecutive failures before the agent stops; C16
	BackoffFirst time.Duration `json:"backoff_first,omitempty"`
	BackoffMax   time.Duration `json:"backoff_max,omitempty"`
}

// Value is everything about control that changes. A change holds the whole new value, so a
// journal can be read without the table that wrote it.
type Value struct {
	State        State     `json:"state"`
	Desired      Desired   `json:"desired"`
	Acked        uint64    `json:"took,omitempty"`          // number of the desired state that the current session follows
	Stamp        time.Time `json:"stamp,omitzero"`          // timestamp of the file; increases with every write
	Failures     int       `json:"failures,omitempty"`      // consecutive failures
	RetryAt      time.Time `json:"retry_at,omitzero"`       // end of the back-off
	SinceCleanup int       `json:"since_cleanup,omitempty"` // continuous sessions since the last cleanup session
	Limit        string    `json:"limit,omitempty"`         // reached by the current session
	Reported     string    `json:"reported,omitempty"`      // current_state as a foreign loop wrote it
	Running      bool      `json:"running,omitempty"`       // Fairlead started the foreign loop's program
	Extra        string    `json:"extra,omitempty"`         // unknown fields of the file, not interpreted; X7
	// when failures ended the desired state; zero: nothing failed, or a newer desired state exists
	GaveUp time.Time `json:"gave_up,omitzero"`
	// what the last command to a foreign loop replaced, or what the loop wrote over it
	Before *Desired `json:"before,omitempty"`
	// older ones that it may still write back, because it was not seen to read a newer one; newest first. Neither is modified: other values
	// share them
	Earlier *Replaced `json:"earlier,omitempty"`
	// how often the loop has written over the current desired state without reading it
	Buried int `json:"buried,omitempty"`
}

// Desired is a desired_state, with its author and reason.
type Desired struct {
	State   string    `json:"desired"`           // as written, also if it is not a known word (C13)
	By      string    `json:"by,omitempty"`      // human, agent or fairlead
	Note    string    `json:"note,omitempty"`    //
	At      time.Time `json:"at,omitzero"`       // when it was set; zero if a rule set it
	N       uint64    `json:"n,omitempty"`       // increases with every desired state; a session records the one that it obeys
	Rested  bool      `json:"rested,omitempty"`  // set by default: the pause of a new, deleted or broken file
	Unknown bool      `json:"unknown,omitempty"` // not a known word; treated as pause
	File    bool      `json:"file,omitempty"`    // read from agent_state.json; By is what the file says and is not verified
	Lock    Lock      `json:"lock,omitempty"`    // who may lift this pause
}

// Author returns human, agent, fairlead or file. It is file for a desired state from the file,
// because its author is not known. It is empty if no desired state was ever set.
func (d Desired) Author() string {
	if d.File {
		return "file"
	}
	return d.By
}

// Replaced contains desired states that were replaced before a foreign loop read them.
type Replaced [3]Desired

// ByFairlead is the author of a pause that a rule set: after a one-shot, a give-up, a limit or a broken file.
const ByFairlead = "fairlead"

// fileBy returns the author as the file names it. The file of seed 000 knows people and the agent's side.
func (d Desired) fileBy() string {
	if d.By == ByFairlead {
		return "agent"
	}
	return d.By
}

// Lock is how a person set a pause, and so who may lift it (SPEC X10).
type Lock string

const (
	Unlocked      Lock = ""      // no person set it
	LockedByFile  Lock = "file"  // a person's write to agent_state.json; no agent lifts it
	LockedByOrder Lock = "order" // the command line, the page or the API; only they lift it, and no file does
)

// Body is what Apply needs.
type Body struct {
	Value     Value    `json:"value"`
	Overtaken *Desired `json:"overtaken,omitempty"` // a newer one replaced it before Fairlead read it; for the record
	Seen      string   `json:"seen,omitempty"`      // identity of the other program's write that this change takes in
	Swapped   string   `json:"swapped,omitempty"`   // the same for a write found in a replaced file
	Sum       string   `json:"sum,omitempty"`       // identity of the new file if this change writes one; the caller sets it
}

// JSONKey is the key of a change in the journal.
func (*Body) JSONKey() string { return "control" }

// Opens returns the kind of session that a change opens; empty: none.
func Opens(ch change.Change) Kind {
	for _, act := range actsOf(ch) {
		if kind, ok := opened[act]; ok {
			return kind
		}
	}
	return ""
}

// Ends reports whether a change ends the current session, because a limit is reached.
func Ends(ch change.Change) bool { return slices.Contains(actsOf(ch), EndSession) }

func actsOf(ch change.Change) []Act { return Table[State(ch.From)][Event(ch.Trigger)].Do }

var opened = map[Act]Kind{OpenSession: Work, OpenCleanup: Cleanup, OpenProgram: Program}

// Kind is the purpose of a session.
type Kind string

const (
	Work        Kind = "session"
	Cleanup     Kind = "cleanup"
	Program     Kind = "foreign"
	ChannelTurn Kind = "turn" // serves channels; no desired state asks for it
	Lead        Kind = "lead" // leads the crew; no desired state asks for it
)

// File is the content of agent_state.json.
type File struct {
	Desired, Current, By, Note string
	Stamp                      time.Time
	Extra                      string
}

// Now is what a decision depends on besides the agent.
type Now struct {
	At        time.Time
	Held      bool
	Stopping  bool
	OverLimit string // name of a daily limit that is used up; empty: none

	// Of a file that was read: a session of an agent in a sandbox that can write it ran when it was written; and a person was asked
	// already about that order.
	InSession, Asked bool
}

// Apply applies a change. It cannot fail and does not use the table.
func (c *Control) Apply(ch change.Change) { c.Value = change.As[Body](ch.Body).Value }

// Current returns current_state, or what the foreign loop last reported.
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

// UnderWay reports whether a session of Fairlead is open.
func (v *Value) UnderWay() bool {
	return v.State == Continuous || v.State == RunOnce || v.State == RunCleanup
}

// Wants reports whether the desired state asks for a session.
func (v *Value) Wants() bool { return v.word() != WordPause }

// word returns the desired state as obeyed: an unknown word is a pause (C13).
func (v *Value) word() string {
	if v.Desired.Unknown || v.Desired.State == "" {
		return WordPause
	}
	return v.Desired.State
}

// File returns the content of agent_state.json. During a hold, a foreign loop reads pause;
// its desired state returns with the release (X8).
func (c *Control) File(held bool) File {
	f := File{Desired: c.Desired.State, Current: c.Current(), By: c.Desired.fileBy(), Note: c.Desired.Note, Stamp: c.Stamp, Extra: c.Extra}
	if c.Desired.N == 0 {
		f.Desired = WordPause // no desired state was ever set
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

// Badge returns the seed's display word for a current_state: RUNNING or IDLE (J5). An
// unknown word counts as pause.
func Badge(current string) string {
	switch current {
	case WordContinuous, WordRunOnce, WordRunCleanup:
		return "RUNNING"
	default:
		return "IDLE"
	}
}

// Retry returns when the agent retries after a failure; zero: no retry is due.
func (c *Control) Retry() time.Time {
	if c.State == BackingOff || c.programDue() {
		return c.RetryAt
	}
	return time.Time{}
}

// begun reports whether a foreign loop has worked on the current one-shot.
func (v *Value) begun() bool {
	return (v.word() == WordRunOnce || v.word() == WordRunCleanup) && v.Desired.N <= v.Acked
}

// Overwritten reports whether a foreign loop keeps writing over an order, so that the order may never be read.
func (v *Value) Overwritten() bool { return v.State == Foreign && v.Buried >= buriedMax }

// programDue reports whether the foreign loop's program should run and does not.
func (c *Control) programDue() bool {
	return c.State == Foreign && c.Policy.Foreign && c.Policy.Program && !c.Running
}

// Decide returns the changes that an input causes, or a refusal. It returns no change if the
// input says what already holds.
func (c *Control) Decide(in Input, now Now) ([]change.Change, error) {
	events, err := c.classify(in, now)
	if err != nil {
		return nil, err
	}
	var changes []change.Change
	for i, event := range events {
		if i > 0 { // each event is decided on the result of the one before
			next := *c
			next.Apply(changes[i-1])
			c = &next
		}
		ch, err := c.take(event, in, now)
		if err != nil {
			return nil, err
		}
		changes = append(changes, ch)
	}
	return changes, nil
}

// take looks up an event and applies the row's acts to a copy of the value.
func (c *Control) take(event Event, in Input, now Now) (change.Change, error) {
	rule, err := Table.Look(c.Name, c.State, event)
	if err != nil {
		return change.Change{}, err
	}
	body := &Body{Value: c.Value}
	switch file, ok := in.(FileRead); {
	case ok && file.Swapped:
		body.Swapped = file.Ident
	case ok:
		body.Seen = file.Ident
	}
	for _, act := range rule.Do {
		c.act(act, event, body, in, now)
	}
	v := &body.Value
	v.State = rule.To
	if !v.UnderWay() {
		v.Limit = ""
	}
	if v.State != Foreign {
		v.Reported, v.Before, v.Earlier, v.Buried = "", nil, nil, 0
	} else if c.State != Foreign {
		v.Acked = 0 // the foreign loop has not started on any desired state
	}
	if (c.State == BackingOff && v.State != BackingOff) || slices.Contains(rule.Do, OpenProgram) {
		v.RetryAt = time.Time{}
	}
	if writes(rule.Do) || (c.Current() != v.Current() && v.State != Foreign) {
		v.Stamp = nextStamp(c.Stamp, now.At, in)
	}
	return change.Change{
		Machine: "control", Entity: "control/" + c.Name, Row: rule.ID, From: string(c.State), To: string(rule.To), Trigger: string(event),
		At: now.At, Body: body,
	}, nil
}

// writes reports whether acts change the content of the file. A foreign loop's file is written
// only by rows that say so, because the foreign loop can overwrite any other write.
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

// stampAheadMax is how far the clock of another writer may be ahead. A timestamp of the year
// 9999 would leave no later timestamp for Fairlead's next write.
const stampAheadMax = 24 * time.Hour

// nextStamp returns the timestamp of a write, in milliseconds. It is later than every
// believable timestamp that the file had.
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

// refuse returns the refusal of a desired state that a limit forbids.
func (c *Control) refuse(event Event, row, reason string) error {
	return &table.Refusal{
		Subject: c.Name, Event: string(event), State: string(c.State), Row: row, Reason: reason,
		Takes: []string{string(WantedPause)},
	}
}

// StillWanted reports whether the newest desired state asks for the session that was opened.
func (v *Value) StillWanted() bool { return v.word() == v.Current() }
