package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/journal"
)

// SaveSnapshot keeps a snapshot of this history; see [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := journal.CheckSnapshot(&s); err != nil {
		return err
	}
	select {
	case j.pen <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("save snapshot: %w", ctx.Err())
	}
	defer func() { <-j.pen }()
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return fmt.Errorf("save snapshot: %w", journal.ErrClosed)
	}
	w := j.writer
	if err := patiently(ctx, func() error { return w.exec("BEGIN IMMEDIATE") }); err != nil {
		return fmt.Errorf("save snapshot: %w", explain(j.path, err))
	}
	fits, err := keepSnapshot(w, &s)
	if err == nil && fits {
		err = w.exec("COMMIT")
	}
	if err != nil || !fits {
		_ = w.exec("ROLLBACK") // where SQLite has rolled back by itself this fails, and that is well
	}
	if err != nil {
		return fmt.Errorf("save snapshot: %w", explain(j.path, err))
	}
	if !fits {
		return journal.ForeignSnapshot(s.Seq)
	}
	return nil
}

// keepSnapshot stores it where its hash is that of its Seq, and lets the oldest go.
func keepSnapshot(w *conn, s *journal.Snapshot) (fits bool, err error) {
	if fits, err = w.fits(s.Seq, s.Hash); err != nil || !fits {
		return false, err
	}
	sum := sha256.Sum256(s.Data)
	data := s.Data
	if data == nil {
		data = []byte{} // the column is never NULL
	}
	err = w.exec("INSERT OR REPLACE INTO snapshot (seq, hash, format, sum, data) VALUES (?1, ?2, ?3, ?4, ?5)",
		int64(s.Seq), s.Hash[:], s.Format, sum[:], data)
	if err != nil {
		return false, err
	}
	return true, w.exec("DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?1)", int64(journal.SnapshotsKept))
}

// Latest is the newest snapshot that was kept, is whole and belongs to this history;
// see [journal.Journal].
func (j *Journal) Latest(ctx context.Context) (s journal.Snapshot, ok bool, err error) {
	err = j.reading(ctx, func(c *conn) error {
		s, ok = journal.Snapshot{}, false
		return c.query(func(row []driver.Value) (bool, error) {
			if s, ok = snapshotOf(row); !ok {
				return true, nil
			}
			var err error
			ok, err = c.fits(s.Seq, s.Hash)
			return !ok, err
		}, "SELECT seq, hash, format, sum, data FROM snapshot ORDER BY seq DESC")
	})
	if !ok {
		s = journal.Snapshot{}
	}
	if err != nil {
		return journal.Snapshot{}, false, fmt.Errorf("read snapshot: %w", err)
	}
	return s, ok, nil
}

// fits says whether a change of this history has that hash.
func (c *conn) fits(seq uint64, hash journal.Hash) (bool, error) {
	var sum journal.Summer
	have, err := c.hashOf(seq, &sum)
	var missing *journal.Broken
	if errors.As(err, &missing) {
		return false, nil // damage is for those to report who read the changes
	}
	return err == nil && have == hash, err
}

// snapshotOf turns a row into a snapshot; not ok where its data is not what was saved.
func snapshotOf(row []driver.Value) (s journal.Snapshot, ok bool) {
	seq, _ := row[0].(int64)
	hash, _ := row[1].([]byte)
	s.Seq = uint64(seq)
	copy(s.Hash[:], hash)
	s.Format, _ = row[2].(string)
	s.Data, _ = row[4].([]byte)
	sum := sha256.Sum256(s.Data)
	return s, sameBytes(row[3], sum[:])
}
