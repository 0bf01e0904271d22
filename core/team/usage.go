package team

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// DayUsage is what was used on a day (UTC), by one model or by all. The sum of a day never falls, and never leaves the range of its type.
type DayUsage struct {
	Day string `json:"day,omitempty"` // 2026-11-20
	change.Usage

	Sessions int `json:"sessions,omitempty"` // number of opened sessions; only in the usage of an agent's days
}

const usageDaysMax = 31 // for a monthly bill

// On returns the usage of a day; that of an earlier day does not count. A later day stands: the clock went back, and what
// was used still counts.
func (u DayUsage) On(day string) DayUsage {
	if u.Day < day {
		return DayUsage{Day: day}
	}
	return u
}

// RepoDay is the usage of all runs of a repository on a day of that repository. The day has the time zone of the leader
// at its first use, and keeps it: another leader, or a machine that travels, does not begin the sum anew.
type RepoDay struct {
	DayUsage
	Ends time.Time `json:"ends,omitzero"` // its midnight
}

// At returns the day of a time: the last one until it ends, then that of the zone; nil: UTC.
func (d RepoDay) At(at time.Time, zone *time.Location) RepoDay {
	if at.Before(d.Ends) {
		return d
	}
	if zone == nil {
		zone = time.UTC
	}
	local := at.In(zone)
	year, month, day := local.Date()
	return RepoDay{d.On(local.Format(time.DateOnly)), time.Date(year, month, day+1, 0, 0, 0, 0, zone).UTC()}
}

// Next is when a day ends after a time: that of the agents' and the team's limits (UTC), or this one, whichever is first.
func (d RepoDay) Next(at time.Time) time.Time {
	if next := at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour); next.Before(d.Ends) {
		return next
	}
	return d.Ends
}

// With adds the usage of another folder that is the same repository. Only the later day counts.
func (d RepoDay) With(o RepoDay) RepoDay {
	if o.Day > d.Day {
		d, o = o, d
	}
	if o.Day == d.Day {
		d.DayUsage = d.Plus(o.DayUsage)
	}
	return d
}

// Plus adds what was used besides on the same day.
func (u DayUsage) Plus(more DayUsage) DayUsage {
	u.Usage = u.Usage.Plus(more.Usage)
	u.Sessions += more.Sessions
	return u
}

// addToDays adds a report to its day. A report from before the newest day counts for the newest.
func addToDays(days []DayUsage, more DayUsage) []DayUsage {
	if more.Empty() && more.Sessions == 0 {
		return days
	}
	last := len(days) - 1
	if last >= 0 && days[last].Day >= more.Day {
		next := append(days[:last:last], days[last].Plus(more))
		return next
	}
	days = append(days[:len(days):len(days)], more)
	return days[max(0, len(days)-usageDaysMax):]
}
