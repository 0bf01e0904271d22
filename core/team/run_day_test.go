package team

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
)

// SPEC, corrections: the sum of --daily-cost-limit belongs to the repository's day, which is that of the leader's time
// zone at its first use on that day. It never falls during that day, whichever zone the leader has by then and whatever
// its clock says. The next day begins at its end.
func TestRepositoryDay(t *testing.T) {
	zone := func(hours int) *time.Location { return time.FixedZone("", hours*60*60) }
	tokyo, berlin, angeles := zone(9), zone(1), zone(-8)
	at := func(text string) time.Time {
		when, err := time.Parse("01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return when.AddDate(2026, 0, 0)
	}
	type use struct {
		zone *time.Location
		at   string // UTC
		over bool   // after 1 more was used, with a limit of 3
	}
	for _, c := range []struct {
		name string
		uses []use
	}{
		{
			"one zone",
			[]use{
				{berlin, "11-20 22:00", false},
				{berlin, "11-20 22:30", false},
				{berlin, "11-20 22:59", true},
				{berlin, "11-20 23:00", false},
			},
		},
		{"UTC", []use{{nil, "11-20 00:00", false}, {nil, "11-20 12:00", false}, {nil, "11-20 23:59", true}, {nil, "11-21 00:00", false}}},
		{
			"flown west",
			[]use{
				{tokyo, "11-20 12:00", false},
				{tokyo, "11-20 14:00", false},
				{angeles, "11-20 14:59", true},
				{angeles, "11-20 15:30", true},
				{angeles, "11-21 08:00", false},
			},
		},
		{
			"flown west, past midnight there",
			[]use{{tokyo, "11-19 22:00", false}, {angeles, "11-19 23:00", false}, {angeles, "11-20 08:00", true}},
		},
		{
			"flown east",
			[]use{
				{angeles, "11-20 20:00", false},
				{angeles, "11-20 21:00", false},
				{tokyo, "11-20 22:00", true},
				{tokyo, "11-21 07:59", true},
				{tokyo, "11-21 08:00", false},
			},
		},
		{
			"to and fro",
			[]use{
				{berlin, "11-20 10:00", false},
				{angeles, "11-20 11:00", false},
				{tokyo, "11-20 16:00", true},
				{angeles, "11-20 22:00", true},
				{berlin, "11-20 22:30", true},
			},
		},
		{
			"the clock goes back",
			[]use{
				{nil, "11-20 00:10", false},
				{nil, "11-20 00:20", false},
				{nil, "11-19 23:50", true},
				{nil, "11-20 00:30", true},
				{nil, "11-21 00:00", false},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newCrew(t, Limits{}, two())
			w.runs("r", RunSettings{CostPerDayUSD: 3, AtLimit: LimitWarns}, "one ada")
			w.stepStarts("r", "one")
			for i, u := range c.uses {
				w.Zone, w.at = u.zone, at(u.at)
				w.uses("r", "one", 1)
				if limit := w.RunOver("r", w.at); (limit != "") != u.over {
					t.Errorf("use %d at %s: %q", i+1, u.at, limit)
				}
			}
		})
	}
}

// TestSumsOfDaysNeverFall checks it for the limits of an agent and of the team, whose days are UTC: a clock that goes back
// over midnight and forward again resets nothing.
func TestSumsOfDaysNeverFall(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit func(*Settings, *Limits)
	}{
		{"agent", func(s *Settings, _ *Limits) { s.Limits.CostPerDayUSD = 3 }},
		{"team", func(_ *Settings, l *Limits) { l.CostPerDayUSD = 3 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ada, all := quiet, Limits{}
			c.limit(&ada, &all)
			w := newCrew(t, all, map[string]Settings{"ada": ada})
			w.wants("ada", "continuous")
			s, midnight := w.starts("ada"), w.at.Truncate(24*time.Hour).Add(24*time.Hour)
			for i, after := range []time.Duration{time.Minute, -time.Minute, 2 * time.Minute} {
				w.at = midnight.Add(after)
				w.must("ada", SessionReported{Session: s, Offset: int64(i + 1), Usage: change.Usage{CostUSD: 1}})
				if over := w.OverLimit(w.Agents["ada"], w.at); (over != "") != (i == 2) {
					t.Errorf("report %d: %q", i+1, over)
				}
			}
			w.at = midnight.Add(24 * time.Hour)
			if over := w.OverLimit(w.Agents["ada"], w.at); over != "" {
				t.Errorf("on the next day: %q", over)
			}
			w.ends("ada", control.OK)
		})
	}
}

func repoUses(day string, usd float64) RepoDay {
	return RepoDay{DayUsage: DayUsage{Day: day, Usage: change.Usage{CostUSD: usd}}}
}

// TestFoldersThatBecomeOne checks the sum of a repository that a new leader knows under one path: that of the later day.
func TestFoldersThatBecomeOne(t *testing.T) {
	for _, c := range []struct{ a, b, want RepoDay }{
		{repoUses("2026-11-20", 1), repoUses("2026-11-20", 2), repoUses("2026-11-20", 3)},
		{repoUses("2026-11-21", 1), repoUses("2026-11-20", 2), repoUses("2026-11-21", 1)},
		{repoUses("2026-11-20", 1), repoUses("2026-11-21", 2), repoUses("2026-11-21", 2)},
		{RepoDay{}, repoUses("2026-11-21", 2), repoUses("2026-11-21", 2)},
	} {
		if got := c.a.With(c.b); got != c.want {
			t.Errorf("%+v with %+v is %+v", c.a, c.b, got)
		}
	}
}
