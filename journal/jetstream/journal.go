package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/attempt"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
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
	opts    Options
	remote  *remote
	mirror  *sqlite.Journal
	overlap uint64        // the last message whose batch the mirror had in part or whole when it was opened
	wanted  chan struct{} // has room for one: a reader waits for the mirror
	bell    journal.Bell  // rings when the mirror grew, or damage was found or has gone
	queue   queue

	mu       sync.Mutex
	end      position          // what the next append follows: the mirror's end, or own changes that are stored and not yet mirrored
	mirrored position          // the mirror's end
	own      []pending         // what is between them
	versions map[string]uint64 // of the entities, at end
	damage   error             // the stream cannot be followed now
	asOf     time.Time         // when the mirror was last known to have all
	silent   time.Time         // until then no server is asked only to see more

	keeping sync.Mutex // held by the one that writes to the mirror, and taken before mu

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	closed chan struct{}
	work   sync.WaitGroup
	once   sync.Once
}

var _ journal.Journal = (*Journal)(nil)

// position is a place in the stream, and the last change up to there.
type position struct {
	place uint64 // of the message
	seq   uint64
	hash  journal.Hash
}

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
	j = &Journal{opts: opts, remote: r, mirror: mirror, closed: make(chan struct{}), wanted: make(chan struct{}, 1)}
	j.ctx, j.stop = context.WithCancel(context.Background())
	j.queue.more = make(chan struct{}, 1)
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
	j.work.Go(func() { j.feed(j.ctx) })
	j.work.Go(j.write)
	return j.reach(ctx, func() bool { return j.mirrored.place >= info.State.LastSeq })
}

// find returns the place before the batch that holds a change, and the place of its last message.
func (r *remote) find(ctx context.Context, first, last, seq uint64) (before, ends uint64, err error) {
	if seq == 0 {
		return 0, 0, nil
	}
	if last == 0 {
		return 0, 0, &Damage{Seq: 1, What: fmt.Sprintf("it is empty, and this host has %d changes", seq), Do: "if this is the right stream, fill it from the longest mirror that verifies"}
	}
	low, high := first, last // the message that holds the change is at low or behind it
	for low < high {
		mid := high - (high-low)/2
		m, err := r.one(ctx, mid)
		if err != nil {
			return 0, 0, err
		}
		if m.first <= seq {
			low = mid
		} else {
			high = mid - 1
		}
	}
	begins, ends, b, err := r.batchAt(ctx, low)
	if err != nil {
		return 0, 0, err
	}
	if b.last() < seq {
		return 0, 0, &Damage{Place: ends + 1, Seq: b.last() + 1, What: fmt.Sprintf("it is missing, and this host has %d changes", seq)}
	}
	return begins - 1, ends, nil
}

// batchAt reads the batch that a message is of, and says where its first and last messages are.
func (r *remote) batchAt(ctx context.Context, place uint64) (begins, ends uint64, b *batch, err error) {
	m, err := r.one(ctx, place)
	if err != nil {
		return 0, 0, nil, err
	}
	var t taker
	begins = place - min(place, uint64(m.part)) + 1
	ends = begins + uint64(m.parts) - 1
	for at := begins; at <= ends; at++ {
		raw, err := r.message(ctx, at, readWait)
		switch {
		case err != nil:
			return 0, 0, nil, fmt.Errorf("read message %d of stream %s: %w", at, r.name, err)
		case raw == nil:
			return 0, 0, nil, &Damage{Place: at, Seq: m.first, What: errMissing.Error()}
		}
		if b, err = t.add(raw); err != nil {
			return 0, 0, nil, wrong(at, m.first, err)
		}
	}
	return begins, ends, b, nil
}

// one reads a message that must be there.
func (r *remote) one(ctx context.Context, place uint64) (message, error) {
	raw, err := r.message(ctx, place, readWait)
	if err != nil {
		return message{}, fmt.Errorf("read message %d of stream %s: %w", place, r.name, err)
	}
	if raw == nil {
		return message{}, &Damage{Place: place, What: errMissing.Error()}
	}
	m, err := parse(raw)
	if err != nil {
		return message{}, wrong(place, 0, err)
	}
	return m, nil
}

// reach waits until the condition holds, which is looked at under the lock.
func (j *Journal) reach(ctx context.Context, holds func() bool) error {
	for {
		next := j.bell.Next()
		j.mu.Lock()
		is, damage := holds(), j.damage
		j.mu.Unlock()
		switch {
		case is:
			return nil
		case damage != nil:
			return damage
		}
		select {
		case j.wanted <- struct{}{}:
		default:
		}
		select {
		case <-next:
		case <-j.closed:
			return journal.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
	if !j.queue.put(r) {
		return 0, fmt.Errorf("append to journal: %w", journal.ErrClosed)
	}
	var a answer
	select {
	case a = <-r.done:
	case <-ctx.Done():
		if j.queue.withdraw(r) {
			return 0, fmt.Errorf("append to journal: %w", ctx.Err())
		}
		return 0, fmt.Errorf("append to journal: %w: it was on its way and may be stored, now or later", ctx.Err())
	}
	var conflict *journal.Conflict
	if a.err != nil && !errors.As(a.err, &conflict) {
		return 0, fmt.Errorf("append to journal: %w", a.err)
	}
	return a.last, a.err
}

// write appends what waits, one message at a time, until Close.
func (j *Journal) write() {
	defer j.queue.close()
	last := 0
	for j.ctx.Err() == nil {
		j.queue.gather(last)
		if waiting := j.queue.take(j.remote.limit / 2); len(waiting) > 0 {
			last = len(waiting)
			j.store(newID(), waiting)
			continue
		}
		select {
		case <-j.queue.more:
		case <-j.closed:
		}
	}
}

// store appends some requests as one message. Its id stays the same over all tries and places.
func (j *Journal) store(name id, waiting []*request) {
	for len(waiting) > 0 {
		g := j.compose(waiting)
		if waiting = g.in; len(g.batch.changes) == 0 {
			return
		}
		step, err := j.commit(name, &g)
		switch {
		case err != nil:
			answerAll(waiting, err)
			return
		case step == attempt.Stored:
			for i, r := range waiting {
				r.done <- answer{last: g.lasts[i]}
			}
			return
		}
		// Another batch has the place. When it is mirrored, the expectations are looked at again.
		if err := j.reach(j.ctx, func() bool { return j.mirrored.place > g.after.place }); err != nil {
			answerAll(waiting, j.orClosed(err))
			return
		}
	}
}

// commit publishes a batch and counts it when it is stored.
func (j *Journal) commit(name id, g *group) (attempt.Step, error) {
	messages := encode(name, &g.batch, j.remote.limit)
	step, err := j.remote.prove(j.ctx, name, messages, g.after.place, j.opts.Patience)
	if err != nil {
		return "", j.explain(err, g.after.place)
	}
	if step != attempt.Stored {
		return step, nil
	}
	end := position{g.after.place + uint64(len(messages)), g.batch.last(), g.batch.hash}
	j.mu.Lock()
	j.count(end, g.batch.changes)
	if j.mirrored.place < end.place {
		j.own = append(j.own, pending{end, g.batch.changes})
	}
	many := len(j.own) > ownKept
	j.mu.Unlock()
	if many {
		if err := j.keepOwn(j.ctx); err != nil {
			j.stuck(err) // the batch is stored all the same
		}
	}
	return step, nil
}

// explain adds what is known of an append without proof.
func (j *Journal) explain(err error, place uint64) error {
	if j.ctx.Err() != nil {
		return errors.Join(journal.ErrClosed, err)
	}
	info, e := j.remote.state(j.ctx, lookWait)
	if e == nil && info.State.LastSeq < place {
		return errors.Join(j.short(info.State.LastSeq, place), err)
	}
	return err
}

// count moves the end. The lock is held.
func (j *Journal) count(to position, changes []journal.Change) {
	if to.place <= j.end.place {
		return
	}
	j.end = to
	for i := range changes {
		j.versions[changes[i].Entity] = changes[i].Version
	}
}

func (j *Journal) orClosed(err error) error {
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	return err
}

// group is what becomes one message.
type group struct {
	after position
	batch batch
	in    []*request
	lasts []uint64 // seq of the last change of each
}

// compose puts requests behind the end. One whose expectations fail is answered, or waits for the next message if they fail
// only because of another request of this one.
func (j *Journal) compose(waiting []*request) group {
	if late := j.doubtful(waiting); late {
		j.refresh(j.ctx) // a conflict is said only of what the servers have
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	g := group{after: j.end, batch: batch{first: j.end.seq + 1, before: j.end.hash, hash: j.end.hash}}
	seq, made := j.end.seq, map[string]uint64{}
	version := func(entity string) uint64 {
		if v, ok := made[entity]; ok {
			return v
		}
		return j.versions[entity]
	}
	var sum journal.Summer
	var later []*request
	for _, r := range waiting {
		if j.damage != nil {
			r.done <- answer{err: j.damage}
			continue
		}
		if c := failing(r.expect, j.end.seq, func(e string) uint64 { return j.versions[e] }); c != nil && failing(r.expect, seq, version) != nil {
			r.done <- answer{err: c}
			continue
		}
		if failing(r.expect, seq, version) != nil {
			later = append(later, r)
			continue
		}
		if len(r.batch) == 0 {
			r.done <- answer{last: j.end.seq}
			continue
		}
		for _, c := range r.batch {
			seq++
			c.Seq, c.Version = seq, version(c.Entity)+1
			c.Hash = sum.Sum(g.batch.hash, &c)
			made[c.Entity], g.batch.hash = c.Version, c.Hash
			g.batch.changes = append(g.batch.changes, c)
		}
		g.in, g.lasts = append(g.in, r), append(g.lasts, seq)
	}
	j.queue.putBack(later)
	return g
}

// doubtful says whether a request expects more than this host has.
func (j *Journal) doubtful(waiting []*request) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range waiting {
		c := failing(r.expect, j.end.seq, func(e string) uint64 { return j.versions[e] })
		if c != nil && c.Want > c.Has {
			return true
		}
	}
	return false
}

func failing(expect []journal.Expect, seq uint64, version func(string) uint64) *journal.Conflict {
	for _, e := range expect {
		has := seq
		if e.Entity != journal.Whole {
			has = version(e.Entity)
		}
		if has != e.Version {
			return &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}
		}
	}
	return nil
}

// Close ends this handle; appends under way end with [journal.ErrClosed] and may be stored. It may be called twice.
func (j *Journal) Close() (err error) {
	j.once.Do(func() {
		j.stop()
		close(j.closed)
		j.work.Wait()
		j.queue.close()
		err = j.mirror.Close()
	})
	return err
}
