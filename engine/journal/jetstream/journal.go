package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
)

// Options say which journal a host opens.
type Options struct {
	Stream   string        // see Create
	Mirror   string        // path of the SQLite journal of this host; its folder must exist
	Patience time.Duration // how long Append waits for proof; 0: 30 s
	Report   func(error)   // called once for each *Damage and *Newer that the mirror meets; may be nil
}

const patience = 30 * time.Second // a leader that is cut off from its peers, but not from clients, resigns in 28

// Journal is a handle of one host. Its methods may be called from many goroutines.
type Journal struct {
	*follower
	writer writer
	stop   context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
}

var _ journal.Journal = (*Journal)(nil)

// Open opens the journal that a stream keeps, and brings the mirror of this host up to its end. The connection stays the
// caller's. If the stream and the mirror do not fit, the error is a *Damage and neither is changed; see also Fill.
func Open(ctx context.Context, nc *nats.Conn, opts Options) (j *Journal, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open journal: %w", err)
		}
	}()
	r, err := reach(ctx, nc, opts.Stream)
	if err != nil {
		return nil, err
	}
	mirror, err := sqlite.Open(ctx, opts.Mirror)
	if err != nil {
		return nil, err
	}
	if opts.Patience == 0 {
		opts.Patience = patience
	}
	f := &follower{remote: r, mirror: mirror, report: opts.Report, closed: make(chan struct{}), wanted: make(chan struct{}, 1)}
	j = &Journal{follower: f, writer: writer{follower: f, patience: opts.Patience, queue: queue{more: make(chan struct{}, 1)}}}
	j.writer.ctx, j.stop = context.WithCancel(context.Background())
	if err := j.begin(ctx); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// begin finds where the mirror ends in the stream, and follows the stream from there.
func (j *Journal) begin(ctx context.Context) (err error) {
	if j.mirrored.seq, j.mirrored.hash, err = j.mirror.Head(ctx); err != nil {
		return err
	}
	if j.versions, err = j.mirror.Versions(ctx); err != nil {
		return err
	}
	info, err := j.remote.state(ctx, readWait)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", j.remote.name, err)
	}
	if j.mirrored.place, j.overlap, err = j.remote.find(ctx, info.State.FirstSeq, info.State.LastSeq, j.mirrored.seq); err != nil {
		return err
	}
	j.end = j.mirrored
	j.near(ctx, info.State.LastSeq)
	j.work.Go(func() { j.feed(j.writer.ctx) })
	j.work.Go(j.writer.write)
	return j.reach(ctx, func() bool { return j.mirrored.place >= info.State.LastSeq })
}

// Append stores a batch; see [journal.Journal]. Appends that wait at the same time become one message. If there is no
// proof that the batch is stored, and none that it is not, the error is an *Unproven.
func (j *Journal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	if err := journal.CheckBatch(batch, expect); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	r := newRequest(batch, expect)
	if !j.writer.queue.put(r) {
		return 0, fmt.Errorf("append to journal: %w", journal.ErrClosed)
	}
	var a answer
	select {
	case a = <-r.done:
	case <-ctx.Done():
		if j.writer.queue.withdraw(r) {
			return 0, fmt.Errorf("append to journal: %w", ctx.Err())
		}
		return 0, fmt.Errorf("append to journal: %w: the batch was sent and may be stored, now or later", ctx.Err())
	}
	var conflict *journal.Conflict
	if a.err != nil && !errors.As(a.err, &conflict) {
		return 0, fmt.Errorf("append to journal: %w", a.err)
	}
	return a.last, a.err
}

// Close ends this handle; appends under way end with [journal.ErrClosed] and may be stored. It may be called twice.
func (j *Journal) Close() (err error) {
	j.once.Do(func() {
		j.stop()
		close(j.closed)
		j.work.Wait()
		j.writer.queue.close()
		err = j.mirror.Close()
	})
	return err
}
