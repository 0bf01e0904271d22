package loop

import (
	"context"
	"iter"
	"sort"
	"sync"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// Limits of what is kept in memory for all watchers together. A watcher that is behind it reads the journal, a part at
// a time: it keeps no reader of the journal open while it waits for its own client.
const (
	ringMax      = 1024
	ringBytesMax = 4 << 20 // one change may have 1 MiB
	partMost     = 512
	partMostSize = 1 << 20
)

// ring keeps the newest changes for all watchers. It never waits for one.
type ring struct {
	mu      sync.Mutex
	changes []Change // all after base, in order
	base    uint64
	bytes   int
	more    chan struct{} // closed when there are newer changes, or none will come
	closed  error         // why no more come
}

func newRing() *ring { return &ring{more: make(chan struct{})} }

// begin says where the journal ends before the first change is published.
func (r *ring) begin(head uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = head
}

// publish adds a batch, which must not be changed afterwards, and wakes everyone who waits.
func (r *ring) publish(batch []journal.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range batch {
		r.changes = append(r.changes, Change{batch[i], new(text)}) // readers have slices of what was there before
		r.bytes += len(batch[i].Data)
	}
	for len(r.changes) > ringMax || r.bytes > ringBytesMax {
		r.base = r.changes[0].Seq
		r.bytes -= len(r.changes[0].Data)
		r.changes = r.changes[1:]
	}
	if r.closed == nil {
		close(r.more)
		r.more = make(chan struct{})
	}
}

// since returns the changes after a place. behind: the oldest of them are not here.
func (r *ring) since(after uint64) (part Part, behind bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after < r.base {
		return Part{Upto: r.base}, true, nil
	}
	first := sort.Search(len(r.changes), func(i int) bool { return r.changes[i].Seq > after })
	part = Part{Changes: r.changes[first:len(r.changes):len(r.changes)], Upto: after, More: r.more}
	if n := len(part.Changes); n > 0 {
		part.Upto = part.Changes[n-1].Seq
	} else if r.closed != nil {
		return part, false, r.closed
	}
	return part, false, nil
}

// changed returns a channel that is closed when the next batch is published, or when the ring closes.
func (r *ring) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.more
}

func (r *ring) close(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil {
		r.closed = why
		close(r.more)
	}
}

// Change is a change as a watcher gets it.
type Change struct {
	journal.Change
	shared *text // of all watchers that get it from the ring; nil: it was read from the journal for one watcher
}

// text is a change in the form in which watchers send it on. It is kept as long as its change, so the limits of the ring
// are its limits, too.
type text struct {
	made  sync.Once
	bytes []byte
}

// Text returns the change in the form that encode makes. The watchers of the ring share what the first of them made, so
// all use one function, and none changes the bytes.
func (c *Change) Text(encode func(*journal.Change) []byte) []byte {
	if c.shared == nil {
		return encode(&c.Change)
	}
	c.shared.made.Do(func() { c.shared.bytes = encode(&c.Change) })
	return c.shared.bytes
}

// Part is what follows a place in the journal.
type Part struct {
	Changes []Change
	Upto    uint64          // the place after them: nothing is left out up to here
	More    <-chan struct{} // closed when there may be more
}

// atOnce is the More of a part that does not reach the newest change.
var atOnce = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Since returns what follows a place: each change once and in order, for a caller that goes on after Upto. An empty
// entity means all. It does not wait: there may be nothing yet. After the last change of a loop that has ended the error
// is ErrClosed. A change that comes live has no Hash; the journal has it.
func (l *Loop) Since(ctx context.Context, after uint64, entity string) (Part, error) {
	part, behind, err := l.ring.since(after)
	if behind {
		return l.older(ctx, after, part.Upto, entity)
	}
	if entity != "" {
		all := part.Changes
		part.Changes = nil
		for i := range all {
			if all[i].Entity == entity {
				part.Changes = append(part.Changes, all[i])
			}
		}
	}
	return part, err
}

// older reads a part of the journal that is no longer in the ring.
func (l *Loop) older(ctx context.Context, after, until uint64, entity string) (Part, error) {
	part, bytes := Part{Upto: until, More: atOnce}, 0
	for ch, err := range l.opts.Journal.Read(ctx, journal.Query{After: after, Until: until, Entity: entity}) {
		if err != nil {
			return Part{}, err
		}
		part.Changes = append(part.Changes, Change{Change: ch})
		if bytes += len(ch.Data); len(part.Changes) == partMost || bytes >= partMostSize {
			part.Upto = ch.Seq
			break
		}
	}
	return part, nil
}

// Changes yields what [Loop.Since] returns, and waits for more. It ends with ctx, or with ErrClosed.
func (l *Loop) Changes(ctx context.Context, after uint64, entity string) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		for after := after; ; { // the same sequence may be ranged over twice
			part, err := l.Since(ctx, after, entity)
			if err != nil {
				yield(journal.Change{}, err)
				return
			}
			for i := range part.Changes {
				if !yield(part.Changes[i].Change, nil) {
					return
				}
			}
			after = part.Upto
			select {
			case <-ctx.Done():
				return
			case <-part.More:
			}
		}
	}
}
