package view

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Status is the one word for what an agent does. It is derived from evidence and is the same in the
// page, in `fairlead ps`, in `fairlead why` and in the API.
type Status string

// The statuses, in the order in which they apply: the first one that fits is shown.
const (
	StatusUnknown     Status = "unknown"      // evidence is missing or contradictory
	StatusStopping    Status = "stopping"     // it was told to end, or ends after its current session
	StatusWaiting     Status = "waiting"      // for a person
	StatusRateLimited Status = "rate_limited" // until its provider's limit ends
	StatusRunning     Status = "running"      // its process is there, or its foreign loop reported recently
	StatusBackingOff  Status = "backing_off"  // until the next try after a failure
	StatusFailed      Status = "failed"       // it gave up; a person should look
	StatusIdle        Status = "idle"         // nothing runs, nothing is wrong; IdleReason says why
)

// IdleReason is why nothing runs although nothing is wrong.
type IdleReason string

// The reasons.
const (
	IdlePaused   IdleReason = "paused"   // desired_state is pause
	IdleHeld     IdleReason = "held"     // the team is held
	IdleLimit    IdleReason = "limit"    // a daily limit is used up
	IdleQueued   IdleReason = "queued"   // it waits for its slot, or its session is about to start
	IdleDisabled IdleReason = "disabled" // a person disabled it
)

// statusWords are the statuses as people see them.
var statusWords = map[Status]string{
	StatusUnknown: "UNKNOWN", StatusStopping: "STOPPING", StatusWaiting: "WAITING", StatusRateLimited: "RATE LIMITED",
	StatusRunning: BadgeRunning, StatusBackingOff: "BACKING OFF", StatusFailed: "FAILED", StatusIdle: BadgeIdle,
}

// statusMarks are their shapes, with an equivalent in ASCII. ui/static/shell/status.js has the same shapes.
var statusMarks = map[Status][2]string{
	StatusUnknown: {"!", "!"}, StatusStopping: {"\u25a0", "#"}, StatusWaiting: {"?", "?"}, StatusRateLimited: {"\u2016", "="},
	StatusRunning: {"\u25b6", ">"}, StatusBackingOff: {"\u21bb", "~"}, StatusFailed: {"\u2715", "x"}, StatusIdle: {"\u25cb", "-"},
}

// Mark returns the shape of the status; plain: in ASCII.
func (v *AgentView) Mark(plain bool) string {
	if plain {
		return statusMarks[v.Status][1]
	}
	return statusMarks[v.Status][0]
}

// Word returns the status as people see it.
func (v *AgentView) Word() string { return statusWords[v.Status] }

// NotReported stands for the current_state of a foreign loop that has not written one.
const NotReported = "unknown"

// SetStatus derives the status from the rest of the view. ui/static/shell/status.js is the same
// table for the page.
func (v *AgentView) SetStatus(stopping bool, now time.Time) {
	v.Status, v.StatusWhy, v.IdleReason = StatusIdle, "", ""
	s := v.Session
	works := v.Badge == BadgeRunning // as its loop says
	own := v.Loop == "foreign" && !v.Program
	unsaid := v.CurrentState == NotReported // the program has not written its file yet, so only its process counts
	there := own && works || s != nil && s.Phase == string(session.Running) && (s.Kind != string(control.Program) || works || unsaid)
	var other *SessionView // in a slot above 0: one that runs, else one that ends
	for i, o := range v.Others() {
		if o.Phase == string(session.Running) && (other == nil || other.Ending != "" && o.Ending == "") {
			other = &v.Others()[i]
		}
	}
	switch {
	case v.Certainty == CertaintyUnknown:
		v.Status, v.StatusWhy = StatusUnknown, v.Doubt
	case s != nil && s.Ending != "":
		v.Status, v.StatusWhy = StatusStopping, s.Ending
	case (there || other != nil) && stopping:
		v.Status, v.StatusWhy = StatusStopping, "Fairlead is stopping; the session finishes first"
	case there && works && v.DesiredState == "pause" && (own || s.For == team.ForControl):
		v.Status, v.StatusWhy = StatusStopping, "the session finishes first"
	case v.Asks > 0:
		v.Status, v.StatusWhy = StatusWaiting, v.AsksWhat
	case v.LimitedUntil != nil && v.LimitedUntil.After(now):
		v.Status, v.StatusWhy = StatusRateLimited, v.LimitedWhy
	case there && own:
		v.Status, v.StatusWhy = StatusRunning, "its own loop says "+v.CurrentState
	case there:
		v.Status, v.StatusWhy = StatusRunning, fmt.Sprintf("session %s runs as process %d", s.ID, s.PID)
	case other != nil && other.Ending != "":
		v.Status, v.StatusWhy = StatusStopping, other.Ending
	case other != nil:
		v.Status, v.StatusWhy = StatusRunning, fmt.Sprintf("session %s runs as process %d", other.ID, other.PID)
	case v.RetryAt != nil:
		v.Status, v.StatusWhy = StatusBackingOff, fmt.Sprintf("%s; next try at %s", v.FailedInARow(), v.RetryAt.UTC().Format("15:04:05Z"))
	case v.GaveUp != nil:
		v.Status, v.StatusWhy = StatusFailed, v.Note
	default:
		v.IdleReason, v.StatusWhy = v.idle()
	}
}

// idle returns why nothing runs.
func (v *AgentView) idle() (reason IdleReason, why string) {
	wants := v.DesiredState != "pause" || v.WaitingBehind != ""
	switch {
	case v.Disabled:
		return IdleDisabled, "a person disabled it"
	case v.OverLimit != "":
		return IdleLimit, v.OverLimit + " is reached"
	case v.Session != nil && v.Session.Phase != string(session.Running):
		return IdleQueued, v.Session.Next()
	case len(v.Others()) > 0:
		return IdleQueued, v.Others()[0].Next()
	case v.Held:
		return IdleHeld, "the team is held"
	case v.WaitingBehind != "":
		return IdleQueued, v.WaitingBehind
	case wants:
		return IdleQueued, v.DesiredState + " is wanted next"
	default:
		return IdlePaused, v.Note
	}
}

// Overwritten explains to a person that a foreign loop keeps writing over an order.
func Overwritten(desired string) string {
	return "its own loop keeps writing agent_state.json as it was before the order " + desired +
		", so it may never read that order; Fairlead writes it again every second. Stop the loop's program, or let it pause between a write and the next read (doc/files.md)"
}

// FailedInARow says how many sessions of the agent have failed since the last that did not.
func (v *AgentView) FailedInARow() string {
	if v.Failures < 2 {
		return "the last session failed"
	}
	return fmt.Sprintf("%d sessions failed in a row", v.Failures)
}

// Certainty of an agent's status: known unless evidence contradicts it. The badge always shows
// current_state (J5); the certainty is shown beside it.
const (
	CertaintyKnown   = "known"
	CertaintyUnknown = "unknown"
)

// Contradicted records evidence against the status, strong enough to make it unknown.
func (v *AgentView) Contradicted(format string, args ...any) {
	v.Doubt, v.Certainty = fmt.Sprintf(format, args...), CertaintyUnknown
}
