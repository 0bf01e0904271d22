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
	return j.append(ctx, batch, expect, nil)
}

func (j *Journal) append(ctx context.Context, batch []journal.Change, expect []journal.Expect, link *journal.Hash) (uint64, error) {
	select {
	case j.pen <- struct{}{}:
		defer func() { <-j.pen }()
	case <-ctx.Done():
		return 0, fmt.Errorf("append to journal: %w", ctx.Err())
	}
	j.link = link
	last, err := j.transact(ctx, batch, expect)
	var conflict *journal.Conflict
	switch {
	case errors.As(err, &conflict):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	j.bell.Ring()
	return last, nil
}

// transact stores a batch. Only one goroutine may call it at a time.
func (j *Journal) transact(ctx context.Context, batch []journal.Change, expect []journal.Expect) (last uint64, err error) {
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return 0, journal.ErrClosed
	}
	if j.tail.failed != nil {
		return 0, fmt.Errorf("an earlier sync failed, so the journal must be opened again: %w", j.tail.failed)
	}
	// If the file is no longer at its path, SQLite would go on writing into a file without a name, and callers would
	// believe that their changes are safe. One look takes some microseconds beside a sync.
	if now, err := os.Stat(j.path); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, j.file) {
		return 0, fmt.Errorf("%s: %w", j.path, journal.ErrGone)
	}
	defer func() { err = j.settle(err) }()
	if err := j.growLog(); err != nil {
		return 0, err
	}
	if stored, err := j.storeKnown(batch, expect); stored || err != nil {
		return j.tail.seq, err
	}
	w := j.writer
	if err := patiently(ctx, func() error { return w.exec("BEGIN IMMEDIATE") }); err != nil {
		return 0, err
	}
	if err = j.store(batch, expect); err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK") // where SQLite has rolled back by itself this fails, and that is well
	}
	return j.tail.seq, err
}

// settle makes sure that after a failure nothing is remembered which may not be so.
func (j *Journal) settle(err error) error {
	var conflict *journal.Conflict
	if err == nil || errors.As(err, &conflict) {
		return err
	}
	if code(err) == sqlite3.SQLITE_IOERR {
		j.tail.failed = err
	}
	j.tail.known = false
	j.writer.names.forget()
	return explain(j.path, err)
}

// storeKnown is the short way for the commonest case, a batch about whose names all is known already: one statement,
// which is its own transaction. If another process has written meanwhile, its first seq is taken, and the long way finds
// out what is so.
func (j *Journal) storeKnown(batch []journal.Change, expect []journal.Expect) (stored bool, err error) {
	if len(batch) == 0 || !j.tail.known || j.endsDue() {
		return false, nil
	}
	names := &j.writer.names
	j.ids = j.ids[:0]
	for i := range batch {
		entity, okEntity := names.entityIDs[batch[i].Entity]
		words, okPhrase := names.phraseIDs[phraseOf(&batch[i])]
		if !okEntity || !okPhrase {
			return false, nil
		}
		j.ids = append(j.ids, changeIDs{entity, words})
	}
	for _, e := range expect {
		has, known := j.tail.seq, true
		if e.Entity != journal.Whole {
			var id int64
			id, known = names.entityIDs[e.Entity]
			has = j.tail.versions[id]
		}
		if !known || has != e.Version {
			return false, nil // perhaps a conflict: to be sure takes a transaction
		}
	}
	err = j.insert(batch, j.ids)
	if code(err) == sqlite3.SQLITE_CONSTRAINT || busy(err) {
		return false, nil
	}
	return err == nil, err
}

// store does the inserts of one transaction. If an expectation fails, the error is a *Conflict, and nothing was inserted.
func (j *Journal) store(batch []journal.Change, expect []journal.Expect) error {
	if err := j.findTail(); err != nil {
		return err
	}
	if err := j.check(expect); err != nil {
		return err
	}
	ids, err := j.makeIDs(batch)
	if err != nil {
		return err
	}
	if err := j.insert(batch, ids); err != nil {
		return err
	}
	if !j.endsDue() {
		return nil
	}
	if err := j.storeStretch(); err != nil {
		return err
	}
	return j.storeEnds()
}

func (j *Journal) check(expect []journal.Expect) error {
	for _, e := range expect {
		has := j.tail.seq
		if e.Entity != journal.Whole {
			id, err := j.writer.entityID(e.Entity)
			if err != nil {
				return err
			}
			has = j.tail.versions[id]
		}
		if has != e.Version {
			return &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}
		}
	}
	return nil
}

const insertBatch = "INSERT INTO batch (first, last, hash, data) VALUES (?1, ?2, ?3, ?4)"

// changeIDs are the ids of the names in a change.
type changeIDs struct{ entity, words int64 }

// makeIDs gives the ids for a batch, within a transaction, and adds what is missing.
func (j *Journal) makeIDs(batch []journal.Change) ([]changeIDs, error) {
	j.ids = j.ids[:0]
	for i := range batch {
		entity, err := j.writer.makeEntity(batch[i].Entity)
		if err != nil {
			return nil, err
		}
		words, err := j.writer.makePhrase(phraseOf(&batch[i]))
		if err != nil {
			return nil, err
		}
		j.ids = append(j.ids, changeIDs{entity, words})
	}
	return j.ids, nil
}

// insert stores a batch behind the tail, within a transaction or as one. After an error the
// tail is not known any more.
func (j *Journal) insert(batch []journal.Change, ids []changeIDs) error {
	if len(batch) == 0 {
		return nil
	}
	t := &j.tail
	first, before := t.seq+1, int64(0)
	j.row = j.row[:0]
	for i := range batch {
		before = j.place(&batch[i], ids[i], before)
	}
	if j.link != nil && *j.link != t.hash {
		t.known = false
		return broken(first, "the changes up to %d give the hash %s, and they came with %s", t.seq, t.hash, *j.link)
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
func (j *Journal) place(given *journal.Change, ids changeIDs, before int64) (nanos int64) {
	t, c := &j.tail, *given
	c.Seq, c.Version = t.seq+1, t.versions[ids.entity]+1
	t.seq, t.hash = c.Seq, t.sum.Sum(t.hash, &c)
	t.versions[ids.entity] = c.Version
	r := record{entity: uint64(ids.entity), version: c.Version, nanos: c.Time.UnixNano(), phrase: uint64(ids.words), cause: c.Cause, data: c.Data}
	copy(r.mark[:], t.hash[:])
	j.row = appendRecord(j.row, &r, before)
	return r.nanos
}
