package journal

import (
	"context"
	"iter"
	"sync"
)

// Notifier wakes goroutines that wait for the next append. The zero value is ready to use.
type Notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

// Next returns a channel that is closed at the next Ring. Call it before reading, so that an append
// in between is not missed.
func (b *Notifier) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Ring wakes all waiting goroutines. It costs almost nothing if there are none.
func (b *Notifier) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Follow implements Watch with a backend's Read: at each ring it continues after the last change. It
// ends without an error when ctx ends or Until was yielded, and with [ErrClosed] when closed is
// closed.
func Follow(ctx context.Context, q Query, read func(context.Context, Query) iter.Seq2[Change, error], notifier *Notifier,
	closed <-chan struct{},
) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		q := q // the same iterator may be ranged over twice
		for ctx.Err() == nil {
			next := notifier.Next()
			for c, err := range read(ctx, q) {
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					yield(Change{}, err)
					return
				}
				q.After = c.Seq
				if !yield(c, nil) {
					return
				}
			}
			if q.Until != 0 && q.After >= q.Until {
				return
			}
			select {
			case <-ctx.Done():
			case <-closed:
				yield(Change{}, ErrClosed)
				return
			case <-next:
			}
		}
	}
}
