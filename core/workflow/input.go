package workflow

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Input is an event of a run. Input about an attempt or a question names its lease.
type Input = change.Input[Event]

// Subject is what an input is about: Entity is the id of a step; empty: the run. If it starts a run, Entity is the run's id.
type Subject = change.Subject[Event]

func aboutStep(event Event, step StepID) Subject { return Subject{Event: event, Entity: string(step)} }

// RunAsked starts a run. The plan and the options were checked before.
type RunAsked struct {
	ID                                   RunID
	Plan                                 Plan
	Options                              Options
	RepoDir, ReportsDir, ManualInputsDir string
	By                                   string
	LeaseFloor                           uint64 // the last lease of an earlier run of this name: its input must not reach this one
}

// StateFound is a run_state.json of another program, or of a Fairlead whose journal is missing, with
// its plan. Steps are identified by ID; steps that the file lacks are PENDING. Times, paths and
// texts are taken from the file.
type StateFound struct {
	RunAsked
	Extra     string    // unknown fields of the file, not interpreted (X7)
	CreatedAt time.Time // zero: now
	Steps     map[StepID]Progress
}

// StateEdited is the run_state.json of this run, which a person or another program edited while nothing of
// the run was active.
type StateEdited struct {
	By    string
	Extra string              // unknown fields of the file, not interpreted (X7)
	Steps map[StepID]Progress // those that were edited
}

// PauseAsked prevents steps from starting; running ones finish. ReleaseAsked ends the pause.
type (
	PauseAsked struct {
		By, Why string // Why is for display
		Reason  PauseReason
	}
	ReleaseAsked struct {
		By, Why     string
		LimitLifted bool // the run was paused by a limit that is no longer reached
	}
)

// CancelAsked ends a run or, with Step, that RUNNING step only (W14).
type CancelAsked struct {
	Step    StepID // empty: the run
	By, Why string
}

// ResumeAsked continues a run that has stopped: from a step (--start-at-step, W12), or with its
// failed steps from the beginning.
type ResumeAsked struct {
	From    StepID   // empty: all failed steps
	By, Why string   // Why is for display
	Plan    *Plan    // the workflow if it was read again; nil: unchanged
	Options *Options // the current flags; nil: unchanged
}

// StepOrdered starts a step of the plan that is ordered, over from the beginning (W12).
type StepOrdered struct {
	Step      StepID
	N         uint64 // the number of the order; 0: the order is taken back
	Iteration int
}

// Judged says how a run stands whose steps are ordered: completed, failed, or empty while it goes on (W12).
type Judged struct{ As Status }

// event is the word for it.
func (in Judged) event() RunEvent {
	switch in.As {
	case IsCompleted:
		return RunCompleted
	case IsFailed:
		return RunFailed
	}
	return RunGoesOn
}

// GatesSeen is the content of the gate-state file: the names that are true.
type GatesSeen struct{ Open []string }

// SkipsDue skips steps that have become unnecessary. Actions requests it.
type SkipsDue struct{}

// Verdict is the result of evaluating a condition.
type Verdict struct {
	Holds bool
	Fault string // why it cannot be evaluated; empty: it can
}

// WhenWeighed is the result of a step's `when`. Actions requests it.
type WhenWeighed struct {
	Step      StepID
	Iteration int
	Verdict   Verdict
}

// ItemsSeen contains the items of a loop that takes them from elsewhere. Actions requests it.
type ItemsSeen struct {
	Step      StepID
	Iteration int
	Items     []string // JSON texts
	Fault     string   // why they cannot be read
}

// StartAsked starts a step that Actions listed: there is a place for it (W2).
type StartAsked struct{ Step StepID }

// ProcessAdopted is a step's process that outlived the runner (W13).
type ProcessAdopted struct{ Lease Lease }

// StartWithdrawn is a step whose process was not started, because the last check forbade it.
type StartWithdrawn struct {
	Lease Lease
	Why   string
}

// ProcessLost is a step whose process has disappeared without a known end or a report (W13).
type ProcessLost struct {
	Lease Lease
	Why   string
}

// ProviderBusy is a step whose process ended because of its provider's rate limit.
type ProviderBusy struct {
	Lease Lease
	Why   string
}

// ProcessEnded is the end of a step's process. If the attempt is still open, there is no valid
// report, and Why says what is wrong: the exit status, or the report's error in quotes.
type ProcessEnded struct {
	Lease Lease
	Why   string
}

// ReportRead is a complete report for this lease.
type ReportRead struct {
	Lease  Lease
	Report Report
	Until  *Verdict // result of the loop's until_condition if the step has one
	Over   bool     // the process has ended too
}

// Report is a step's own report (SPEC Workflow).
type Report struct {
	Failed     bool          // status FAILED; otherwise COMPLETED
	GateFailed bool          // gate_failure
	Again      time.Duration // again_in_seconds: the step is not done; 0: it is
	Why        string        // reason for either, in the report's words
	Facts
}

// Fails reports whether the step has failed or is sent back.
func (r Report) Fails() bool { return r.Failed || r.GateFailed }

// LimitHit is a limit of the step's agent or of the team that was reached (X9).
type LimitHit struct {
	Lease Lease
	Limit string
}

// AnswerRead is people's answer to a step that waits for them (W9, W10).
type AnswerRead struct {
	Lease    Lease
	Rejected bool
	By, Note string
	Record   Answer   // what else is recorded of it
	Fault    string   // why the input is invalid
	Until    *Verdict // as with a report: approval may end a loop
	Place    bool     // a place is free, for an agent that works after the answer
}

// TimerFired is a deadline that has passed, as returned by Deadline.
type TimerFired struct{ About Deadline }

// Subject of each input is what it is about.
func (StateEdited) Subject() Subject       { return Subject{Event: "state_edited"} }
func (PauseAsked) Subject() Subject        { return Subject{Event: "pause_asked"} }
func (ReleaseAsked) Subject() Subject      { return Subject{Event: "release_asked"} }
func (in CancelAsked) Subject() Subject    { return aboutStep("cancel_asked", in.Step) }
func (in ResumeAsked) Subject() Subject    { return aboutStep("resume_asked", in.From) }
func (in StepOrdered) Subject() Subject    { return aboutStep("step_ordered", in.Step) }
func (in Judged) Subject() Subject         { return Subject{Event: Event(in.event())} }
func (GatesSeen) Subject() Subject         { return Subject{Event: "gates_seen"} }
func (SkipsDue) Subject() Subject          { return Subject{Event: NeedsSkipped} }
func (in WhenWeighed) Subject() Subject    { return aboutStep(WhenTrue, in.Step) }
func (in ItemsSeen) Subject() Subject      { return aboutStep(ItemsFound, in.Step) }
func (in StartAsked) Subject() Subject     { return aboutStep(Started, in.Step) }
func (in ProcessAdopted) Subject() Subject { return aboutStep(Adopted, in.Lease.Step) }
func (in StartWithdrawn) Subject() Subject { return aboutStep(Withdrawn, in.Lease.Step) }
func (in ProcessLost) Subject() Subject    { return aboutStep(RunnerDied, in.Lease.Step) }
func (in ProviderBusy) Subject() Subject   { return aboutStep(ProviderWaits, in.Lease.Step) }
func (in ProcessEnded) Subject() Subject   { return aboutStep(ProcessDeparted, in.Lease.Step) }
func (in ReportRead) Subject() Subject     { return aboutStep(Reported, in.Lease.Step) }
func (in LimitHit) Subject() Subject       { return aboutStep(LimitReached, in.Lease.Step) }
func (in AnswerRead) Subject() Subject     { return aboutStep(Answered, in.Lease.Step) }
func (in TimerFired) Subject() Subject     { return aboutStep("timer_fired", in.About.Step) }

func (in RunAsked) Subject() Subject {
	return Subject{Event: "run_asked", Entity: string(in.ID), Starts: true}
}

func (in StateFound) Subject() Subject {
	return Subject{Event: "state_found", Entity: string(in.ID), Starts: true}
}
