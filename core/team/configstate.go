package team

import "time"

// ConfigState is what the journal knows of fairlead.yaml and the files that it includes.
//
// A sandboxed agent that may write the file could switch its own sandbox off in it. So the journal holds the sum of the configuration in
// force, and whether such an agent ran since the files were last known to be that one. What such an agent may have written is obeyed only
// after a person has confirmed it.
type ConfigState struct {
	Sum string `json:"sum,omitempty"` // of the configuration in force; empty: none was confirmed yet

	// Runs counts the sessions of sandboxed agents that may write these files. Seen is its value when the files last were the
	// confirmed ones and no such session was open.
	Runs uint64 `json:"runs,omitempty"`
	Seen uint64 `json:"seen,omitempty"`

	Found string    `json:"found,omitempty"` // of what the files hold instead and no person has confirmed
	At    time.Time `json:"at,omitzero"`     // when Found was found
}

// Open reports whether such an agent may have written the files since they last were the confirmed ones. Otherwise a person did.
func (s ConfigState) Open() bool { return s.Runs > s.Seen }

// MayObey reports whether files with this sum are obeyed without a question.
func (s ConfigState) MayObey(sum string) bool { return s.Sum == "" || s.Sum == sum || !s.Open() }

// Events of the configuration. Runs is ConfigState.Runs from before the files were read.
type (
	// ConfigConfirmed makes the files with this sum the configuration in force.
	ConfigConfirmed struct {
		Sum  string
		Runs uint64
	}
	// ConfigExposed says that a session is about to start that may write the files.
	ConfigExposed struct{ Session string }
	// ConfigSeen is what the files hold.
	ConfigSeen struct {
		Sum  string
		Runs uint64
	}
)

// ConfigEvent is an event of the configuration.
type ConfigEvent interface {
	next(s ConfigState, open bool, at time.Time) ConfigState
	words() (row, trigger string)
}

// decide returns the state after an event. open says that a session runs, or is about to start, that may write the files. row is
// empty if nothing changes.
func (s ConfigState) decide(e ConfigEvent, open bool, at time.Time) (next ConfigState, row, trigger string) {
	if next = e.next(s, open, at); next != s {
		row, trigger = e.words()
	}
	return next, row, trigger
}

func (e ConfigConfirmed) words() (row, trigger string) { return "E4", "config_confirmed" }
func (e ConfigExposed) words() (row, trigger string)   { return "E5", "config_exposed" }
func (e ConfigSeen) words() (row, trigger string)      { return "E6", "config_seen" }

func (e ConfigExposed) next(s ConfigState, _ bool, _ time.Time) ConfigState {
	s.Runs++
	return s
}

func (e ConfigConfirmed) next(s ConfigState, open bool, _ time.Time) ConfigState {
	s.Sum = e.Sum
	return s.matches(e.Runs, open)
}

func (e ConfigSeen) next(s ConfigState, open bool, at time.Time) ConfigState {
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
func (s ConfigState) matches(runs uint64, open bool) ConfigState {
	s.Found, s.At = "", time.Time{}
	if runs == s.Runs && !open {
		s.Seen = runs
	}
	return s
}
