package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/journal"
)

// faultsShown is how many faults of one kind Check lists: a torn file has thousands,
// and nothing repairs them one by one.
const faultsShown = 10

// Finding is one thing that Check looked at.
type Finding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`          // one sentence
	Do   string `json:"do,omitempty"`  // what a person can do; empty where OK
	Seq  uint64 `json:"seq,omitempty"` // the first bad change, where one is known
}

// Check looks at a journal without writing to it, whether or not it is in use: that
// the file is there and ours, that SQLite finds its structure whole, that the hash chain and
// the streams hold from the first change to the last, and that snapshots are whole. It
// reads everything, some microseconds for each change. The last finding is not OK where
// ctx ended it. Where the folder is writable SQLite may leave its own side files there
// (-shm, and an empty -wal), which the next start takes away.
func Check(ctx context.Context, path string) []Finding {
	abs, err := filepath.Abs(path)
	if err != nil {
		return []Finding{bad(path, err)}
	}
	if err := lookBeside(abs); err != nil {
		return []Finding{bad(abs, err)}
	}
	if err := checkLog(abs); err != nil {
		return []Finding{bad(abs, err)}
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{{What: "there is no journal at " + abs, Do: "start Fairlead here once, or give the right folder"}}
	case err != nil:
		return []Finding{bad(abs, err)}
	case info.Size() == 0:
		return []Finding{{What: abs + " is empty: it was made, and nothing was ever written", Do: "start Fairlead here once; it fills it"}}
	}
	j := handle(abs, readOnly)
	var found []Finding
	err = j.reading(ctx, func(c *conn) error {
		if err := identify(c); err != nil {
			return err
		}
		found = checkStructure(c)
		return nil
	})
	if err != nil {
		found = append(found, bad(abs, err))
	} else {
		found = append(found, checkChain(ctx, j), checkSnapshots(ctx, j))
	}
	if err := j.Close(); err != nil {
		found = append(found, bad(abs, err))
	}
	return found
}

func bad(path string, err error) Finding {
	var d *Unusable
	if err := explain(path, err); errors.As(err, &d) {
		return Finding{What: (&Unusable{Path: d.Path, What: d.What, Err: d.Err, Do: "see below"}).Error(), Do: d.Do}
	}
	return Finding{What: err.Error(), Do: "see to that, then check again"}
}

func checkStructure(c *conn) []Finding {
	const mend = "stop Fairlead, copy the file and its -wal aside, and restore a backup; what can still be read can be read from the copy"
	var found []Finding
	err := c.query(func(row []driver.Value) (bool, error) {
		if s, _ := row[0].(string); s != "ok" {
			found = append(found, Finding{What: "the file's structure: " + s, Do: mend})
		}
		return true, nil
	}, fmt.Sprintf("PRAGMA integrity_check(%d)", faultsShown))
	switch {
	case err != nil:
		return append(found, Finding{What: "the file's structure cannot be read: " + err.Error(), Do: mend})
	case len(found) == 0:
		return []Finding{{OK: true, What: "the file's structure is whole"}}
	}
	return found
}

func checkChain(ctx context.Context, j *Journal) Finding {
	seq, hash, err := j.Head(ctx)
	if err == nil {
		err = journal.Verify(ctx, j)
	}
	var broken *journal.Broken
	switch {
	case errors.As(err, &broken):
		return Finding{
			What: fmt.Sprintf("the history is not what was appended from change %d on: %s", broken.Seq, broken.Why),
			Do:   fmt.Sprintf("copy the file aside; changes before %d are good; restore a backup that goes further, or start a new journal", broken.Seq),
			Seq:  broken.Seq,
		}
	case err != nil:
		return bad(j.path, err)
	case seq == 0:
		return Finding{OK: true, What: "the history is empty"}
	}
	return Finding{OK: true, What: fmt.Sprintf("the history is whole: %d changes, the last hash is %s", seq, hash)}
}

func checkSnapshots(ctx context.Context, j *Journal) Finding {
	var whole, not int
	err := j.reading(ctx, func(c *conn) error {
		whole, not = 0, 0
		return c.query(func(row []driver.Value) (bool, error) {
			s, ok := snapshotOf(row)
			if ok {
				var err error
				if ok, err = c.fits(s.Seq, s.Hash); err != nil {
					return false, err
				}
			}
			if ok {
				whole++
			} else {
				not++
			}
			return true, nil
		}, "SELECT seq, hash, format, sum, data FROM snapshot")
	})
	switch {
	case err != nil:
		return bad(j.path, err)
	case not > 0:
		return Finding{What: fmt.Sprintf("%d of %d snapshots are damaged or of another history; they are passed over", not, not+whole), Do: "nothing: the next ones take their place; a start takes a little longer meanwhile"}
	}
	return Finding{OK: true, What: fmt.Sprintf("%d snapshots, all whole", whole)}
}
