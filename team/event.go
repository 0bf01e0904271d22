package team

import (
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// Actor is who is behind an event.
type Actor struct {
	Kind string `json:"kind"` // human, agent or engine
	ID   string `json:"id"`
}

// Event is something that happened, with when and by whom.
type Event struct {
	At    time.Time
	Actor Actor
	Agent string // whom it is about; empty: the team
	What  any    // a control.Input, or one of the types below
}

// Configured is the configuration as read at the daemon's start.
type Configured struct {
	Limits Limits
	Agents map[string]Settings
}

// DaemonStarted begins an epoch. Sessions and files are looked at after it.
type DaemonStarted struct{ BootID string }

// HoldAsked and ReleaseAsked are the team's switch.
type (
	HoldAsked    struct{ Note string }
	ReleaseAsked struct{ Note string }
)

// StopAsked asks the daemon to stop: gracefully, or now.
type StopAsked struct{ Now bool }

// SessionStarted is a process that was seen to run.
type SessionStarted struct {
	Session string
	PID     int
}

// SessionAdopted is a process that outlived a restart of the daemon.
type SessionAdopted struct {
	Session string
	PID     int
}

// SessionReported is what an agent said that decisions depend on. Offset orders reports:
// one that is not beyond the last is a repetition after a crash.
type SessionReported struct {
	Session string
	Offset  int64
	Usage   Usage // since the last report; Day is not looked at
	Stop    *Stop
}

// SessionEnded is the end of a session, however it came.
type SessionEnded struct {
	Session string
	Outcome control.Outcome
	Why     string
	Bytes   int64
	AtStart bool // found when the daemon started
}

// TimerFired is a deadline that has passed; what it was about is read off the team.
type TimerFired struct{}
