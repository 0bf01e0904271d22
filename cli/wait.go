package cli

import (
	"context"
	"time"
)

// DownPoll is how often a command checks whether the daemon still runs: the daemon cannot report its
// own end.
const DownPoll = 50 * time.Millisecond

// Pause waits, or returns early if ctx ends.
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

// FileWait is how long a command waits until agent_state.json matches the journal. It normally takes
// a millisecond; a longer time points to a problem such as a full disk, which `fairlead why`
// reports.
const FileWait = 5 * time.Second
