package loop

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fairlead-dev/fairlead/journal"
)

// subscriberLagMax bounds how many changes one slow watcher may leave in memory. At the limit its
// stream is closed, and it resumes from the journal after the last Seq that it had.
const subscriberLagMax = 1024

// ErrLagged ends the stream of a watcher that read too slowly. The watcher may resume where it was.
var ErrLagged = errors.New("this watcher fell more than 1,024 changes behind; ask again after the last sequence that it has")

// hub tells watchers what was appended. It never waits for a watcher.
type hub struct {
	mu     sync.Mutex
	subs   map[*subscriber]struct{}
	next   chan struct{} // closed at the next publish or close; nil: no goroutine waits for it
	closed error         // why nothing more comes
}

// subscriber is the buffer of one watcher. The hub's lock guards it.
type subscriber struct {
	waiting []journal.Change // not taken yet, in order
	over    error            // nothing more comes, and why
	wake    chan struct{}    // has room for one: there is something new
}

func newHub() *hub { return &hub{subs: map[*subscriber]struct{}{}} }

// publish adds a batch to every buffer. If it was kept, the batch must not be changed afterwards.
func (h *hub) publish(batch []journal.Change) (kept bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signal()
	for sub := range h.subs {
		switch {
		case len(sub.waiting)+len(batch) > subscriberLagMax:
			sub.waiting, sub.over = nil, ErrLagged
			delete(h.subs, sub)
		case len(sub.waiting) == 0:
			sub.waiting = batch[:len(batch):len(batch)]
		default:
			sub.waiting = append(sub.waiting, batch...)
		}
		sub.ring()
		kept = true
	}
	return kept
}

// changed returns a channel that is closed when the next batch is published, or when the hub closes.
func (h *hub) changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		h.next = make(chan struct{})
		if h.closed != nil {
			close(h.next)
		}
	}
	return h.next
}

// signal wakes everyone who waits for the next batch. The caller holds the lock.
func (h *hub) signal() {
	if h.next != nil && h.closed == nil {
		close(h.next)
		h.next = nil
	}
}

func (s *subscriber) ring() {
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

func (h *hub) subscribe() *subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := &subscriber{wake: make(chan struct{}, 1)}
	if h.closed != nil {
		sub.over = h.closed
		sub.ring()
		return sub
	}
	h.subs[sub] = struct{}{}
	return sub
}

func (h *hub) unsubscribe(sub *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, sub)
}

// take empties a buffer. Its changes come before the error that ends it.
func (h *hub) take(sub *subscriber) ([]journal.Change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := sub.waiting
	sub.waiting = nil
	return batch, sub.over
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

func (h *hub) close(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signal()
	h.closed = why
	for sub := range h.subs {
		sub.over = why
		sub.ring()
		delete(h.subs, sub)
	}
}

// Changes yields what the journal holds after a Seq, then what is appended, each change once and in
// order. An empty entity means all. It ends with ctx, with ErrLagged, or with ErrClosed. A change that
// comes live has no Hash; the journal has it.
func (l *Loop) Changes(ctx context.Context, after uint64, entity string) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		after := after           // the same sequence may be ranged over twice
		sub := l.hub.subscribe() // before the journal is read, so that no change is missed in between
		defer l.hub.unsubscribe(sub)
		for ch, err := range l.opts.Journal.Read(ctx, journal.Query{After: after, Entity: entity}) {
			if err != nil {
				yield(journal.Change{}, err)
				return
			}
			after = ch.Seq
			if !yield(ch, nil) {
				return
			}
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-sub.wake:
			}
			batch, over := l.hub.take(sub)
			for _, ch := range batch {
				if ch.Seq <= after || (entity != "" && ch.Entity != entity) {
					continue
				}
				after = ch.Seq
				if !yield(ch, nil) {
					return
				}
			}
			if over != nil {
				yield(journal.Change{}, over)
				return
			}
		}
	}
}
