package team

import (
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/machine/workflow"
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
	Agent string // whom it is about; empty: the team, or a run
	Run   string // the run that it is about; empty: none
	What  any    // a control.Input of an agent, a workflow.Input of a run, a channel.Input, a crew.Input, or one of the types below
	Text  string // what a channel.HumanSpoke or channel.Said says; it goes into the journal with its number
}

// Configured is the configuration as read at the daemon's start.
type Configured struct {
	Limits Limits
	Agents map[string]Settings
	Places int // of the bench, for all runs together: how many CPUs there are; 0: as many as the runs' own limits allow

	Turns    map[string]channel.AgentSettings // by agent
	Channels map[string]Channel               // by name

	Lead crew.LeadConfigured
}

// Channel is a channel as fairlead.yaml has it.
type Channel struct {
	Settings channel.Settings
	Agents   []string // in the order of the first round
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
	Input   int64 // bytes of input that it was started with

	Launch *LaunchRecord // how; nil: not known
}

// ConversationNamed is what a program says of the conversation that it holds in this session. It may
// say it again, with another name.
type ConversationNamed struct {
	Session string
	Conversed
}

// StatusSaid is what an agent says of itself, in one line for people.
type StatusSaid struct{ Session, Text string }

// LimitLifted has an agent whose provider had it wait be started again before its time: a person knows
// better, or pays more.
type LimitLifted struct{}

// EndAsked has the session of an agent that runs now ended by a person's word: with its grace, and
// asked once more without. It says nothing of what is wanted of the agent.
type EndAsked struct{}

// Delivered is an errand of a channel that was written into a session's input. Input is the
// place behind it: what is written there already after a crash is not written again.
type Delivered struct {
	Session string
	Action  channel.Action
	Input   int64
}

// SessionAdopted is a process that outlived a restart of the daemon.
type SessionAdopted struct {
	Session string
	PID     int
	Input   int64 // as SessionStarted has it, where nobody saw it start
}

// SessionReported is what an agent said that decisions depend on. Offset orders reports:
// one that is not beyond the last is a repetition after a crash.
type SessionReported struct {
	Session   string
	Offset    int64
	Usage     Usage // since the last report; Day is not looked at
	Stop      *Stop
	RateLimit *RateLimit // what its provider said; nil: nothing new

	Over  bool  // what it was told last in a channel it has answered,
	Heard int64 // as far as this many bytes of its input go; 0: all
}

// SessionEnded is the end of a session, however it came.
type SessionEnded struct {
	Session string
	Outcome control.Outcome
	Why     string
	Bytes   int64
	AtStart bool // found when the daemon started
	ForGood bool // of a failure: another try will not help before somebody has seen to it

	Until time.Time // of the outcome control.RateLimited: so long the provider takes nothing; zero: it did not say

	// Of a session that a step asked for: the report that was found at its end and is good, or
	// what is wrong with it, in words. Neither: there is none.
	Report *StepReport
	Fault  string
}

// StepReport is a report that is whole and is about the step whose session it came with.
type StepReport struct {
	Report workflow.Report
	Until  *workflow.Verdict // of the loop's until_condition, where the step has one
}

// RunBegun starts a run, or has it go on, under these settings: Asked is a workflow.RunAsked,
// a StateFound or a ResumeAsked.
type RunBegun struct {
	Asked    workflow.Input
	Settings RunSettings
}

// RunArchived takes a run that is over out of the value. It stays in the journal, and its name
// stays taken (X5).
type RunArchived struct{}

// RunRecalled brings an archived run back, as whoever read the journal put it together, so
// that it can be resumed.
type RunRecalled struct {
	Run      *workflow.Run
	Settings RunSettings
}

// TimerFired is a deadline that has passed; what it was about is read off the team.
type TimerFired struct{}
