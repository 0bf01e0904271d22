package team

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/workflow"
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
	OwnFolder     bool    `json:"own_folder,omitempty"`       // it works in a worktree or clone, so its steps may use an agent's slots above 0
	Outside       bool    `json:"outside,omitempty"`          // that is outside of the team's repository, so it stays on its machine
	How           string  `json:"how,omitempty"`              // how its steps are run: JSON of the runner, not interpreted here

	After []string `json:"after,omitempty"` // runs that must have completed before a step of this one starts

	OneAtATime map[string]string `json:"one_at_a_time,omitempty"` // a name for some steps in the worker pool: of all with the same name, one has a slot
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
type RunNote struct {
	Settings RunSettings `json:"settings"`
	Usage    Usage       `json:"usage"`             // of its sessions, on the last day
	Total    Usage       `json:"total,omitzero"`    // of its sessions, on all days
	Waived   string      `json:"waived,omitempty"`  // the day on which a person released it in spite of its own limit
	LookAt   time.Time   `json:"look_at,omitzero"`  // when a run that a limit has paused is examined again
	Changes  uint64      `json:"changes,omitempty"` // of a team that several hosts can lead: how often it has changed, without starts of steps. Its files may be others after each
	Away     string      `json:"away,omitempty"`    // the previous leader, if it has the run's newest files; empty: the leader has them
}

const (
	byLimit    = "engine"
	limitWords = "limit reached: "
	stopWords  = "fairlead was asked to stop"

	releaseWords = "the limit that paused it no longer applies"
)

// RunOver returns the run's own daily limit if all runs of its repository together have used it up on this local
// day; empty: they have not, or a person has released the run today.
func (t *Team) RunOver(id string, at time.Time) string {
	note, r := t.Notes[id], t.Runs[id]
	if r == nil || note.Settings.CostPerDayUSD == 0 {
		return ""
	}
	day := localDay(t, at)
	limit := Limits{CostPerDayUSD: note.Settings.CostPerDayUSD}.over(t.RunUsage[r.RepoDir].On(day))
	if limit == "" || note.Waived == day {
		return ""
	}
	return limit + " of run " + id + ", by all runs of the repository"
}

// stepOver returns a daily limit that prevents a step in this slot from continuing, and the reaction
// to it; empty: none.
func (t teamRuns) stepOver(id string, a *Agent, at time.Time) (limit string, do AtLimit) {
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

// limitStep is X9 for a running step: it fails with the limit named, or its run pauses.
func (d runDecision) limitStep(id string, r *workflow.Run, step workflow.StepID) error {
	a := d.team.sitter(id, step)
	if a == nil {
		return nil
	}
	switch limit, do := (teamRuns{d.team}).stepOver(id, a, d.ev.At); do {
	case LimitFails:
		return d.runDecides(id, r, workflow.LimitHit{Lease: workflow.Lease{Step: step, N: a.Session.Lease}, Limit: limit})
	case LimitPauses:
		return d.runDecides(id, r, workflow.PauseAsked{By: byLimit, Reason: workflow.PausedByLimit, Why: limitWords + limit})
	default:
		return nil
	}
}

// pausedByLimit reports whether a run waits only for the end of a limit.
func pausedByLimit(r *workflow.Run) bool {
	return r.Stage == workflow.Paused && r.PauseReason == workflow.PausedByLimit
}

// unlimited reports whether none of the limits that can have paused a run is used up any more.
func (t teamRuns) unlimited(id string, r *workflow.Run, at time.Time) bool {
	if t.RunOver(id, at) != "" || t.Limits.over(t.Usage.On(dayOf(at))) != "" {
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
func (d runDecision) releaseRun(id string, r *workflow.Run, in workflow.ReleaseAsked) error {
	if d.team.Notes[id].Away != "" && r.Stage != workflow.Paused && !in.LimitLifted {
		return d.filesHere(id, "files_given_up")
	}
	waives := pausedByLimit(r) && !in.LimitLifted && d.team.RunOver(id, d.ev.At) != ""
	if err := d.runDecides(id, r, in); err != nil || !waives {
		return err
	}
	d.note(id, "X9", "limit_waived", NoteSet{Settings: d.team.Notes[id].Settings, Waived: localDay(d.team, d.ev.At)})
	return nil
}

// runTimer handles one thing that is due in a run; the next timer handles the next.
func (d runDecision) runTimer(id string, r *workflow.Run) error {
	if about := r.Deadline(); !about.At.IsZero() && !d.ev.At.Before(about.At) {
		return d.runDecides(id, r, workflow.TimerFired{About: about})
	}
	if a, limit, at := (teamRuns{d.team}).poolDeadline(id, r); a != nil && !d.ev.At.Before(at) {
		return d.timeUp(a, limit)
	}
	at := teamRuns{d.team}.limitDeadline(id, r)
	switch {
	case at.IsZero() || d.ev.At.Before(at):
		return nil
	case teamRuns{d.team}.unlimited(id, r, d.ev.At):
		return d.runDecides(id, r, workflow.ReleaseAsked{By: byLimit, LimitLifted: true, Why: releaseWords})
	}
	note := d.team.Notes[id]
	d.note(id, "X9", "still_limited", NoteSet{Settings: note.Settings, Waived: note.Waived, LookAt: nextDay(d.ev.At, d.team.Zone)})
	return nil
}

// limitDeadline is when a run that a daily limit has paused may continue; zero: never.
func (t teamRuns) limitDeadline(id string, r *workflow.Run) time.Time {
	if !pausedByLimit(r) {
		return time.Time{}
	}
	if at := t.Notes[id].LookAt; at.After(r.UpdatedAt) {
		return at
	}
	return nextDay(r.UpdatedAt, t.Zone)
}

// nextDay is when a day ends: that of the agents' and the team's limits (UTC), or the local one, whichever is first.
func nextDay(at time.Time, zone *time.Location) time.Time {
	next := at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if zone != nil {
		y, m, d := at.In(zone).Date()
		if local := time.Date(y, m, d+1, 0, 0, 0, 0, zone).UTC(); local.Before(next) {
			return local
		}
	}
	return next
}

// timeUp ends a step's session that has reached its time limit (X9).
func (d runDecision) timeUp(a *Agent, limit time.Duration) error {
	id, step, _ := StepOf(a.Session.For)
	named := "session " + limit.String()
	if r := d.team.Runs[id]; r != nil {
		err := d.runDecides(id, r, workflow.LimitHit{Lease: workflow.Lease{Step: workflow.StepID(step), N: a.Session.Lease}, Limit: named})
		if _, refused := err.(*machine.Refusal); !refused { //nolint:errorlint // a refusal is a type of its own and is never wrapped
			return err
		}
	}
	return d.endSession(a, ending{EndLimit, named}, false)
}

// poolDeadline is the next time at which a session of the run's steps in the worker pool reaches its
// time limit.
func (t teamRuns) poolDeadline(id string, r *workflow.Run) (next *Agent, limit time.Duration, at time.Time) {
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
