// Package governing decides which fairlead.yaml is obeyed.
//
// A sandboxed agent that may write the file could switch its own sandbox off in it. So the journal holds the sum of the
// configuration in force, and whether such an agent ran since the files were last known to be that one.
//
// The one promise: what such an agent may have written is obeyed only after a person has confirmed it.
package governing

import "time"

// State is what the journal knows of fairlead.yaml and the files that it includes.
type State struct {
	Sum string `json:"sum,omitempty"` // of the configuration in force; empty: none was confirmed yet

	// Runs counts the sessions of sandboxed agents that may write these files. Seen is its value when the files last were the
	// confirmed ones and no such session was open.
	Runs uint64 `json:"runs,omitempty"`
	Seen uint64 `json:"seen,omitempty"`

	Found string    `json:"found,omitempty"` // of what the files hold instead and no person has confirmed
	At    time.Time `json:"at,omitzero"`     // when Found was found
}

// Open reports whether such an agent may have written the files since they last were the confirmed ones. Otherwise a person did.
func (s State) Open() bool { return s.Runs > s.Seen }

// MayObey reports whether files with this sum are obeyed without a question.
func (s State) MayObey(sum string) bool { return s.Sum == "" || s.Sum == sum || !s.Open() }

// The events. Runs is State.Runs from before the files were read.
type (
	// Confirmed makes the files with this sum the configuration in force.
	Confirmed struct {
		Sum  string
		Runs uint64
	}
	// Exposed says that a session is about to start that may write the files.
	Exposed struct{ Session string }
	// Seen is what the files hold.
	Seen struct {
		Sum  string
		Runs uint64
	}
)

// Event is one of the events.
type Event interface {
	next(s State, open bool, at time.Time) State
	words() (row, trigger string)
}

// Decide returns the state after an event. open says that a session runs, or is about to start, that may write the files. row is
// empty if nothing changes.
func Decide(s State, e Event, open bool, at time.Time) (next State, row, trigger string) {
	if next = e.next(s, open, at); next != s {
		row, trigger = e.words()
	}
	return next, row, trigger
}

func (e Confirmed) words() (row, trigger string) { return "E4", "config_confirmed" }
func (e Exposed) words() (row, trigger string)   { return "E5", "config_exposed" }
func (e Seen) words() (row, trigger string)      { return "E6", "config_seen" }

func (e Exposed) next(s State, _ bool, _ time.Time) State {
	s.Runs++
	return s
}

func (e Confirmed) next(s State, open bool, _ time.Time) State {
	s.Sum = e.Sum
	return s.matches(e.Runs, open)
}

func (e Seen) next(s State, open bool, at time.Time) State {
	switch {
	case s.Sum == e.Sum:
		return s.matches(e.Runs, open)
	case !s.Open():
		s.Found, s.At = "", time.Time{}
	case s.Found != e.Sum:
		s.Found, s.At = e.Sum, at
	}
	return s
}

// matches is the state after the files were read and are the ones in force. An agent that still runs, or ran since they were read, may
// have written them.
func (s State) matches(runs uint64, open bool) State {
	s.Found, s.At = "", time.Time{}
	if runs == s.Runs && !open {
		s.Seen = runs
	}
	return s
}
