package workflow

import "time"

// Input is something that happened to a run. What is about an attempt or a question names its
// lease.
type Input interface{ input() }

// RunAsked starts a run. The plan and the options have been checked.
type RunAsked struct {
	ID                                   RunID
	Plan                                 Plan
	Options                              Options
	RepoDir, ReportsDir, ManualInputsDir string
	By                                   string
}

// StateFound is a run_state.json of another program, or of ours in a place that does not know
// the run, with the plan that it is of. Steps are by id; what the file does not have is
// PENDING. Times, paths and texts are as the file says.
type StateFound struct {
	RunAsked
	Extra     string    // unknown fields of the file, opaque here (X7)
	CreatedAt time.Time // zero: now
	Steps     map[StepID]Progress
}

// PauseAsked stops steps from starting; what is under way finishes. ReleaseAsked ends that.
type (
	PauseAsked struct {
		By, Why string // Why is for people
		Reason  PauseReason
	}
	ReleaseAsked struct {
		By, Why     string
		LimitLifted bool // a limit paused the run, and is not reached any more
	}
)

// CancelAsked ends a run, or with Step that step alone where it is RUNNING (W14).
type CancelAsked struct {
	Step    StepID // empty: the run
	By, Why string
}

// ResumeAsked lets a run that came to rest go on: from a step (--start-at-step, W12), or with
// its failed steps from nought.
type ResumeAsked struct {
	From    StepID // empty: whatever failed
	By      string
	Plan    *Plan    // the workflow as it is now, where it was read again; nil: as it was
	Options *Options // the flags as they are now; nil: as they were
}

// GatesSeen is the gate-state file as it was read: the names that are true.
type GatesSeen struct{ Open []string }

// SkipsDue lets what has become pointless be skipped. It is asked for by Todo.
type SkipsDue struct{}

// Verdict is what came of a condition that somebody else evaluated.
type Verdict struct {
	Holds bool
	Fault string // it cannot be evaluated, and why; empty: it can
}

// WhenWeighed is the verdict on a step's `when`. It is asked for by Todo.
type WhenWeighed struct {
	Step      StepID
	Iteration int
	Verdict   Verdict
}

// ItemsSeen are the items of a loop that takes them from elsewhere. It is asked for by Todo.
type ItemsSeen struct {
	Step      StepID
	Iteration int
	Items     []string // JSON texts
	Fault     string   // they cannot be read, and why
}

// StartAsked begins a step that Todo says may begin: there is a place for it (W2).
type StartAsked struct{ Step StepID }

// ProcessAdopted is a step's process that outlived the runner (W13).
type ProcessAdopted struct{ Lease Lease }

// StartWithdrawn is a step whose process was never started: the last look forbade it.
type StartWithdrawn struct {
	Lease Lease
	Why   string
}

// ProcessLost is a step whose process is gone without anybody having seen its end, and without
// a report (W13).
type ProcessLost struct {
	Lease Lease
	Why   string
}

// ProviderBusy is a step whose process ended since the provider of its model takes no more for a while.
type ProviderBusy struct {
	Lease Lease
	Why   string
}

// ProcessEnded is the end of a step's process. Where the attempt is still on there is no good
// report, and Why says what is wrong: the exit status, or the report's fault in quotes.
type ProcessEnded struct {
	Lease Lease
	Why   string
}

// ReportRead is a report that is whole and is about this lease.
type ReportRead struct {
	Lease  Lease
	Report Report
	Until  *Verdict // of the loop's until_condition, where the step has one
	Over   bool     // the process has ended too
}

// Report is what a step says of itself (SPEC Workflow).
type Report struct {
	Failed     bool   // status FAILED; else COMPLETED
	GateFailed bool   // gate_failure
	Why        string // of either, in the report's words
	Facts
}

// LimitHit is a limit of the step's agent or of the team that was reached (X9).
type LimitHit struct {
	Lease Lease
	Limit string
}

// AnswerRead is what people say to a step that waits for them (W9, W10).
type AnswerRead struct {
	Lease    Lease
	Rejected bool
	By, Note string
	Fault    string   // the input is not valid, and why
	Until    *Verdict // as with a report: approval may end a loop
	Place    bool     // there is a place for the agent at once, where it works after the answer
}

// TimerFired is a deadline that has passed, as Deadline named it.
type TimerFired struct{ About Deadline }

func (RunAsked) input()       {}
func (StateFound) input()     {}
func (PauseAsked) input()     {}
func (ReleaseAsked) input()   {}
func (CancelAsked) input()    {}
func (ResumeAsked) input()    {}
func (GatesSeen) input()      {}
func (SkipsDue) input()       {}
func (WhenWeighed) input()    {}
func (ItemsSeen) input()      {}
func (StartAsked) input()     {}
func (ProcessAdopted) input() {}
func (StartWithdrawn) input() {}
func (ProcessLost) input()    {}
func (ProviderBusy) input()   {}
func (ProcessEnded) input()   {}
func (ReportRead) input()     {}
func (LimitHit) input()       {}
func (AnswerRead) input()     {}
func (TimerFired) input()     {}
