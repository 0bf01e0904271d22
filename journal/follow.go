package journal

import (
	"context"
	"iter"
	"sync"
)

// Bell wakes whoever waits for the next append. The zero value is ready.
type Bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// Next gives a channel that is closed at the next Ring. Take it before looking at
// what there is: an append in between is then not missed.
func (b *Bell) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Ring wakes everybody who waits. It costs next to nothing where nobody does.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Follow is the Watch of a backend, made of its Read: it reads on from the last
// change that was taken whenever the bell rings. It ends without an error when ctx
// ends or Until was yielded, and with [ErrClosed] when closed is closed.
func Follow(ctx context.Context, q Query, read func(context.Context, Query) iter.Seq2[Change, error], bell *Bell, closed <-chan struct{}) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		q := q // the same iterator may be ranged over twice
		for ctx.Err() == nil {
			next := bell.Next()
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
