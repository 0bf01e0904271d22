package team

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// uses makes the session of a step report its cost.
func (c *crewWorld) uses(run, step string, usd float64) {
	c.t.Helper()
	s := c.sit(run, step)
	c.tells(run, step, SessionReported{Session: s.ID, Offset: s.Offset + 1, Usage: change.Usage{CostUSD: usd}})
}

// SPEC X9: a limit of an agent or of the team fails the running steps with its name, and the next
// ones before their process begins. Control's session is not affected.
func TestLimitsFailSteps(t *testing.T) {
	c := newCrew(t, Limits{CostPerDayUSD: 5}, two())
	c.runs("r", RunSettings{}, "one ada", "two !", "three ada needs one")
	c.wants("bob", "continuous")
	for _, step := range []string{"one", "two"} {
		c.stepStarts("r", step)
	}
	c.starts("bob")
	c.uses("r", "two", 5)
	c.steps("r", "one:FAILED two:FAILED three:PENDING")
	limit := "limit reached: cost_per_day_usd 5 (5.00 used) of the team"
	for i, step := range []string{"one", "two"} {
		if p := c.Runs["r"].Steps[i]; p.LastError != limit || c.sit("r", step).Ending != limit {
			t.Errorf("%s: %+v", step, p.Value)
		}
		c.does("r", step, nil, control.Failed)
	}
	if s := c.Agents["bob"].Session; s.Ending != limit {
		t.Errorf("bob continues: %+v", s)
	}
	c.runs("q", RunSettings{}, "one ada")
	c.steps("q", "one:FAILED")
	if ok, why := c.MayStart("ada", c.sit("q", "one").ID, c.at); ok {
		t.Error("a step may start over a limit")
	} else if why != limit {
		t.Errorf("it may not start: %q", why)
	}
	c.does("q", "one", nil, control.Withdrawn)
	if p := c.Runs["q"].Steps[0]; p.State != workflow.Failed || p.Proc != 0 || p.LastError != limit {
		t.Errorf("it is %+v", p.Value)
	}
}

// SPEC, corrections: the limit counts all runs of the repository on that local day, also archived
// ones. With fail, a running step finishes and keeps its result, and the steps after it fail.
func TestLimitOfAllRuns(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.Zone = time.FixedZone("", 14*60*60)
	c.runs("first", RunSettings{}, "one ada")
	c.stepStarts("first", "one")
	c.uses("first", "one", 3)
	c.does("first", "one", good, control.OK)
	c.ofRun("first", RunArchived{})
	c.runs("r", RunSettings{CostPerDayUSD: 4, AtLimit: LimitFails}, "one ada", "two ada needs one", "three bob needs one")
	c.stepStarts("r", "one")
	c.uses("r", "one", 1)
	if s := c.sit("r", "one"); s.Ending != "" {
		t.Errorf("it is ended: %s", s.Ending)
	}
	c.does("r", "one", good, control.OK)
	c.does("r", "two", nil, control.Withdrawn)
	c.does("r", "three", nil, control.Withdrawn)
	c.steps("r", "one:COMPLETED two:FAILED three:FAILED")
	if why, want := c.Runs["r"].Steps[1].LastError,
		"limit reached: cost_per_day_usd 4 (4.00 used) of run r, by all runs of the repository"; why != want {
		t.Errorf("two failed: %q", why)
	}
	c.at = time.Date(c.at.Year(), c.at.Month(), c.at.Day()+1, 9, 59, 0, 0, time.UTC) // before midnight in that time zone
	if c.RunOver("r", c.at) == "" || c.RunOver("r", c.at.Add(time.Minute)) != "" {
		t.Error("the limit does not use the local day")
	}
}

// SPEC --cost-limit-action pause: running steps finish, and no step begins until the next day. A
// person may continue the run earlier, for that day.
func TestLimitsPauseRuns(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	settings := RunSettings{CostPerDayUSD: 2, AtLimit: LimitPauses}
	c.runs("r", settings, "one ada", "two ! needs one", "three ! needs two")
	c.stepStarts("r", "one")
	c.uses("r", "one", 3)
	r := c.Runs["r"]
	if r.Stage != workflow.Paused || r.Why != "limit reached: cost_per_day_usd 2 (3.00 used) of run r, by all runs of the repository" ||
		c.sit("r", "one").Ending != "" {
		t.Errorf("it is %s: %s", r.Stage, r.Why)
	}
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED two:PENDING three:PENDING")
	midnight := machinetest.Noon.Truncate(24 * time.Hour).Add(24 * time.Hour)
	if at := c.DeadlineRun("r"); !at.Equal(midnight) {
		t.Errorf("the next deadline is %s", at)
	}
	if changes := c.ofRun("r", TimerFired{}); len(changes) != 0 {
		t.Errorf("an early timer causes %s", rows(changes))
	}
	c.ofRun("r", workflow.ReleaseAsked{By: "ann"})
	c.steps("r", "one:COMPLETED two:RUNNING three:PENDING")
	if c.RunOver("r", c.at) != "" || c.RunOver("r", midnight) != "" {
		t.Error("the waived cost counts")
	}
	c.at = midnight
	c.stepStarts("r", "two")
	c.uses("r", "two", 3)
	if r.Stage != workflow.Paused {
		t.Error("a waiver is for one day")
	}
	c.does("r", "two", good, control.OK)
	c.at = midnight.Add(24 * time.Hour)
	c.ofRun("r", TimerFired{})
	c.steps("r", "one:COMPLETED two:COMPLETED three:RUNNING")
	if r.By != byLimit || r.Stage != workflow.Driven {
		t.Errorf("released by %q, it is %s", r.By, r.Stage)
	}
}

// TestLimitOfTheNextDay checks that a run that is paused for a limit that is used up on the next
// day, too, is checked again on the day after, and not repeatedly before.
func TestLimitOfTheNextDay(t *testing.T) {
	c := newCrew(t, Limits{CostPerDayUSD: 2}, two())
	c.runs("r", RunSettings{AtLimit: LimitPauses}, "one !", "two bob needs one")
	c.stepStarts("r", "one")
	c.uses("r", "one", 3)
	c.does("r", "one", good, control.OK)
	c.runs("q", RunSettings{AtLimit: LimitWarns}, "one !")
	c.steps("q", "one:FAILED") // a warning applies only to the run's own limit
	c.does("q", "one", nil, control.Withdrawn)
	tomorrow := machinetest.Noon.Truncate(24 * time.Hour).Add(24 * time.Hour)
	c.at = tomorrow.Add(-2 * time.Second)
	c.must("", ReleaseAsked{})
	c.at = tomorrow
	c.wants("bob", "run_once")
	s := c.starts("bob")
	c.must("bob", SessionReported{Session: s, Offset: 1, Usage: change.Usage{CostUSD: 3}})
	if changes := c.ofRun("r", TimerFired{}); len(changes) != 1 || changes[0].Trigger != "still_limited" {
		t.Errorf("over the limit again: %s", rows(changes))
	}
	if at := c.DeadlineRun("r"); !at.Equal(tomorrow.Add(24 * time.Hour)) {
		t.Errorf("the next deadline is %s", at)
	}
	c.must("", Configured{Agents: two()}) // at once if the limit is raised
	if c.Runs["r"].Stage != workflow.Driven {
		t.Errorf("it is %s", c.Runs["r"].Stage)
	}
	c.ends("bob", control.OK)
	c.steps("r", "one:COMPLETED two:RUNNING")
}

// TestLimitInTheQueue checks that a limit that control reaches while it is queued applies to
// control only: its desired state becomes spent. The step that has the slot finishes, and its run
// only pauses.
func TestLimitInTheQueue(t *testing.T) {
	tired := quiet
	tired.Limits.CostPerDayUSD = 2
	c := newCrew(t, Limits{}, map[string]Settings{"ada": tired, "bob": quiet})
	c.runs("r", RunSettings{AtLimit: LimitPauses}, "one ada", "two bob needs one")
	c.stepStarts("r", "one")
	c.wants("ada", "continuous")
	c.uses("r", "one", 3)
	c.says("ada", control.Resting, "pause")
	if s := c.sit("r", "one"); s.Ending != "" || len(c.Agents["ada"].Queue) != 0 || c.Runs["r"].Stage != workflow.Paused {
		t.Errorf("the step is %+v, the queue %+v, the run %s", s, c.Agents["ada"].Queue, c.Runs["r"].Stage)
	}
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED two:PENDING")
}

// TestLimitWarns checks that a run with the action warn continues, and is warned about once a day: when the limit is
// reached, by whichever run, and when a step starts above it. The other actions do not warn, and a limit of the agent
// still applies.
func TestLimitWarns(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	settings := RunSettings{CostPerDayUSD: 2, AtLimit: LimitWarns}
	warned := func(run string, want int) {
		t.Helper()
		got := 0
		for _, ch := range c.journal {
			if ch.Trigger == "limit_warned" && ch.Entity == "run/"+run {
				got++
			}
		}
		if got != want {
			t.Errorf("run %s was warned about %d times, not %d", run, got, want)
		}
	}
	c.runs("other", RunSettings{CostPerDayUSD: 2, AtLimit: LimitFails}, "one bob")
	c.stepStarts("other", "one")
	c.runs("r", settings, "one ada", "two ada needs one", "three ada needs two")
	c.stepStarts("r", "one")
	c.uses("r", "one", 1)
	warned("r", 0)
	c.uses("other", "one", 1.5)
	warned("r", 1)
	warned("other", 0)
	if w := c.Notes["r"].Warned; w.Limit != "cost_per_day_usd 2 (2.50 used) of run r, by all runs of the repository" ||
		w.Day != "2026-11-20" || !w.At.Equal(c.at) {
		t.Errorf("the warning is %+v", w)
	}
	c.uses("r", "one", 1)
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED two:RUNNING three:PENDING")
	c.stepStarts("r", "two")
	c.uses("r", "two", 1)
	warned("r", 1)
	c.runs("late", settings, "one !") // it begins above the limit
	c.steps("late", "one:RUNNING")
	warned("late", 1)
	c.at = c.at.Add(24 * time.Hour)
	c.uses("r", "two", 1)
	warned("r", 1)
	c.uses("r", "two", 1)
	warned("r", 2)
	c.does("r", "two", good, control.OK)
	c.steps("r", "one:COMPLETED two:COMPLETED three:RUNNING")
	c.stepStarts("r", "three")
	c.ofRun("r", workflow.CancelAsked{By: "ann"})
	c.does("r", "three", nil, control.Failed)
	settings.Wrapped = true
	c.ofRun("r", RunBegun{Asked: workflow.ResumeAsked{}, Settings: settings}) // new settings do not forget it
	c.stepStarts("r", "three")
	c.uses("r", "three", 1)
	warned("r", 2)
}

// TestWarnedRunHasOtherLimits checks that an agent's limit fails a step of a run whose own limit only warns.
func TestWarnedRunHasOtherLimits(t *testing.T) {
	tired := quiet
	tired.Limits.CostPerDayUSD = 2
	c := newCrew(t, Limits{}, map[string]Settings{"ada": tired})
	c.runs("r", RunSettings{CostPerDayUSD: 2, AtLimit: LimitWarns}, "one ada")
	c.stepStarts("r", "one")
	c.uses("r", "one", 2)
	c.steps("r", "one:FAILED")
	if c.Notes["r"].Warned.Day == "" {
		t.Error("it was not warned about")
	}
}

// SPEC X5: a run that has ended can be archived, keeps its name, and can be restored unchanged.
func TestArchive(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	settings := RunSettings{AtLimit: LimitPauses, CostPerDayUSD: 9}
	c.runs("r", settings, "one ada", "two ! needs one")
	refused := func(what any, row, words string) {
		t.Helper()
		changes, err := c.event(Event{Run: "r", What: what})
		var refusal *table.Refusal
		if !errors.As(err, &refusal) || refusal.Row != row || !strings.Contains(err.Error(), words) || len(changes) > 0 {
			t.Errorf("%T: %v", what, err)
		}
	}
	refused(RunArchived{}, "X5", "only a run that is over")
	c.stepStarts("r", "one")
	c.uses("r", "one", 1)
	c.ofRun("r", workflow.CancelAsked{By: "ann"})
	refused(RunArchived{}, "X5", "cancel it first") // its process has not ended
	c.does("r", "one", nil, control.Failed)
	before := cloneJSON(c.Runs["r"])
	c.ofRun("r", RunArchived{})
	if c.Runs != nil || c.Notes != nil || c.Archive["r"].IsZero() {
		t.Errorf("left is %+v, %+v, %+v", c.Runs, c.Notes, c.Archive)
	}
	refused(workflow.RunAsked{ID: "r"}, "X5", "archived")
	refused(workflow.ResumeAsked{}, "X5", "archived")
	half := cloneJSON(before)
	half.Steps = half.Steps[:1]
	refused(RunRecalled{Run: half}, "X5", "incomplete")
	c.ofRun("r", RunRecalled{Run: before, Settings: settings})
	if c.Archive != nil || !same(c.Notes["r"].Settings, settings) || c.Runs["r"].Status() != workflow.IsCancelled {
		t.Errorf("back is %+v, %+v, %+v", c.Runs["r"], c.Notes, c.Archive)
	}
	refused(RunRecalled{Run: before}, "X5", "not archived")
	c.ofRun("r", workflow.ResumeAsked{By: "ann"})
	if s := c.sit("r", "one"); s.Lease != 2 {
		t.Errorf("its leases restart: %+v", s)
	}
}

// SPEC X4: the refusals of runs.
func TestRunRefusals(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	_, err := c.event(Event{Run: "r", What: workflow.CancelAsked{}})
	if err == nil || err.Error() != "no run is called \"r\": there are none; `fairlead run` starts one" {
		t.Errorf("%v", err)
	}
	c.runs("r", RunSettings{}, "one ada")
	for _, refusal := range []struct {
		run  string
		what any
		want string
	}{
		{"q", workflow.CancelAsked{}, `no run is called "q"; there are: r`},
		{"q", RunRecalled{}, `no run is called "q"; there are: r`},
		{"q", RunBegun{Asked: workflow.ResumeAsked{}}, `no run is called "q"; there are: r`},
		{
			"r",
			RunBegun{Asked: workflow.ResumeAsked{}, Settings: RunSettings{AtLimit: "stop"}},
			`--cost-limit-action "stop" is not one of warn, pause, fail`,
		},
		{"r", RunBegun{Asked: workflow.ResumeAsked{}, Settings: RunSettings{CostPerDayUSD: math.NaN()}}, `not an amount of money`},
		{
			"r",
			SessionEnded{Session: "one@r-1"},
			"session one@r-1 of run r: cannot take ended while none: it is over, or it never was",
		},
	} {
		changes, err := c.event(Event{Run: refusal.run, What: refusal.what})
		if err == nil || !strings.Contains(err.Error(), refusal.want) || len(changes) > 0 {
			t.Errorf("%T: %v, want %s", refusal.what, err, refusal.want)
		}
	}
	for _, what := range []any{nil, "x", control.Commanded{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T does not count as a bug", what)
				}
			}()
			_, _ = c.Decide(Event{Run: "r", What: what})
		}()
	}
}

func same(a, b RunSettings) bool { return a.same(&b) }
