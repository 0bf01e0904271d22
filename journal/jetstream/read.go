package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
)

// caughtUp is how long a reader waits for the mirror to get what the servers have.
const caughtUp = 5 * time.Second

// refresh asks the servers for the end of the stream and waits for the mirror. If they don't answer, the
// mirror is read as it is, and they are not asked again for a while.
func (j *Journal) refresh(ctx context.Context) {
	j.mu.Lock()
	skip := time.Now().Before(j.silent) || j.damage != nil
	j.mu.Unlock()
	if skip || !j.remote.nc.IsConnected() {
		return
	}
	info, err := j.remote.state(ctx, lookWait)
	if err != nil {
		j.mu.Lock()
		j.silent = time.Now().Add(caughtUp)
		j.mu.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, caughtUp)
	defer cancel()
	if j.reach(ctx, func() bool { return j.mirrored.place >= info.State.LastSeq }) == nil {
		j.mu.Lock()
		j.asOf = time.Now()
		j.mu.Unlock()
	}
}

// ready makes the mirror as new as can be, up to a change or all. What this handle has stored itself is always there.
func (j *Journal) ready(ctx context.Context, until uint64) error {
	select {
	case <-j.closed:
		return journal.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	has := until != 0 && until <= j.mirrored.seq
	j.mu.Unlock()
	if has {
		return nil
	}
	j.refresh(ctx)
	j.mu.Lock()
	own := j.end.seq
	j.mu.Unlock()
	soon, cancel := context.WithTimeout(ctx, ownWait)
	defer cancel()
	if err := j.reach(soon, func() bool { return j.mirrored.seq >= own }); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	return j.keepOwn(ctx)
}

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
	return journal.Follow(ctx, q, j.mirror.Read, &j.bell, j.closed)
}
