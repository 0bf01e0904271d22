package journaltest

import (
	"context"
	"errors"
	"sync"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// ErrInjected is wrapped in the error of an append that fails on request.
var ErrInjected = errors.New("injected fault: no space left on device")

// Faults is a journal that fails on request. Everything except Append goes directly to the wrapped
// journal. It is safe for concurrent use.
type Faults struct {
	journal.Journal

	mu      sync.Mutex
	before  int
	after   int
	appends int
	stored  int
	gate    chan struct{} // not nil while appends are held
	seen    chan []journal.Change
}

// Faulty wraps a journal. At first nothing fails.
func Faulty(j journal.Journal) *Faults { return &Faults{Journal: j} }

// FailBefore makes the next n appends fail with nothing stored.
func (f *Faults) FailBefore(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = n
}

// FailAfter makes the next n appends fail although they were stored, like a crash between the sync
// and the answer. FailBefore applies first if both are set.
func (f *Faults) FailAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = n
}

// Hold makes appends wait, nothing stored yet, until release is called: what is to be
// visible only after the sync must not be visible meanwhile. Entered receives each batch
// that arrives; it has room for many, and those beyond are not sent.
func (f *Faults) Hold() (entered <-chan []journal.Change, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const room = 256 // no test holds more appends than this
	gate := make(chan struct{})
	f.gate, f.seen = gate, make(chan []journal.Change, room)
	return f.seen, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.gate == gate {
			f.gate, f.seen = nil, nil
		}
		close(gate)
	})
}

// Appends counts the calls of Append so far, failed ones too.
func (f *Faults) Appends() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.appends
}

// Stored counts the changes that appends have stored, also where they said otherwise.
func (f *Faults) Stored() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stored
}

// Append appends, or fails as configured.
func (f *Faults) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	before, after, err := f.enter(ctx, batch)
	if err != nil {
		return 0, err
	}
	if before {
		return 0, errors.Join(errors.New("append to journal"), ErrInjected)
	}
	last, err := f.Journal.Append(ctx, batch, expect...)
	if err == nil {
		f.mu.Lock()
		f.stored += len(batch)
		f.mu.Unlock()
	}
	if err == nil && after {
		return 0, errors.Join(errors.New("append to journal"), ErrInjected)
	}
	return last, err
}

// enter counts, waits where appends are held, and takes a fault where one is ordered.
func (f *Faults) enter(ctx context.Context, batch []journal.Change) (before, after bool, err error) {
	f.mu.Lock()
	f.appends++
	gate := f.gate
	if gate != nil {
		select {
		case f.seen <- batch:
		default:
		}
	}
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false, false, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.before > 0:
		f.before--
		return true, false, nil
	case f.after > 0:
		f.after--
		return false, true, nil
	}
	return false, false, nil
}
