package team

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// AtLimit is a run's reaction to a daily limit (--cost-limit-action).
type AtLimit string

const (
	LimitFails  AtLimit = "fail"  // steps that are to start fail, with the limit named; the default
	LimitPauses AtLimit = "pause" // nothing starts until the next day, or until a person releases the run
	LimitWarns  AtLimit = "warn"  // only for the run's own limit: those of an agent and of the team always apply
)

// RunSettings are a run's flags that do not concern its machine.
type RunSettings struct {
	Wrapped       bool    `json:"wrapped,omitempty"`          // --wrapper or --command-template: no step uses an agent's slot
	CostPerDayUSD float64 `json:"cost_per_day_usd,omitempty"` // --daily-cost-limit; 0: none
	AtLimit       AtLimit `json:"at_limit,omitempty"`         // --cost-limit-action
	// it works in a worktree or clone, so its steps may use an agent's slots above 0
	OwnFolder bool   `json:"own_folder,omitempty"`
	Outside   bool   `json:"outside,omitempty"` // that is outside of the team's repository, so it stays on its machine
	How       string `json:"how,omitempty"`     // how its steps are run: JSON of the runner, not interpreted here

	After []string `json:"after,omitempty"` // runs that must have completed before a step of this one starts
}

// same compares all fields, also those that are added later.
func (s *RunSettings) same(o *RunSettings) bool { return reflect.DeepEqual(s, o) }

// check returns what is wrong with settings; empty: nothing.
func (s RunSettings) check() string {
	switch {
	case !(s.CostPerDayUSD >= 0) || math.IsInf(s.CostPerDayUSD, 0):
		return fmt.Sprintf("--daily-cost-limit %g is not an amount of money; use 0 for no limit", s.CostPerDayUSD)
	case s.AtLimit != "" && s.AtLimit != LimitFails && s.AtLimit != LimitPauses && s.AtLimit != LimitWarns:
		return fmt.Sprintf("--cost-limit-action %q is not one of warn, pause, fail", s.AtLimit)
	case len(s.After) > afterMax:
		return fmt.Sprintf("it waits for %d other runs; %d are possible", len(s.After), afterMax)
	default:
		return ""
	}
}

// RunNote is the state of a run outside of its machine.
type RunMeta struct {
	Settings RunSettings  `json:"settings"`
	Usage    DayUsage     `json:"usage"`            // of its sessions, on the last day
	Total    change.Usage `json:"total,omitzero"`   // of its sessions, on all days
	Waived   string       `json:"waived,omitempty"` // the day on which a person released it in spite of its own limit
	Warned   Warned       `json:"warned,omitzero"`  // the last warning
	LookAt   time.Time    `json:"look_at,omitzero"` // when a run that a limit has paused is examined again
	// of a team that several hosts can lead: how often it has changed, without starts of steps. Its files may be others after each
	Changes uint64 `json:"changes,omitempty"`
	// the other host on which a session of it was placed last, which may have written its files; empty: none was
	From string `json:"from,omitempty"`
	Away string `json:"away,omitempty"` // the previous leader, if it has the run's newest files; empty: the leader has them
}

// Warned is a warning about a run's own daily limit. There is one a day.
type Warned struct {
	Day   string    `json:"day"`
	Limit string    `json:"limit"` // as RunOver names it
	At    time.Time `json:"at"`
}

const (
	byLimit    = "engine"
	limitWords = "limit reached: "
	stopWords  = "fairlead was asked to stop"

	releaseWords = "the limit that paused it no longer applies"
)

// RunOver returns the run's own daily limit if all runs of its repository together have used it up on the repository's
// day; empty: they have not, or a person has released the run on that day.
func (t *Team) RunOver(id string, at time.Time) string {
	note, r := t.Notes[id], t.Runs[id]
	if r == nil || note.Settings.CostPerDayUSD == 0 {
		return ""
	}
	day := t.RepoDay(r, at)
	limit := Limits{CostPerDayUSD: note.Settings.CostPerDayUSD}.over(day.Usage)
	if limit == "" || note.Waived == day.Day {
		return ""
	}
	return limit + " of run " + id + ", by all runs of the repository"
}

// stepOver returns a daily limit that prevents a step in this slot from continuing, and the reaction
// to it; empty: none.
func (t *Team) stepOver(id string, a *Agent, at time.Time) (limit string, do AtLimit) {
	do = cmp.Or(t.Notes[id].Settings.AtLimit, LimitFails)
	if own := t.RunOver(id, at); own != "" && (do != LimitWarns || t.Notes[id].Warned.Day != t.RepoDay(t.Runs[id], at).Day) {
		return own, do
	}
	if do == LimitWarns { // it was said
		do = LimitFails
	}
	if limit = t.OverLimit(a, at); limit != "" {
		return limit, do
	}
	return "", ""
}

// limitStep is X9 for a running step: it fails with the limit named, or its run pauses or is warned about.
func (d *decision) limitStep(id string, r *workflow.Run, step workflow.StepID) error {
	a := d.team.sitter(id, step)
	if a == nil {
		return nil
	}
	switch limit, do := d.team.stepOver(id, a, d.ev.At); do {
	case LimitFails:
		return d.runDecides(id, r, workflow.LimitHit{Lease: workflow.Lease{Step: step, N: a.Session.Lease}, Limit: limit})
	case LimitPauses:
		return d.runDecides(id, r, workflow.PauseAsked{By: byLimit, Reason: workflow.PausedByLimit, Why: limitWords + limit})
	case LimitWarns:
		day, note := d.team.RepoDay(r, d.ev.At).Day, d.team.Notes[id]
		d.note(id, "X9", "limit_warned",
			NoteSet{Settings: note.Settings, Waived: note.Waived, LookAt: note.LookAt, Warned: Warned{day, limit, d.ev.At}})
	}
	return nil
}

// pausedByLimit reports whether a run waits only for the end of a limit.
func pausedByLimit(r *workflow.Run) bool {
	return r.Stage == workflow.Paused && r.PauseReason == workflow.PausedByLimit
}

// unlimited reports whether none of the limits that can have paused a run is used up any more.
func (t *Team) unlimited(id string, r *workflow.Run, at time.Time) bool {
	if t.RunOver(id, at) != "" || t.Limits.over(t.Usage.On(dayOf(at)).Usage) != "" {
		return false
	}
	for i := range r.Plan.Steps {
		if a := t.Agents[r.Plan.Steps[i].Agent]; a != nil && t.OverLimit(a, at) != "" {
			return false
		}
	}
	return true
}

// releaseRun releases a paused run. If its own limit had paused it, the release also waives that
// limit for the day.
func (d *decision) releaseRun(id string, r *workflow.Run, in workflow.ReleaseAsked) error {
	if d.team.Notes[id].Away != "" && r.Stage != workflow.Paused && !in.LimitLifted {
		return d.filesHere(id, "files_given_up")
	}
	waives := pausedByLimit(r) && !in.LimitLifted && d.team.RunOver(id, d.ev.At) != ""
	if err := d.runDecides(id, r, in); err != nil || !waives {
		return err
	}
	d.note(id, "X9", "limit_waived", NoteSet{Settings: d.team.Notes[id].Settings, Waived: d.team.RepoDay(r, d.ev.At).Day})
	return nil
}

// runTimer handles one thing that is due in a run; the next timer handles the next.
func (d *decision) runTimer(id string, r *workflow.Run) error {
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
	d.note(id, "X9", "still_limited",
		NoteSet{Settings: note.Settings, Waived: note.Waived, LookAt: d.team.RepoDay(r, d.ev.At).Next(d.ev.At)})
	return nil
}

// limitDeadline is when a run that a daily limit has paused may continue; zero: never.
func (t *Team) limitDeadline(id string, r *workflow.Run) time.Time {
	if !pausedByLimit(r) {
		return time.Time{}
	}
	if at := t.Notes[id].LookAt; at.After(r.UpdatedAt) {
		return at
	}
	return t.RepoDay(r, r.UpdatedAt).Next(r.UpdatedAt)
}

// timeUp ends a step's session that has reached its time limit (X9).
func (d *decision) timeUp(a *Agent, limit time.Duration) error {
	id, step, _ := StepOf(a.Session.For)
	named := "session " + limit.String()
	if r := d.team.Runs[id]; r != nil {
		err := d.runDecides(id, r, workflow.LimitHit{Lease: workflow.Lease{Step: workflow.StepID(step), N: a.Session.Lease}, Limit: named})
		if _, refused := err.(*table.Refusal); !refused { //nolint:errorlint // a refusal is a type of its own and is never wrapped
			return err
		}
	}
	return d.endSession(a, ending{EndLimit, named}, false)
}

// poolDeadline is the next time at which a session of the run's steps in the worker pool reaches its
// time limit.
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
