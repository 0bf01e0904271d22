// Package backoff says how long to wait before something that failed is tried again.
//
// The core uses it, so it knows no clock; package retry waits.
//
// The one promise: the waits double and never pass their limit.
package backoff

import "time"

// After is the wait after a number of consecutive failures: first after one, then twice as long each time, and at most most.
func After(first, most time.Duration, failures int) time.Duration {
	wait := first
	for n := 1; n < failures && wait > 0; n++ {
		if wait > most/2 {
			return most
		}
		wait *= 2
	}
	return min(wait, most)
}
