package cli

import (
	"context"
	"time"
)

// DownPoll is how often the daemon is asked whether it is still there: it cannot tell us that it is not.
const DownPoll = 50 * time.Millisecond

// Pause waits, unless somebody has had enough.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
