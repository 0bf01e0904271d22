package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// Mirror stores changes that were appended elsewhere. They follow the change after, and the last of them has that
// hash there. If they do not give that hash here, in content or in place, the error is a *journal.Broken, and nothing
// is stored. If this journal does not end with the change after, the error is a *journal.Conflict.
func (j *Journal) Mirror(ctx context.Context, changes []journal.Change, after uint64, hash journal.Hash) error {
	if err := journal.CheckBatch(changes, nil); err != nil {
		return err
	}
	_, err := j.append(ctx, changes, []journal.Expect{{Entity: journal.Whole, Version: after}}, &hash)
	return err
}

// Versions returns the last version of every entity.
func (j *Journal) Versions(ctx context.Context) (versions map[string]uint64, err error) {
	err = j.reading(ctx, func(tx *sql.Tx) (err error) {
		versions, err = endsOf(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the ends of the journal's streams: %w", err)
	}
	return versions, nil
}

func endsOf(tx *sql.Tx) (map[string]uint64, error) {
	rows, err := tx.Query("SELECT entity, version FROM stream")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ends := map[string]uint64{}
	for rows.Next() {
		var entity string
		var version uint64
		if err := rows.Scan(&entity, &version); err != nil {
			return nil, err
		}
		ends[entity] = version
	}
	return ends, rows.Err()
}
