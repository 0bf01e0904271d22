package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
)

// Salvage gives the mirror what the copy in the folder of one server has and it has not. The server need not run. It ends with
// the last batch of which all parts are there. If a message before that is missing, or does not continue the history, the error is a
// *Damage.
func Salvage(ctx context.Context, store, stream string, mirror *sqlite.Journal) error {
	files, err := openCopy(store, stream)
	if err != nil {
		return err
	}
	head, hash, err := mirror.Head(ctx)
	if err != nil {
		return err
	}
	err = eachBatch(ctx, files, func(place uint64, b *batch) error {
		changes, err := follows(b, head, hash, true)
		if err != nil {
			return wrong(place, b.first, err)
		}
		if len(changes) > 0 {
			if err := mirror.Mirror(ctx, changes, head, b.hash); err != nil {
				return wrong(place, b.first, err)
			}
			head, hash = b.last(), b.hash
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the journal from the copy of stream %s: %w", stream, err)
	}
	return nil
}

// CopyEnd is the last change that the copy in the folder of one server has; none if it has no change.
func CopyEnd(ctx context.Context, store, stream string) (last journal.Change, err error) {
	files, err := openCopy(store, stream)
	if err != nil {
		return last, err
	}
	return last, eachBatch(ctx, files, func(_ uint64, b *batch) error {
		last = b.changes[len(b.changes)-1]
		last.Seq = b.last()
		return nil
	})
}

// eachBatch reads the batches of a copy whose parts are all there.
func eachBatch(ctx context.Context, files *copied, take func(place uint64, b *batch) error) error {
	var t taker
	for place := uint64(1); ; place++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := files.message(ctx, place)
		if errors.Is(err, errEnd) {
			return nil
		}
		var b *batch
		if err == nil && raw == nil {
			err = errMissing
		}
		if err == nil {
			b, err = t.add(raw)
		}
		if err != nil {
			return wrong(place, 0, err)
		}
		if b != nil {
			if err := take(place, b); err != nil {
				return err
			}
		}
	}
}
