package loop

import (
	"runtime"
	"time"

	"github.com/fairlead-dev/fairlead/internal/retry"
)

// processorsMin is how many goroutines of a daemon may run at once, on a smaller machine too. One that waits for a sync
// counts among them until the runtime notices. The loop and a writer of files often wait at the same time, and on two
// processors an answer that was ready waited for both.
const processorsMin = 4

// Processors is the value of GOMAXPROCS for the process of a loop.
func Processors() int { return max(processorsMin, runtime.GOMAXPROCS(0)) }

// The first and the longest of the pauses of Retry.
const (
	RetryFirst = 10 * time.Millisecond // often the file or socket was only not there yet
	RetryMax   = 5 * time.Second       // a host that hangs must not be asked more often
)

// Retry are the pauses before an action that failed is tried again.
func Retry() retry.Pauses { return retry.Pauses{First: RetryFirst, Most: RetryMax} }

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

// Buckets holds a Bucket for each name: the rates of agents.
type Buckets struct {
	Most  float64       // events at once
	Every time.Duration // then one per interval

	byName map[string]*Bucket
}

const bucketsMax = 1024 // names; above that the counts begin again, because names that are gone are not known here

// Wait takes one event of a name (0), or says how long until one is allowed.
func (b *Buckets) Wait(name string, now time.Time) time.Duration {
	if b.byName == nil || len(b.byName) >= bucketsMax {
		b.byName = map[string]*Bucket{}
	}
	if b.byName[name] == nil {
		b.byName[name] = &Bucket{}
	}
	return b.byName[name].Wait(now, b.Most, b.Every)
}
