// Package usage adds up what agents use, day by day.
//
// The numbers are reports of agents, and any number can be in one. [Usage.Sane] takes the impossible ones out, and no sum
// becomes larger than what a limit can still be compared with.
//
// The one promise: a sum never falls, and never leaves the range of its type.
package usage

// Usage is the usage of one day (UTC), according to the agents' own reports.
type Usage struct {
	Day          string  `json:"day,omitempty"` // 2026-11-20
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`

	Sessions int `json:"sessions,omitempty"` // number of opened sessions; only in the usage of an agent's days
}

const daysMax = 31 // for a monthly bill

// On returns the usage of a day; that of another day does not count.
func (u Usage) On(day string) Usage {
	if u.Day != day {
		return Usage{Day: day}
	}
	return u
}

// most limits one report and a total: agents may report anything, and an overflow would be below
// every limit.
const most = 1 << 53

// Plus adds a report of the same day.
func (u Usage) Plus(more Usage) Usage {
	u.InputTokens = min(u.InputTokens+more.InputTokens, most)
	u.OutputTokens = min(u.OutputTokens+more.OutputTokens, most)
	u.CostUSD = min(u.CostUSD+more.CostUSD, most)
	u.Sessions += more.Sessions
	return u
}

// Days adds a report to its day. A report from before the newest day counts for the newest.
func Days(days []Usage, more Usage) []Usage {
	if more.InputTokens == 0 && more.OutputTokens == 0 && more.CostUSD == 0 && more.Sessions == 0 {
		return days
	}
	last := len(days) - 1
	if last >= 0 && days[last].Day >= more.Day {
		next := append(days[:last:last], days[last].Plus(more))
		return next
	}
	days = append(days[:len(days):len(days)], more)
	return days[max(0, len(days)-daysMax):]
}

// Sane returns a report without impossible values.
func (u Usage) Sane() Usage {
	u.Sessions = 0
	u.InputTokens = min(max(u.InputTokens, 0), most)
	u.OutputTokens = min(max(u.OutputTokens, 0), most)
	if !(u.CostUSD > 0) { // also false for NaN
		u.CostUSD = 0
	}
	u.CostUSD = min(u.CostUSD, most)
	return u
}
