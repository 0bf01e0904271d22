package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/journal/attempt"
	"github.com/fairlead-dev/fairlead/machine/host"
)

// Keeper renews the lease of a host. Use NewKeeper.
type Keeper struct {
	store     *Store
	now       func() host.BootTime
	reconnect func() error            // to another server
	extended  func(end host.BootTime) // the deadline of the shims

	mu     sync.Mutex
	guard  *host.Guard
	silent time.Duration // since the last proof
}

// NewKeeper returns the keeper of a daemon that has just started. extended gets each new deadline of the host's leased
// sessions. reconnect is that of the connection (ForceReconnect).
func NewKeeper(store *Store, guard *host.Guard, now func() host.BootTime, reconnect func() error, extended func(end host.BootTime)) *Keeper {
	return &Keeper{store: store, guard: guard, now: now, reconnect: reconnect, extended: extended}
}

// Guard gives access to the host's guard, which is shared with the renewals.
func (k *Keeper) Guard(use func(*host.Guard)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	use(k.guard)
}

// Step sends a renewal if one is due, and takes in the answer. Call it every second. Its error is that of the
// renewal; the lease then holds on until its deadline.
func (k *Keeper) Step(ctx context.Context) error {
	k.mu.Lock()
	r, due := k.guard.Renew(k.now())
	name := k.guard.Host
	k.mu.Unlock()
	if !due {
		return nil
	}
	sent := k.now()
	revision, err := k.store.set(ctx, Entry{Host: name, Incarnation: r.Incarnation, Daemon: r.Daemon, N: r.N}, r.Revision)
	if err == nil {
		k.take(func() { k.guard.Stored(r, revision) })
		return nil
	}
	// The answer may have been lost, or another one may have changed the entry. It shows which.
	seen, revision, lookErr := k.store.get(ctx, name, r.Incarnation)
	proof := lookErr == nil && revision > r.Revision
	if proof {
		k.take(func() {
			if k.guard.Incarnation == r.Incarnation {
				k.guard.SawLease(revision, host.RenewalID{Daemon: seen.Daemon, N: seen.N}, seen.Closed)
			}
		})
		if !seen.Closed && seen.Daemon == r.Daemon && seen.N == r.N {
			return nil
		}
	}
	err = fmt.Errorf("renew the lease of host %s: %w", name, err)
	if proof {
		return err
	}
	if k.silence(time.Duration(k.now() - sent)) {
		if again := k.reconnect(); again != nil {
			return fmt.Errorf("%w (and connecting to another server: %w)", err, again)
		}
	}
	return err
}

// take changes the guard, and hands on a deadline that has moved.
func (k *Keeper) take(change func()) {
	k.mu.Lock()
	was, _ := k.guard.Deadline()
	change()
	end, held := k.guard.Deadline()
	k.silent = 0
	k.mu.Unlock()
	if held && end > was {
		k.extended(end)
	}
}

// silence adds to the time without proof, and reports whether it is long enough to connect elsewhere.
func (k *Keeper) silence(took time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.silent += took; k.silent < attempt.ReconnectAfter {
		return false
	}
	k.silent = 0
	return true
}
