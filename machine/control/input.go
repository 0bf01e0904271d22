package control

import "time"

// Input is something that happened, as the world tells it; classify gives it the name
// under which the table knows it.
type Input interface{ input() }

// Commanded is a wish through one of our own faces.
type Commanded struct {
	Desired string // one of the four words
	By      string // human or agent
	Note    string
}

// FileRead is what somebody else wrote into agent_state.json.
type FileRead struct {
	Desired string
	Current string
	By      string
	Note    string
	Stamp   time.Time // zero where the file has none that can be read
	Extra   string
	First   bool   // the first look since the daemon started
	Ident   string // which write this was; opaque here, kept so that it is not taken in twice
	Swapped bool   // found in a file that a write of ours had replaced: newer ones may have come since
}

// FileGone is a file that is not there.
type FileGone struct{}

// FileBroken is a file that is no agent state; its bytes were kept aside.
type FileBroken struct {
	KeptAs string // the name of the copy
	Fault  string
	Torn   bool // met first after a reboot: a torn write, not a wish
}

// Started is the daemon's start, after the file was read and sessions were adopted.
type Started struct{}

// Released is the end of a hold.
type Released struct{}

// Held is the beginning of a hold.
type Held struct{}

// Stopping is a daemon that was asked to stop (C14).
type Stopping struct{}

// Adopted is a session that outlived a restart of the daemon.
type Adopted struct{}

// LimitHit is a limit of X9 that was reached.
type LimitHit struct{ Limit string }

// Elapsed is a back-off that is over. It names the deadline, so that a late timer ends no other one.
type Elapsed struct{ RetryAt time.Time }

// Ended is the end of the session under way.
type Ended struct {
	Kind    Kind
	Outcome Outcome
	Why     string        // one line; from the agent or the system, so not to be trusted
	Ran     time.Duration // how long
	AtStart bool          // found at the daemon's start
	ForGood bool          // of a failure: another try will not help before somebody has seen to it
}

// Outcome is how a session ended.
type Outcome string

const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	CannotStart Outcome = "cannot_start" // its process never ran
	Lost        Outcome = "lost"         // it ran, and nobody knows how it ended
	Withdrawn   Outcome = "withdrawn"    // it was not wanted any more before its process ran
	Cancelled   Outcome = "cancelled"    // ended by order: a limit, a second stop
	RateLimited Outcome = "rate_limited" // its provider takes no more for a while: nobody has failed
)

func (Commanded) input()  {}
func (FileRead) input()   {}
func (FileGone) input()   {}
func (FileBroken) input() {}
func (Started) input()    {}
func (Released) input()   {}
func (Held) input()       {}
func (Stopping) input()   {}
func (Adopted) input()    {}
func (LimitHit) input()   {}
func (Elapsed) input()    {}
func (Ended) input()      {}
