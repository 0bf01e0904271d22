package team

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Event is something that happened, with its time and actor.
type Event struct {
	At    time.Time
	Actor change.Actor
	Agent string // the agent concerned; empty: the team, or a run
	Run   string // the run concerned; empty: none
	What  any    // a control.Input of an agent, a workflow.Input of a run, a channel.Input, a crew.Input, or one of the types below
	Text  string // the text of a channel.HumanSpoke or channel.Said; the journal stores it with its number
}

// Input is an event about one session, of an agent or of a step.
type Input = change.Input[session.Event]

// Subject is what an event about a session is about.
type Subject = change.Subject[session.Event]

func ofSession(event session.Event, id string) Subject { return Subject{Event: event, Session: id} }

// Subject of each event about a session is that session.
func (in SessionStarted) Subject() Subject    { return ofSession(session.Started, in.Session) }
func (in TokenGiven) Subject() Subject        { return ofSession(session.TokenGiven, in.Session) }
func (in ConversationNamed) Subject() Subject { return ofSession(session.Named, in.Session) }
func (in StatusSaid) Subject() Subject        { return ofSession(session.StatusSaid, in.Session) }
func (in PersonWrote) Subject() Subject       { return ofSession(session.PersonWrote, in.Session) }
func (in TellGiven) Subject() Subject         { return ofSession(session.TellGiven, in.Session) }
func (in HostsContacted) Subject() Subject    { return ofSession(session.Contacted, in.Session) }
func (in Delivered) Subject() Subject         { return ofSession(session.ActionDelivered, in.Session) }
func (in SessionAdopted) Subject() Subject    { return ofSession(session.Adopted, in.Session) }
func (in SessionReported) Subject() Subject   { return ofSession(session.Reported, in.Session) }

func (in PlaceAsked) Subject() Subject {
	return ofSession(session.Event(host.SessionPlaced), in.Session)
}

func (in SessionEnded) Subject() Subject {
	switch in.Outcome {
	case control.Lost:
		return ofSession(session.Lost, in.Session)
	case control.Withdrawn:
		return ofSession(session.Withdrawn, in.Session)
	default:
		return ofSession(session.Ended, in.Session)
	}
}

// Configured is the configuration as read when the daemon starts.
type Configured struct {
	Limits Limits
	Agents map[string]Settings
	Places int // places in the worker pool, for all runs together (number of CPUs); 0: as many as the runs' own limits allow

	Turns    map[string]channel.AgentSettings // by agent
	Channels map[string]Channel               // by name

	Lead crew.LeadConfigured
}

// Channel is a channel's configuration in fairlead.yaml.
type Channel struct {
	Settings channel.Settings
	Agents   []string // in the order of the first round
}

// DaemonStarted begins an epoch. Sessions and files are examined after it.
type DaemonStarted struct {
	BootID string
	Leader string // the host, if another one can lead, too
	Skip   uint64 // epochs to leave out
	Root   string // the folder of the repository there
	Config string // the identity of the fairlead.yaml there
}

// HoldAsked and ReleaseAsked set and release the team's hold.
type (
	HoldAsked    struct{ Note string }
	ReleaseAsked struct{ Note string }
)

// StopAsked asks the daemon to stop: gracefully, or now.
type StopAsked struct{ Now bool }

// SessionStarted reports a running process.
type SessionStarted struct {
	Session string
	PID     int
	Input   int64 // bytes of input with which it was started

	Launch *LaunchRecord // how it was started; nil: unknown
}

// TokenGiven is the hash of the token that a session's process is about to be started with.
type TokenGiven struct{ Session, Hash string }

// ConversationNamed is a program's name for the conversation of a session. The program may change it
// later.
type ConversationNamed struct {
	Session string
	Conversed
}

// StatusSaid is an agent's own status, in one line for people.
type StatusSaid struct{ Session, Text string }

// HostsContacted are the hosts of the network that a session's program reached, or was refused, since the last such event.
type HostsContacted struct {
	Session string
	Hosts   []Contact
}

// LimitLifted ends an agent's wait for a rate limit early, at a person's request.
type LimitLifted struct{}

// EndAsked ends an agent's running session at a person's request: with its grace period or, at the
// second request, without. It does not change the agent's desired state.
type EndAsked struct{}

// Delivered reports that a channel's action was written to a session's input. Input is the offset
// after it: after a crash, what was written before is not written again.
type Delivered struct {
	Session string
	Action  channel.Action
	Input   int64
}

// SessionAdopted is a process that outlived a restart of the daemon.
type SessionAdopted struct {
	Session string
	PID     int
	Input   int64 // as in SessionStarted, if its start was not seen
}

// SessionReported is an agent's output on which decisions depend. Reports are ordered by Offset: one
// that is not beyond the last is a repetition after a crash.
type SessionReported struct {
	Session   string
	Offset    int64
	Usage     change.Usage // since the last report
	Models    []DayUsage
	Context   int // how full the model's context is, in percent; 0: no news
	Stop      *Stop
	RateLimit *RateLimit // the provider's rate limit; nil: no change
	Provider  *Provider  // that it does not answer, or answers again; nil: no change

	Over  bool  // it has answered the last delivery of a channel,
	Heard int64 // up to this many bytes of its input; 0: all

	Held string // the turn word at the end of its answer so far, which does not count yet
}

// SessionEnded is the end of a session for any reason.
type SessionEnded struct {
	Session string
	Outcome control.Outcome
	Why     string
	Exit    session.Exit // how its process ended; zero: there was none
	AtStart bool         // found when the daemon started
	ForGood bool         // of a failure: a retry fails until a person fixes the cause

	// Reason replaces that of the terminal event: its answer is not a success; empty: that one counts.
	Reason string

	Until time.Time // for the outcome control.RateLimited: the end of the rate limit; zero: unknown

	// For the session of a step: the valid report found at its end, or what is wrong with it. If both
	// are empty, there was no report.
	Report *StepReport
	Fault  string

	// A signal that Fairlead did not order has ended a step of Fairlead's own. Without a report that is no verdict on what
	// the step was to do.
	NoVerdict bool
}

// StepReport is a complete report about the step to whose session it belongs.
type StepReport struct {
	Report workflow.Report
	Until  *workflow.Verdict // result of the loop's until_condition if the step has one
}

// RunBegun starts or resumes a run with these settings: Asked is a workflow.RunAsked, a StateFound
// or a ResumeAsked.
type RunBegun struct {
	Asked    workflow.Input
	Settings RunSettings
	Freed    bool // an archived run of this name has no folder any more; Asked has its last lease

	Task *task.Plan // the run is a task that begins; nil: it is not
}

// RunArchived removes an ended run from the value. It stays in the journal, and its name stays
// reserved while it has a folder (X5).
type RunArchived struct{}

// RunRecalled restores an archived run from the journal, so that it can be resumed.
type RunRecalled struct {
	Run      *workflow.Run
	Settings RunSettings
	Changes  uint64 // RunNote.Changes

	Task *task.Task // nil: it is not a task
}

// TimerFired is a deadline that has passed; its subject is derived from the team.
type TimerFired struct{}
