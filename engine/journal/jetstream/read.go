package jetstream

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// caughtUp is how long a reader waits for the mirror to get what the servers have.
const caughtUp = 5 * time.Second

// AsOf says how far the mirror is, and when it was last known to have all that the servers had.
func (j *Journal) AsOf() (seq uint64, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mirrored.seq, j.asOf
}

// Damaged returns the *Damage or *Newer because of which the stream cannot be followed now, or nil.
func (j *Journal) Damaged() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.damage
}

// Head is the last Seq and its hash; see [journal.Journal]. It is as of AsOf: only an append is proof of the end.
func (j *Journal) Head(ctx context.Context) (uint64, journal.Hash, error) {
	if err := j.ready(ctx, 0); err != nil {
		return 0, journal.Hash{}, fmt.Errorf("read the journal's head: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mirrored.seq, j.mirrored.hash, nil
}

// Read yields what the query selects, from the mirror; see [journal.Journal].
func (j *Journal) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		if err := j.ready(ctx, q.Until); err != nil {
			yield(journal.Change{}, fmt.Errorf("read journal: %w", err))
			return
		}
		j.mirror.Read(ctx, q)(yield)
	}
}

// Watch reads on as changes come; see [journal.Journal].
func (j *Journal) Watch(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return journal.Follow(ctx, q, j.mirror.Read, &j.notifier, j.closed)
}
