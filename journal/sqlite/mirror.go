package sqlite

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/journal"
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
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the ends of the journal's streams: %w", err)
		}
	}()
	select {
	case j.pen <- struct{}{}:
		defer func() { <-j.pen }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return nil, journal.ErrClosed
	}
	if err := j.findTail(); err != nil {
		return nil, explain(j.path, err)
	}
	versions = make(map[string]uint64, len(j.tail.versions))
	for id, version := range j.tail.versions {
		name, found, err := j.writer.entity(id)
		if err != nil {
			return nil, explain(j.path, err)
		}
		if found {
			versions[name] = version
		}
	}
	return versions, nil
}
