package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fairlead-dev/fairlead/journal"
	sqlite3 "modernc.org/sqlite/lib"
)

// appending is one Append in progress. One caller at a time writes all waiting batches, in the order of
// arrival, in one transaction, so that one sync serves many callers.
type appending struct {
	batch  []journal.Change
	expect []journal.Expect
	last   uint64
	err    error
	done   chan struct{} // closed when last and err are set
}

// tail is the writer's cached end of the journal. It is valid until another process writes: each
// transaction compares seq first.
type tail struct {
	known    bool
	seq      uint64
	hash     journal.Hash
	versions map[int64]uint64 // last version by entity id; who is missing has none
	counted  uint64           // ends are stored as of this seq
	sum      journal.Summer
	failed   error // a sync failed: what is on disk is unknown until the file is opened again
}

// Append puts a batch at the end; see [journal.Journal].
func (j *Journal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	if err := journal.CheckBatch(batch, expect); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	a := &appending{batch: batch, expect: expect, done: make(chan struct{})}
	j.queueMu.Lock()
	j.queue = append(j.queue, a)
	j.queueMu.Unlock()
	select {
	case <-a.done:
		return a.result()
	case j.pen <- struct{}{}:
	case <-ctx.Done():
		if j.withdraw(a) {
			return 0, fmt.Errorf("append to journal: %w", ctx.Err())
		}
		<-a.done // it is being written: only the writer knows how that ends
		return a.result()
	}
	defer func() { <-j.pen }()
	if waiting := j.take(); len(waiting) > 0 { // none where an earlier writer did it for us
		j.write(ctx, waiting)
	}
	return a.result()
}

func (a *appending) result() (uint64, error) {
	<-a.done
	var conflict *journal.Conflict
	if a.err != nil && !errors.As(a.err, &conflict) {
		return 0, fmt.Errorf("append to journal: %w", a.err)
	}
	return a.last, a.err
}

// take gives what waits, up to one transaction's worth.
func (j *Journal) take() []*appending {
	j.queueMu.Lock()
	defer j.queueMu.Unlock()
	waiting := j.queue
	j.queue = nil
	return waiting
}

func (j *Journal) withdraw(a *appending) bool {
	j.queueMu.Lock()
	defer j.queueMu.Unlock()
	for i, have := range j.queue {
		if have == a {
			j.queue = append(j.queue[:i], j.queue[i+1:]...)
			return true
		}
	}
	return false
}

// write stores the waiting batches and answers their callers. Only one goroutine may call it at a time.
func (j *Journal) write(ctx context.Context, waiting []*appending) {
	err := j.transact(ctx, waiting)
	if err == nil {
		j.bell.Ring()
	}
	for _, a := range waiting {
		if err != nil {
			a.last, a.err = 0, err
		}
		close(a.done)
	}
}

func (j *Journal) transact(ctx context.Context, waiting []*appending) error {
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return journal.ErrClosed
	}
	if j.tail.failed != nil {
		return fmt.Errorf("an earlier sync failed, so the journal must be opened again: %w", j.tail.failed)
	}
	if j.gone() {
		return fmt.Errorf("%s: %w", j.path, journal.ErrGone)
	}
	// The leader's context limits only the wait for another process. Other waiting callers must not
	// receive its cancellation, so with several of them it is ignored.
	if len(waiting) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	if stored, err := j.storeOne(waiting); stored || err != nil {
		return j.settle(err)
	}
	w := j.writer
	if err := patiently(ctx, func() error { return w.exec("BEGIN IMMEDIATE") }); err != nil {
		return explain(j.path, err)
	}
	err := j.store(waiting)
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK") // where SQLite has rolled back by itself this fails, and that is well
	}
	return j.settle(err)
}

// gone says whether the file is not the one at its path any more. SQLite would go on writing
// into a file that has no name, and every caller would be told that it is safe. One look is
// some microseconds beside a sync.
func (j *Journal) gone() bool {
	now, err := os.Stat(j.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, j.file)
}

// settle makes sure that after a failure nothing is remembered which may not be so.
func (j *Journal) settle(err error) error {
	if err == nil {
		return nil
	}
	if code(err) == sqlite3.SQLITE_IOERR {
		j.tail.failed = err
	}
	j.tail.known = false
	j.writer.names.forget()
	return explain(j.path, err)
}

// storeOne is the short way for the commonest case, a batch about whose names all is known
// already: one statement, which is its own transaction. Where another process has written
// meanwhile its first seq is taken, and the long way finds out what is so.
func (j *Journal) storeOne(waiting []*appending) (stored bool, err error) {
	if len(waiting) != 1 || len(waiting[0].batch) == 0 || !j.tail.known || j.endsDue() {
		return false, nil
	}
	a := waiting[0]
	names := &j.writer.names
	for i := range a.batch {
		_, okEntity := names.entityIDs[a.batch[i].Entity]
		_, okPhrase := names.phraseIDs[phraseOf(&a.batch[i])]
		if !okEntity || !okPhrase {
			return false, nil
		}
	}
	for _, e := range a.expect {
		if has, known := j.knownVersion(e.Entity); !known || has != e.Version {
			return false, nil // perhaps a conflict: to be sure takes a transaction
		}
	}
	err = j.insert(a.batch)
	if code(err) == sqlite3.SQLITE_CONSTRAINT || busy(err) {
		return false, nil
	}
	a.last = j.tail.seq
	return err == nil, err
}

// knownVersion is where a stream, or all, ends, as far as is remembered.
func (j *Journal) knownVersion(entity string) (version uint64, known bool) {
	if entity == journal.Whole {
		return j.tail.seq, true
	}
	id, known := j.writer.names.entityIDs[entity]
	return j.tail.versions[id], known
}

// store does the inserts of one transaction. A batch whose expectations fail is
// answered with its *Conflict before anything of it was inserted.
func (j *Journal) store(waiting []*appending) error {
	if err := j.findTail(); err != nil {
		return err
	}
	for _, a := range waiting {
		conflict, err := j.check(a.expect)
		if err != nil {
			return err
		}
		if conflict != nil {
			a.err = conflict
			continue
		}
		if err := j.insert(a.batch); err != nil {
			return err
		}
		a.last = j.tail.seq
	}
	if !j.endsDue() {
		return nil
	}
	if err := j.storeStretch(); err != nil {
		return err
	}
	return j.storeEnds()
}

func (j *Journal) check(expect []journal.Expect) (*journal.Conflict, error) {
	for _, e := range expect {
		has := j.tail.seq
		if e.Entity != journal.Whole {
			id, err := j.writer.entityID(e.Entity)
			if err != nil {
				return nil, err
			}
			has = j.tail.versions[id]
		}
		if has != e.Version {
			return &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}, nil
		}
	}
	return nil, nil
}

const insertBatch = "INSERT INTO batch (first, last, hash, data) VALUES (?1, ?2, ?3, ?4)"

// insert stores a batch behind the tail, within a transaction or as one. After an error the
// tail is not known any more.
func (j *Journal) insert(batch []journal.Change) error {
	if len(batch) == 0 {
		return nil
	}
	t := &j.tail
	first, before := t.seq+1, int64(0)
	j.row = j.row[:0]
	for i := range batch {
		nanos, err := j.place(&batch[i], before)
		if err != nil {
			t.known = false
			return err
		}
		before = nanos
	}
	if err := j.writer.exec(insertBatch, int64(first), int64(t.seq), t.hash[:], j.row); err != nil {
		t.known = false
		return err
	}
	if cap(j.row) > rowBytesKept {
		j.row = nil
	}
	return nil
}

// place gives a change its place behind the tail and adds its record to j.row.
func (j *Journal) place(given *journal.Change, before int64) (nanos int64, err error) {
	w, t := j.writer, &j.tail
	entity, err := w.makeEntity(given.Entity)
	if err != nil {
		return 0, err
	}
	words, err := w.makePhrase(phraseOf(given))
	if err != nil {
		return 0, err
	}
	c := *given
	c.Seq, c.Version = t.seq+1, t.versions[entity]+1
	t.seq, t.hash = c.Seq, t.sum.Sum(t.hash, &c)
	t.versions[entity] = c.Version
	r := record{entity: uint64(entity), version: c.Version, nanos: c.Time.UnixNano(), phrase: uint64(words), cause: c.Cause, data: c.Data}
	copy(r.mark[:], t.hash[:])
	j.row = appendRecord(j.row, &r, before)
	return r.nanos, nil
}
