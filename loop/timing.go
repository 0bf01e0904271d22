package loop

import (
	"context"
	"runtime"
	"time"
)

// processorsMin is how many goroutines of a daemon may run at once, on a smaller machine too. One that waits for a sync
// counts among them until the runtime notices. The loop and a writer of files often wait at the same time, and on two
// processors an answer that was ready waited for both.
const processorsMin = 4

// Processors is the value of GOMAXPROCS for the process of a loop.
func Processors() int { return max(processorsMin, runtime.GOMAXPROCS(0)) }

// The pause before an action that failed is tried again; it doubles.
const (
	RetryFirst = 10 * time.Millisecond // often the file or socket was only not there yet
	RetryMax   = 5 * time.Second       // a host that hangs must not be asked more often
)

// Rest waits, and says whether the context is still alive.
func Rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Sooner is the shorter of two durations; 0 means never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Bucket allows a few events at once, then one per interval.
type Bucket struct {
	used  float64
	Since time.Time // of the last event
}

// Wait takes one event (0), or says how long until one is allowed.
func (b *Bucket) Wait(now time.Time, most float64, every time.Duration) time.Duration {
	b.used = max(0, b.used-float64(now.Sub(b.Since))/float64(every))
	b.Since = now
	if b.used+1 <= most {
		b.used++
		return 0
	}
	return max(time.Millisecond, time.Duration((b.used+1-most)*float64(every)))
}
