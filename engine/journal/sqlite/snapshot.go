package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// SaveSnapshot keeps a snapshot of this history; see [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := journal.CheckSnapshot(&s); err != nil {
		return err
	}
	fits := false
	err := j.writing(ctx, func(tx *sql.Tx) (_ bool, err error) {
		fits, err = keepSnapshot(tx, j.path, &s)
		return fits, err
	})
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	if !fits {
		return journal.ForeignSnapshot(s.Seq)
	}
	return nil
}

// keepSnapshot stores it where its hash is that of its Seq, and lets the oldest go.
func keepSnapshot(tx *sql.Tx, path string, s *journal.Snapshot) (fits bool, err error) {
	if fits, err = fit(tx, path, s.Seq, s.Hash); err != nil || !fits {
		return false, err
	}
	sum := sha256.Sum256(s.Data)
	data := s.Data
	if data == nil {
		data = []byte{} // the column is never NULL
	}
	_, err = tx.Exec("INSERT OR REPLACE INTO snapshot (seq, hash, format, sum, data) VALUES (?1, ?2, ?3, ?4, ?5)",
		int64(s.Seq), s.Hash[:], s.Format, sum[:], data)
	if err == nil {
		_, err = tx.Exec("DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?1)",
			journal.SnapshotsKept)
	}
	return err == nil, err
}

// Latest is the newest snapshot that was kept, is whole and belongs to this history;
// see [journal.Journal].
func (j *Journal) Latest(ctx context.Context) (s journal.Snapshot, ok bool, err error) {
	err = j.reading(ctx, func(tx *sql.Tx) error {
		s, ok = journal.Snapshot{}, false
		return snapshots(tx, j.path, func(found journal.Snapshot, whole bool) (more bool) {
			if whole {
				s, ok = found, true
			}
			return !whole
		})
	})
	if err != nil {
		return journal.Snapshot{}, false, fmt.Errorf("read snapshot: %w", err)
	}
	return s, ok, nil
}

// snapshots calls each for the snapshots, the newest first, and says whether one is whole and belongs to this history.
func snapshots(tx *sql.Tx, path string, each func(s journal.Snapshot, whole bool) (more bool)) error {
	rows, err := tx.Query("SELECT seq, hash, format, sum, data FROM snapshot ORDER BY seq DESC")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s journal.Snapshot
		var hash, stored []byte
		if err := rows.Scan(&s.Seq, &hash, &s.Format, &stored, &s.Data); err != nil {
			return err
		}
		copy(s.Hash[:], hash)
		sum := sha256.Sum256(s.Data)
		whole := bytes.Equal(sum[:], stored)
		if whole {
			if whole, err = fit(tx, path, s.Seq, s.Hash); err != nil {
				return err
			}
		}
		if !each(s, whole) {
			return nil
		}
	}
	return rows.Err()
}

// fit says whether a change of this history has that hash.
func fit(tx *sql.Tx, path string, seq uint64, hash journal.Hash) (bool, error) {
	have, err := hashOf(tx, path, seq)
	var missing *journal.Broken
	if errors.As(err, &missing) {
		return false, nil // damage is for those to report who read the changes
	}
	return err == nil && have == hash, err
}
