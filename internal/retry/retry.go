// Package retry waits before something that failed is tried again.
//
// How long is decided by backoff.After, as in the core, which only names the time. Callers stop at a limit of their own, or when
// their context ends.
//
// The one promise: a wait ends at once when its context ends.
package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fairlead-dev/fairlead/internal/backoff"
)

// Pauses are the pauses between tries: First after the first one, then twice as long each time, up to Most.
type Pauses struct {
	First, Most time.Duration
	Spread      bool // up to half of each pause is left out at random, so that many callers do not come at once

	failures int
}

// Next is the pause after one more failure.
func (p *Pauses) Next() time.Duration {
	p.failures++
	wait := backoff.After(p.First, p.Most, p.failures)
	if p.Spread {
		return wait/2 + rand.N(wait/2) //nolint:gosec // nothing depends on this number being secret
	}
	return wait
}

// Rest waits for the next pause, and says whether the context is still alive.
func (p *Pauses) Rest(ctx context.Context) bool { return Rest(ctx, p.Next()) }

// Reset begins with the first pause again.
func (p *Pauses) Reset() { p.failures = 0 }

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
