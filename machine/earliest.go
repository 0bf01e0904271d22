package machine

import "time"

// Earliest returns the first of some deadlines; a zero time is none.
func Earliest(times ...time.Time) (first time.Time) {
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
