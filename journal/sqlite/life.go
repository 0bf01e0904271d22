package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/journal"
)

// tailChecked is how many changes Open checks at the end, where a crash or a full
// disk would have left its mark. The rest is checked when it is read.
const tailChecked = 256

// checkTail reads the end of the journal as a reader would.
func (j *Journal) checkTail(ctx context.Context) error {
	seq, _, err := j.Head(ctx)
	if err != nil {
		return err
	}
	for _, err := range j.Read(ctx, journal.Query{After: seq - min(seq, tailChecked)}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) isClosed() bool {
	select {
	case <-j.closed:
		return true
	default:
		return false
	}
}

// Close waits for what is being written or read, then lets the file go. Watchers end
// with [journal.ErrClosed]. It may be called twice.
func (j *Journal) Close() (err error) {
	j.once.Do(func() {
		close(j.closed)
		j.life.Lock()
		defer j.life.Unlock()
		var errs []error
		if j.writer != nil {
			errs = append(errs, j.writer.close())
		}
		for {
			select {
			case c := <-j.readers:
				errs = append(errs, c.close())
				continue
			default:
			}
			break
		}
		if e := errors.Join(errs...); e != nil {
			err = fmt.Errorf("close journal: %w", explain(j.path, e))
		}
	})
	return err
}
