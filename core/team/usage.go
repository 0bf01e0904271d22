package team

import "time"

// Usage is the usage of one day (UTC), according to the agents' own reports. Any number can be in a report: Sane takes the impossible ones
// out. The sum of a day never falls, and never leaves the range of its type.
type Usage struct {
	Day          string  `json:"day,omitempty"` // 2026-11-20
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`

	Sessions int `json:"sessions,omitempty"` // number of opened sessions; only in the usage of an agent's days
}

const usageDaysMax = 31 // for a monthly bill

// On returns the usage of a day; that of an earlier day does not count. A later day stands: the clock went back, and what
// was used still counts.
func (u Usage) On(day string) Usage {
	if u.Day < day {
		return Usage{Day: day}
	}
	return u
}

// RepoDay is the usage of all runs of a repository on a day of that repository. The day has the time zone of the leader
// at its first use, and keeps it: another leader, or a machine that travels, does not begin the sum anew.
type RepoDay struct {
	Usage
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
		d.Usage = d.Plus(o.Usage)
	}
	return d
}

// usageMax limits one report and a total: agents may report anything, and an overflow would be below
// every limit.
const usageMax = 1 << 53

// Plus adds a report of the same day.
func (u Usage) Plus(more Usage) Usage {
	u.InputTokens = min(u.InputTokens+more.InputTokens, usageMax)
	u.OutputTokens = min(u.OutputTokens+more.OutputTokens, usageMax)
	u.CostUSD = min(u.CostUSD+more.CostUSD, usageMax)
	u.Sessions += more.Sessions
	return u
}

// addToDays adds a report to its day. A report from before the newest day counts for the newest.
func addToDays(days []Usage, more Usage) []Usage {
	if more.InputTokens == 0 && more.OutputTokens == 0 && more.CostUSD == 0 && more.Sessions == 0 {
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

// Sane returns a report without impossible values.
func (u Usage) Sane() Usage {
	u.Sessions = 0
	u.InputTokens = min(max(u.InputTokens, 0), usageMax)
	u.OutputTokens = min(max(u.OutputTokens, 0), usageMax)
	if !(u.CostUSD > 0) { // also false for NaN
		u.CostUSD = 0
	}
	u.CostUSD = min(u.CostUSD, usageMax)
	return u
}
