package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fairlead-dev/fairlead/engine/journal"
	sqlite3 "modernc.org/sqlite/lib"
)

const versionsKept = 16 << 10 // of entities; it is some MB, and what is forgotten is looked up again

// tail is what the writer remembers of the journal's end. It holds until another process writes: each transaction compares seq first.
type tail struct {
	seq      uint64
	versions map[string]uint64 // the last of each entity that was looked up
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

// append stores a batch. link, if there is one, is the hash that the last change must have.
func (j *Journal) append(
	ctx context.Context, batch []journal.Change, expect []journal.Expect, link *journal.Hash,
) (last uint64, err error) {
	err = j.writing(ctx, func(tx *sql.Tx) (bool, error) {
		last, err = j.store(tx, batch, expect, link)
		return err == nil, err
	})
	var conflict *journal.Conflict
	switch {
	case errors.As(err, &conflict):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	j.notifier.Notify()
	return last, nil
}

// writing runs a transaction that may write. One goroutine at a time does.
func (j *Journal) writing(ctx context.Context, do func(*sql.Tx) (commit bool, err error)) (err error) {
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return journal.ErrClosed
	}
	if j.tail.failed != nil {
		return fmt.Errorf("an earlier sync failed, so the journal must be opened again: %w", j.tail.failed)
	}
	// If the file is no longer at its path, SQLite would go on writing into a file without a name, and callers would
	// believe that their changes are safe. One look takes some microseconds beside a sync.
	if now, err := os.Stat(j.path); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, j.file) {
		return fmt.Errorf("%s: %w", j.path, journal.ErrGone)
	}
	var tx *sql.Tx
	if err := patiently(ctx, func() (err error) { tx, err = j.writer.Begin(); return err }); err != nil {
		return explain(j.path, err)
	}
	commit, err := do(tx)
	if err == nil && commit {
		err = tx.Commit()
	}
	if err != nil || !commit {
		_ = tx.Rollback()     // where SQLite has rolled back by itself this fails, and that is well
		j.tail.versions = nil // some may be of what was not stored
	}
	if code(err) == sqlite3.SQLITE_IOERR {
		j.tail.failed = err
	}
	return explain(j.path, err)
}

const insertChange = `INSERT INTO change
	(seq, version, time, entity, machine, row, "from", "to", "trigger", actor_kind, actor_id, cause, data, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// store adds a batch within a transaction. If an expectation fails, the error is a *Conflict, and nothing was added.
func (j *Journal) store(tx *sql.Tx, batch []journal.Change, expect []journal.Expect, link *journal.Hash) (uint64, error) {
	t := &j.tail
	seq, hash, err := scanHead(tx.Stmt(j.head).QueryRow()) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return 0, err
	}
	if t.versions == nil || t.seq != seq || len(t.versions) > versionsKept {
		t.versions = map[string]uint64{}
	}
	for _, e := range expect {
		has := seq
		if e.Entity != journal.Whole {
			if has, err = j.version(tx, e.Entity); err != nil {
				return 0, err
			}
		}
		if has != e.Version {
			return 0, &journal.Conflict{Entity: e.Entity, Want: e.Version, Has: has}
		}
	}
	insert := tx.Stmt(j.insert) //nolint:sqlclosecheck // the transaction closes it
	for i := range batch {
		c := batch[i]
		version, err := j.version(tx, c.Entity)
		if err != nil {
			return 0, err
		}
		seq++
		c.Seq, c.Version = seq, version+1
		hash = t.sum.Sum(hash, &c)
		var data []byte
		if len(c.Data) > 0 {
			data = c.Data
		}
		if _, err := insert.Exec(int64(c.Seq), int64(c.Version), c.Time.UnixNano(), c.Entity, c.Machine, c.Row, c.From, c.To, c.Trigger,
			c.Actor.Kind, c.Actor.ID, int64(c.Cause), data, hash[:]); err != nil {
			return 0, err
		}
		t.versions[c.Entity] = c.Version
	}
	if link != nil && *link != hash {
		return 0, broken(seq-uint64(len(batch))+1, "the changes up to %d give the hash %s, and they came with %s", seq, hash, *link)
	}
	t.seq = seq
	return seq, nil
}

// version is the last one of an entity.
func (j *Journal) version(tx *sql.Tx, entity string) (uint64, error) {
	version, known := j.tail.versions[entity]
	if known {
		return version, nil
	}
	version, err := endOf(tx, entity)
	if err == nil {
		j.tail.versions[entity] = version
	}
	return version, err
}

// endOf is the last version of an entity, 0 for none, which is stored in two places.
func endOf(tx *sql.Tx, entity string) (uint64, error) {
	var stream, last, seq sql.NullInt64
	err := tx.QueryRow("SELECT version FROM stream WHERE entity = ?1", entity).Scan(&stream)
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRow("SELECT version, seq FROM change WHERE entity = ?1 ORDER BY seq DESC LIMIT 1", entity).Scan(&last, &seq)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err == nil && last.Valid && last.Int64 != stream.Int64 {
		err = broken(uint64(seq.Int64), "%s is said to end with version %d, and its last change has version %d", entity, stream.Int64,
			last.Int64)
	}
	return uint64(stream.Int64), err
}

const selectHead = "SELECT seq, hash FROM change ORDER BY seq DESC LIMIT 1"

// headOf is the last change's seq and hash; zero: there is none.
func headOf(tx *sql.Tx) (uint64, journal.Hash, error) { return scanHead(tx.QueryRow(selectHead)) }

func scanHead(row *sql.Row) (seq uint64, hash journal.Hash, err error) {
	var h []byte
	err = row.Scan(&seq, &h)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, hash, nil
	}
	if err == nil && len(h) != len(hash) {
		err = fmt.Errorf("its hash has %d bytes", len(h))
	}
	copy(hash[:], h)
	return seq, hash, ofRow(seq, err)
}
