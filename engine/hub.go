package engine

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fairlead-dev/fairlead/journal"
)

// subscriberLagMax bounds what one slow watcher may keep in memory; then its stream is
// closed, and it resumes from the journal by the last Seq that it had.
const subscriberLagMax = 1024

// ErrLagged ends the stream of a watcher that read too slowly. It may ask again from where it was.
var ErrLagged = errors.New("this watcher fell more than 1,024 changes behind; ask again after the last sequence that it has")

// hub tells watchers what was appended. It never waits for one.
type hub struct {
	mu     sync.Mutex
	subs   map[*subscriber]struct{}
	closed bool
}

type subscriber struct {
	batches chan []journal.Change
	lagged  bool
}

func newHub() *hub { return &hub{subs: map[*subscriber]struct{}{}} }

func (h *hub) publish(batch []journal.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for sub := range h.subs {
		select {
		case sub.batches <- batch:
		default:
			sub.lagged = true
			close(sub.batches)
			delete(h.subs, sub)
		}
	}
}

func (h *hub) subscribe() *subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := &subscriber{batches: make(chan []journal.Change, subscriberLagMax)}
	if h.closed {
		close(sub.batches)
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

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for sub := range h.subs {
		close(sub.batches)
		delete(h.subs, sub)
	}
}

// Changes yields what the journal holds after a Seq, then what comes, each change once
// and in order. Entity empty means all. It ends with ctx, with ErrLagged, or with ErrClosed.
func (e *Engine) Changes(ctx context.Context, after uint64, entity string) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		sub := e.hub.subscribe() // before the journal is read, so that nothing falls between
		defer e.hub.unsubscribe(sub)
		for ch, err := range e.opts.Journal.Read(ctx, journal.Query{After: after, Entity: entity}) {
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
			case batch, ok := <-sub.batches:
				if !ok {
					yield(journal.Change{}, sub.ending(e.hub))
					return
				}
				for _, ch := range batch {
					if ch.Seq <= after || (entity != "" && ch.Entity != entity) {
						continue
					}
					if !yield(ch, nil) {
						return
					}
				}
			}
		}
	}
}

func (s *subscriber) ending(h *hub) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.lagged {
		return ErrLagged
	}
	return ErrClosed
}
