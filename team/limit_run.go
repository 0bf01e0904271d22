package team

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// AtLimit is what a run does at a limit of the day (--cost-limit-action).
type AtLimit string

const (
	LimitFails  AtLimit = "fail"  // the step fails, with the limit named; what is not given is this
	LimitPauses AtLimit = "pause" // nothing more begins until the next day, or until somebody releases the run
	LimitWarns  AtLimit = "warn"  // only of the run's own limit: those of an agent and of the team hold for everybody
)

// RunSettings are a run's flags that its machine does not decide on.
type RunSettings struct {
	Wrapped       bool    `json:"wrapped,omitempty"`          // --wrapper or --command-template: no step works in an agent's seat
	CostPerDayUSD float64 `json:"cost_per_day_usd,omitempty"` // --daily-cost-limit; 0: none
	AtLimit       AtLimit `json:"at_limit,omitempty"`         // --cost-limit-action
	How           string  `json:"how,omitempty"`              // how its steps are played: JSON of whoever plays them, opaque here
}

// check says what is wrong with settings; empty: nothing.
func (s RunSettings) check() string {
	switch {
	case !(s.CostPerDayUSD >= 0) || math.IsInf(s.CostPerDayUSD, 0):
		return fmt.Sprintf("--daily-cost-limit %g is no amount of money; give 0 for no limit", s.CostPerDayUSD)
	case s.AtLimit != "" && s.AtLimit != LimitFails && s.AtLimit != LimitPauses && s.AtLimit != LimitWarns:
		return fmt.Sprintf("--cost-limit-action %q is none of warn, pause, fail", s.AtLimit)
	default:
		return ""
	}
}

// RunNote is what is true of a run beside its machine.
type RunNote struct {
	Settings RunSettings `json:"settings"`
	Usage    Usage       `json:"usage"`            // of its sessions, on the newest day
	Total    Usage       `json:"total,omitzero"`   // of its sessions, on all days
	Waived   string      `json:"waived,omitempty"` // the day on which somebody let it go on over its own limit
	LookAt   time.Time   `json:"look_at,omitzero"` // not before then is a run that a limit has paused looked at again
}

const (
	byLimit    = "engine"
	limitWords = "limit reached: "
	stopWords  = "fairlead was asked to stop"

	releaseWords = "the limit that had paused it is not reached any more"
)

// RunOver names the run's own limit of the day that is used up; empty: it is not, or somebody
// has let the run go on today.
func (t *Team) RunOver(id string, at time.Time) string {
	note, day := t.Notes[id], dayOf(at)
	limit := Limits{CostPerDayUSD: note.Settings.CostPerDayUSD}.over(note.Usage.on(day))
	if limit == "" || note.Waived == day {
		return ""
	}
	return limit + " of run " + id
}

// stepOver names a limit of the day that keeps a step in this seat from going on, and what is
// to be done then; empty: none does.
func (t *Team) stepOver(id string, a *Agent, at time.Time) (limit string, do AtLimit) {
	do = cmp.Or(t.Notes[id].Settings.AtLimit, LimitFails)
	if own := t.RunOver(id, at); own != "" && do != LimitWarns {
		return own, do
	}
	if do == LimitWarns {
		do = LimitFails
	}
	if limit = t.OverLimit(a, at); limit != "" {
		return limit, do
	}
	return "", ""
}

// limitStep is X9 for a step at work: it fails with the limit named, or its run pauses.
func (d *draft) limitStep(id string, r *workflow.Run, step workflow.StepID) error {
	a := d.team.sitter(id, step)
	if a == nil {
		return nil
	}
	switch limit, do := d.team.stepOver(id, a, d.ev.At); do {
	case LimitFails:
		return d.runDecides(id, r, workflow.LimitHit{Lease: workflow.Lease{Step: step, N: a.Session.Lease}, Limit: limit})
	case LimitPauses:
		return d.runDecides(id, r, workflow.PauseAsked{By: byLimit, Reason: workflow.PausedByLimit, Why: limitWords + limit})
	default:
		return nil
	}
}

// pausedByLimit says whether a run waits for a limit to be lifted, and for nobody.
func pausedByLimit(r *workflow.Run) bool {
	return r.Stage == workflow.Paused && r.PauseReason == workflow.PausedByLimit
}

// unlimited says whether none of the limits that can have paused a run is used up any more.
func (t *Team) unlimited(id string, r *workflow.Run, at time.Time) bool {
	if t.RunOver(id, at) != "" || t.Limits.over(t.Usage.on(dayOf(at))) != "" {
		return false
	}
	for i := range r.Plan.Steps {
		if a := t.Agents[r.Plan.Steps[i].Agent]; a != nil && t.OverLimit(a, at) != "" {
			return false
		}
	}
	return true
}

// releaseRun lets a paused run go on. Where its own limit had paused it, that is somebody's
// word that it may cost more today.
func (d *draft) releaseRun(id string, r *workflow.Run, in workflow.ReleaseAsked) error {
	waives := pausedByLimit(r) && !in.LimitLifted && d.team.RunOver(id, d.ev.At) != ""
	if err := d.runDecides(id, r, in); err != nil || !waives {
		return err
	}
	d.note(id, "X9", "limit_waived", NoteSet{Settings: d.team.Notes[id].Settings, Waived: dayOf(d.ev.At)})
	return nil
}

// runTimer does what is due of a run at this time, one thing: the next timer does the next.
func (d *draft) runTimer(id string, r *workflow.Run) error {
	if about := r.Deadline(); !about.At.IsZero() && !d.ev.At.Before(about.At) {
		return d.runDecides(id, r, workflow.TimerFired{About: about})
	}
	if a, limit, at := d.team.poolDeadline(id, r); a != nil && !d.ev.At.Before(at) {
		return d.timeUp(a, limit)
	}
	at := d.team.limitDeadline(id, r)
	switch {
	case at.IsZero() || d.ev.At.Before(at):
		return nil
	case d.team.unlimited(id, r, d.ev.At):
		return d.runDecides(id, r, workflow.ReleaseAsked{By: byLimit, LimitLifted: true, Why: releaseWords})
	}
	note := d.team.Notes[id]
	d.note(id, "X9", "still_limited", NoteSet{Settings: note.Settings, Waived: note.Waived, LookAt: nextDay(d.ev.At)})
	return nil
}

// limitDeadline is when a run that a limit of the day has paused may go on; zero: never.
func (t *Team) limitDeadline(id string, r *workflow.Run) time.Time {
	if !pausedByLimit(r) {
		return time.Time{}
	}
	if at := t.Notes[id].LookAt; at.After(r.UpdatedAt) {
		return at
	}
	return nextDay(r.UpdatedAt)
}

func nextDay(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// timeUp ends a step's session that has used up the time that a session may take (X9).
func (d *draft) timeUp(a *Agent, limit time.Duration) error {
	id, step, _ := StepOf(a.Session.For)
	named := "session " + limit.String()
	if r := d.team.Runs[id]; r != nil {
		err := d.runDecides(id, r, workflow.LimitHit{Lease: workflow.Lease{Step: workflow.StepID(step), N: a.Session.Lease}, Limit: named})
		if _, refused := err.(*machine.Refusal); !refused { //nolint:errorlint // a decision refuses in its own words, and nobody wraps it
			return err
		}
	}
	return d.endSession(a, ending{EndLimit, named}, false)
}

// poolDeadline is the next moment at which a session of the run's steps on the bench has used
// up its time.
func (t *Team) poolDeadline(id string, r *workflow.Run) (next *Agent, limit time.Duration, at time.Time) {
	if t.Limits.Session == 0 || len(t.Pool.Sessions) == 0 {
		return nil, 0, time.Time{}
	}
	for action := range r.Actions(workflow.Now{Held: true}) {
		if action.Do != workflow.RunIt {
			continue
		}
		a := t.stepSlot(id + "/" + string(action.Lease.Step))
		if l, due := t.sessionDeadline(a); !due.IsZero() && (next == nil || due.Before(at)) {
			next, limit, at = a, l, due
		}
	}
	return next, limit, at
}
