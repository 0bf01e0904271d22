package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/journal"
	sqlite3 "modernc.org/sqlite/lib"
)

// appending is one Append on its way. Whoever holds the pen writes all that wait, in
// the order they came, in one transaction: so one sync serves many callers.
type appending struct {
	batch  []journal.Change
	expect []journal.Expect
	last   uint64
	err    error
	done   chan struct{} // closed when last and err are set
}

// tail is what the writer remembers of the end of the journal. It holds as long as
// nobody else wrote: each transaction compares seq first.
type tail struct {
	known    bool
	seq      uint64
	hash     journal.Hash
	versions map[int64]uint64 // last version by entity id; what is missing is looked up
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
	if waiting := j.take(); len(waiting) > 0 { // none where an earlier holder of the pen did it for us
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

// write stores what waits and answers everybody. The caller holds the pen.
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
	// The leader's context ends only the wait for another process; others who wait with
	// it would be told of a cancellation that is not theirs, so they do not share it.
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

// storeOne is the short way for the commonest case, a single change about which all is
// known already: one statement, which is its own transaction. Where another process
// has written meanwhile the seq is taken, and the long way finds out what is so.
func (j *Journal) storeOne(waiting []*appending) (stored bool, err error) {
	if len(waiting) != 1 || len(waiting[0].batch) != 1 || !j.tail.known {
		return false, nil
	}
	a := waiting[0]
	names := &j.writer.names
	id, okEntity := names.entityIDs[a.batch[0].Entity]
	_, okPhrase := names.phraseIDs[phraseOf(&a.batch[0])]
	_, okVersion := j.tail.versions[id]
	if !okEntity || !okPhrase || !okVersion {
		return false, nil
	}
	for _, e := range a.expect {
		if e.Entity == journal.Whole && e.Version == j.tail.seq {
			continue
		}
		id, known := names.entityIDs[e.Entity]
		if v, ok := j.tail.versions[id]; !known || !ok || v != e.Version {
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
	return nil
}

// findTail makes sure that what we remember of the end is the end.
func (j *Journal) findTail() error {
	t := &j.tail
	seq, _, err := j.writer.number("SELECT max(seq) FROM change")
	if err != nil {
		return err
	}
	if t.known && t.seq == uint64(seq) {
		return nil
	}
	hash, err := j.writer.hashOf(uint64(seq))
	if err != nil {
		return err
	}
	t.known, t.seq, t.hash, t.versions = true, uint64(seq), hash, map[int64]uint64{}
	return nil
}

func (j *Journal) check(expect []journal.Expect) (*journal.Conflict, error) {
	for _, e := range expect {
		if e.Entity == journal.Whole {
			if e.Version != j.tail.seq {
				return &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: j.tail.seq}, nil
			}
			continue
		}
		id, err := j.writer.entityID(e.Entity)
		if err != nil {
			return nil, err
		}
		has, err := j.version(id)
		if err != nil {
			return nil, err
		}
		if has != e.Version {
			return &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}, nil
		}
	}
	return nil, nil
}

// version is where the stream of an entity ends; 0 for one that does not exist.
func (j *Journal) version(id int64) (uint64, error) {
	if id == 0 {
		return 0, nil
	}
	if v, ok := j.tail.versions[id]; ok {
		return v, nil
	}
	v, err := j.writer.streamEnd(id)
	if err != nil {
		return 0, err
	}
	if len(j.tail.versions) >= namesKept {
		clear(j.tail.versions)
	}
	j.tail.versions[id] = v
	return v, nil
}

// rowsAtOnce is how many changes go into one INSERT where there are so many: the cost
// of a statement is then shared.
const rowsAtOnce = 16

const columnsOfChange = 8

var (
	insertOne  = "INSERT INTO change (seq, entity, version, time, phrase, cause, hash, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	insertMany = insertOne + strings.Repeat(", (?, ?, ?, ?, ?, ?, ?, ?)", rowsAtOnce-1)
)

// insert stores a batch behind the tail, within a transaction or as one if it is a
// single change. After an error the tail is not known any more.
func (j *Journal) insert(batch []journal.Change) error {
	t := &j.tail
	j.rows = j.rows[:0]
	for i := range batch {
		if err := j.number(&batch[i]); err != nil {
			t.known = false
			return err
		}
	}
	for rows := j.rows; len(rows) > 0; {
		text, n := insertOne, columnsOfChange
		if len(rows) >= rowsAtOnce*columnsOfChange {
			text, n = insertMany, rowsAtOnce*columnsOfChange
		}
		if err := j.writer.exec(text, rows[:n]...); err != nil {
			t.known = false
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// number gives a change its place behind the tail and adds its row to j.rows.
func (j *Journal) number(given *journal.Change) error {
	w, t := j.writer, &j.tail
	entity, err := w.makeEntity(given.Entity)
	if err != nil {
		return err
	}
	words, err := w.makePhrase(phraseOf(given))
	if err != nil {
		return err
	}
	version, err := j.version(entity)
	if err != nil {
		return err
	}
	c := *given
	c.Seq, c.Version = t.seq+1, version+1
	hash := t.sum.Sum(t.hash, &c)
	var data any
	if len(c.Data) > 0 {
		data = []byte(c.Data)
	}
	j.rows = append(j.rows, int64(c.Seq), entity, int64(c.Version), c.Time.UnixNano(), words, int64(c.Cause), hash[:], data)
	t.seq, t.hash = c.Seq, hash
	t.versions[entity] = c.Version
	return nil
}

// hashOf gives the hash of a change, zero for Seq 0, and a *Broken where there is none.
func (c *conn) hashOf(seq uint64) (h journal.Hash, err error) {
	if seq == 0 {
		return h, nil
	}
	n := 0
	err = c.query(func(row []driver.Value) (bool, error) {
		b, _ := row[0].([]byte)
		n = copy(h[:], b)
		return false, nil
	}, "SELECT hash FROM change WHERE seq = ?1", int64(seq))
	if err == nil && n != len(h) {
		err = &journal.Broken{Seq: seq, Why: "it has no hash"}
	}
	return h, err
}

// streamEnd is the last version of an entity, as both places where it stands say.
func (c *conn) streamEnd(id int64) (version uint64, err error) {
	err = c.query(func(row []driver.Value) (bool, error) {
		said, _ := row[0].(int64)
		last, _ := row[1].(int64)
		seq, _ := row[2].(int64)
		if version = uint64(last); said != last {
			return false, &journal.Broken{Seq: uint64(seq), Why: fmt.Sprintf("it is version %d, the last of its stream that is found, but the stream is said to end at %d", last, said)}
		}
		return false, nil
	}, `SELECT entity.version, last.version, last.seq FROM entity
		LEFT JOIN change AS last ON last.seq = (SELECT max(seq) FROM change WHERE change.entity = entity.id) WHERE entity.id = ?1`, id)
	return version, err
}
