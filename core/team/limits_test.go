package team

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
)

// SPEC X9: the team's limit stops all agents, also one that had reached its own limit before.
func TestLimitOfTheTeam(t *testing.T) {
	tired := quiet
	tired.Limits.TokensPerDay = 10
	c := newCrew(t, Limits{CostPerDayUSD: 5}, map[string]Settings{"ada": tired, "bob": quiet, "cleo": quiet})
	for _, name := range c.Names() {
		c.wants(name, "continuous")
		c.starts(name)
	}
	c.must("ada", SessionReported{Session: "ada-1", Offset: 10, Usage: change.Usage{OutputTokens: 10}})
	if s := c.Agents["ada"].Session; s.Ending != "limit reached: tokens_per_day 10 (10 used) of ada" {
		t.Errorf("ada continues: %+v", s)
	}
	if c.Agents["bob"].Session.Ending != "" {
		t.Error("bob is ended for ada's limit")
	}
	c.must("ada", SessionReported{Session: "ada-1", Offset: 20, Usage: change.Usage{CostUSD: 5.5}})
	for _, name := range []string{"bob", "cleo"} {
		if s := c.Agents[name].Session; s.Ending != "limit reached: cost_per_day_usd 5 (5.50 used) of the team" {
			t.Errorf("%s continues: %+v", name, s)
		}
		c.ends(name, control.Failed)
		c.says(name, control.Resting, "pause")
		if f := c.File(c.Agents[name]); f.By != "agent" || f.Note != "limit reached: cost_per_day_usd 5 (5.50 used) of the team" {
			t.Errorf("its file says %+v", f)
		}
		if past := c.Agents[name].Past[0]; past.Outcome != control.Cancelled {
			t.Errorf("a session that was ended by order has %+v", past)
		}
	}
	c.at = c.at.Add(24 * time.Hour)
	c.wants("bob", "run_once")
	c.says("bob", control.RunOnce, "run_once")
}

// SPEC X9: a limit that was lowered while Fairlead was stopped applies at the last check. A session
// that was opened and not started is withdrawn, and the desired state becomes spent with the
// limit's name.
func TestLimitLoweredWhileDown(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.starts("ada")
	c.must("ada", SessionReported{Session: id, Offset: 1, Usage: change.Usage{InputTokens: 20}})
	c.ends("ada", control.OK)
	tired := quiet
	tired.Limits.TokensPerDay = 10
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("", Configured{Agents: map[string]Settings{"ada": tired, "bob": quiet}})
	if ok, why := c.MayStart("ada", "ada-2", c.at); ok || why != "limit reached: tokens_per_day 10 (20 used) of ada" {
		t.Errorf("ada may start: %v, %q", ok, why)
	}
	c.ends("ada", control.Withdrawn)
	c.says("ada", control.Resting, "pause")
	for _, stranger := range []string{"eve", "bob"} {
		if ok, why := c.MayStart(stranger, "ada-2", c.at); ok || why != "it is not open" {
			t.Errorf("%s may start ada's session: %v, %q", stranger, ok, why)
		}
	}
}

// SPEC X9: the limit of a session's duration: the shorter of the agent's and the team's.
func TestLimitOfTheSession(t *testing.T) {
	slow := quiet
	slow.Limits.Session = time.Hour
	c := newCrew(t, Limits{Session: 10 * time.Minute}, map[string]Settings{"ada": slow, "bob": quiet})
	c.wants("ada", "continuous")
	if at := c.Deadline(c.Agents["ada"]); !at.IsZero() {
		t.Errorf("the time limit runs before the process was started: %s", at)
	}
	c.starts("ada")
	deadline := c.Deadline(c.Agents["ada"])
	if want := c.at.Add(10 * time.Minute); !deadline.Equal(want) {
		t.Fatalf("the deadline is %s, want %s", deadline, want)
	}
	if changes := c.must("ada", TimerFired{}); len(changes) != 0 {
		t.Errorf("an early timer causes %+v", changes)
	}
	c.at = deadline
	c.must("ada", TimerFired{})
	if s := c.Agents["ada"].Session; s.Ending != "limit reached: session 10m0s" || s.Now {
		t.Errorf("it continues: %+v", s)
	}
	want := []Action{{Key: "end/ada-1/false", Do: EndSession, Agent: "ada", Session: *c.Agents["ada"].Session}}
	if diff := cmp.Diff(want, slices.Collect(c.Actions(c.Agents["ada"]))[:1]); diff != "" {
		t.Error(diff)
	}
	c.ends("ada", control.OK)
	c.says("ada", control.Resting, "pause")
}

// X9: reports are counted once, and an impossible amount is not counted.
func TestUsageIsCountedOnce(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.starts("ada")
	report := SessionReported{
		Models: []DayUsage{{Usage: change.Usage{Model: "opus", InputTokens: 5, CostUSD: 9}}}, Context: 40, Session: id, Offset: 10,
		Usage: change.Usage{InputTokens: 7, CostUSD: 0.5},
	}
	c.must("ada", report)
	for _, again := range []int64{10, 9, 0, -5} {
		report.Offset = again
		if changes := c.must("ada", report); len(changes) != 0 {
			t.Errorf("the report at %d was counted again", again)
		}
	}
	impossible := change.Usage{InputTokens: -3, OutputTokens: math.MinInt64, CostUSD: math.NaN()}
	c.must("ada", SessionReported{Session: id, Offset: 11, Usage: impossible})
	c.must("ada", SessionReported{Session: id, Offset: 12, Usage: change.Usage{CostUSD: -1}})
	want := DayUsage{Day: "2026-11-20", Usage: change.Usage{InputTokens: 7, CostUSD: 0.5}}
	if c.Agents["ada"].Usage != want || c.Usage != want {
		t.Errorf("counted are %+v and %+v, want %+v", c.Agents["ada"].Usage, c.Usage, want)
	}
	wantModels := []DayUsage{{Day: "2026-11-20", Usage: change.Usage{Model: "opus", InputTokens: 5, CostUSD: 0.5}}} // not more than the report itself
	if a := c.Agents["ada"]; !slices.Equal(a.Models, wantModels) || a.Session.Context != 40 {
		t.Errorf("by model %+v, context %d", a.Models, a.Session.Context)
	}
	for offset := range int64(4) {
		c.must("ada", SessionReported{Session: id, Offset: 20 + offset, Usage: change.Usage{InputTokens: math.MaxInt64, CostUSD: math.Inf(1)}})
	}
	if u := c.Usage; u.InputTokens < 0 || math.IsInf(u.CostUSD, 0) {
		t.Errorf("the sum overflowed: %+v", u)
	}
	if _, err := json.Marshal(c.Team); err != nil {
		t.Error(err)
	}
}

// TestProgramWaitsForTheNextDay checks that after a daily limit the program of a foreign loop stays
// stopped until the next day, without a timer that fires repeatedly.
func TestProgramWaitsForTheNextDay(t *testing.T) {
	program := quiet
	program.Policy.Foreign, program.Policy.Program = true, true
	program.Limits.CostPerDayUSD = 1
	c := newCrew(t, Limits{}, map[string]Settings{"dora": program})
	id := c.starts("dora")
	c.must("dora", SessionReported{Session: id, Offset: 1, Usage: change.Usage{CostUSD: 2}})
	c.ends("dora", control.Failed)
	tomorrow := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if at := c.Deadline(c.Agents["dora"]); !at.Equal(tomorrow) {
		t.Fatalf("it waits until %s, want %s", at, tomorrow)
	}
	c.must("dora", TimerFired{})
	c.at = tomorrow
	c.must("dora", TimerFired{})
	if c.session("dora") != "dora-2" {
		t.Error("it does not start on the next day")
	}
}
