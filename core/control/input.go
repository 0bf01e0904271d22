package control

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Input is something that happened. classify returns the events for it.
type Input = change.Input[Event]

// Subject is what an input is about: the only agent. Starts: it can hold a new desired state.
type Subject = change.Subject[Event]

// Commanded sets the desired state through the API.
type Commanded struct {
	Desired string // one of the four words
	By      string // human or agent
	Note    string
}

// FileRead is what another program wrote into agent_state.json.
type FileRead struct {
	Desired string
	Current string
	By      string
	Note    string
	Stamp   time.Time // zero if the file has no readable timestamp
	Extra   string
	First   bool   // the first look since the daemon started
	Ident   string // identity of the write; it is only compared, so that a write is recorded once
	Swapped bool   // found in a file that Fairlead's write replaced; newer writes may exist

	Wrote time.Time // when it was written, by a clock that its author cannot set; zero: not known

	// Writers are the agents in a sandbox whose sessions can write this file: its own, unless its program runs its loop, and those
	// whose folders contain it.
	Writers []string

	// Unwritten means that the newest desired state was not in the file yet when this was written, so its author cannot
	// have read it.
	Unwritten bool
}

// clockCoarse is how much earlier than in fact a file system may say that a file was written: its clock ticks every 1 to 10 ms.
const clockCoarse = 50 * time.Millisecond

// During reports whether a file was written while a session ran; to is zero for one that has not ended. If it is not known when
// it was written, it was while that session ran that has not ended.
func (in FileRead) During(from, to time.Time) bool {
	if in.Wrote.IsZero() {
		return to.IsZero()
	}
	return !in.Wrote.Add(clockCoarse).Before(from) && (to.IsZero() || !in.Wrote.After(to))
}

// FileGone is a file that does not exist.
type FileGone struct{}

// FileBroken is a file that is not valid agent state. Its bytes were kept in a copy.
type FileBroken struct {
	KeptAs string // name of the copy
	Fault  string
	Torn   bool // found first after a reboot: a torn write, not a desired state
}

// Started is the daemon's start, after files were read and sessions were adopted.
type Started struct{}

// Released is the end of a hold.
type Released struct{}

// Held is the start of a hold.
type Held struct{}

// Stopping is a daemon that was asked to stop (C14).
type Stopping struct{}

// Adopted is a session that outlived a restart of the daemon.
type Adopted struct{}

// LimitHit is a limit of X9 that was reached.
type LimitHit struct{ Limit string }

// Elapsed is the end of a back-off. It names the deadline, so a late timer ends no other back-off.
type Elapsed struct{ RetryAt time.Time }

// Ended is the end of the current session.
type Ended struct {
	Kind    Kind
	Outcome Outcome
	Why     string        // one line from the agent or the system; untrusted
	Ran     time.Duration // duration of the session
	AtStart bool          // found at the daemon's start
	ForGood bool          // of a failure: a retry fails until a person fixes the cause
}

// Outcome is how a session ended.
type Outcome string

const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	CannotStart Outcome = "cannot_start"      // its process never ran
	Lost        Outcome = "lost"              // it ran; how it ended is unknown
	Withdrawn   Outcome = "withdrawn"         // it was no longer wanted when its process was about to start
	Cancelled   Outcome = "cancelled"         // ended by order: a limit, a second stop
	Anew        Outcome = "conversation_lost" // its program had lost the conversation and did nothing; a new one begins
	RateLimited Outcome = "rate_limited"      // a rate limit of the provider ended it; not a failure
)

// Subject of each input is what it is about.
func (Commanded) Subject() Subject  { return Subject{Event: "ordered", Starts: true} }
func (FileRead) Subject() Subject   { return Subject{Event: FileFound, Starts: true} }
func (FileGone) Subject() Subject   { return Subject{Event: FileMissing} }
func (FileBroken) Subject() Subject { return Subject{Event: FileMalformed} }
func (Started) Subject() Subject    { return Subject{Event: DueContinuous} }
func (Released) Subject() Subject   { return Subject{Event: HoldLifted} }
func (Held) Subject() Subject       { return Subject{Event: HoldSet} }
func (Stopping) Subject() Subject   { return Subject{Event: StopAsked} }
func (Adopted) Subject() Subject    { return Subject{Event: SessionAdopted} }
func (LimitHit) Subject() Subject   { return Subject{Event: LimitReached} }
func (Elapsed) Subject() Subject    { return Subject{Event: BackoffElapsed} }
func (Ended) Subject() Subject      { return Subject{Event: EndedGoOn} }
