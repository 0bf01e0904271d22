package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/engine/journal"
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
	err = j.reading(ctx, func(tx *sql.Tx) error {
		if err := identify(tx); err != nil {
			return err
		}
		found = checkStructure(tx)
		return nil
	})
	if err != nil {
		found = append(found, bad(abs, err))
	} else {
		found = append(found, j.checkChain(ctx), j.checkSnapshots(ctx))
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

func checkStructure(tx *sql.Tx) []Finding {
	const mend = "stop Fairlead, copy the file and its -wal aside, and restore a backup; what can still be read can be read from the copy"
	var found []Finding
	rows, err := tx.Query(fmt.Sprintf("PRAGMA integrity_check(%d)", faultsShown))
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var s string
			if err = rows.Scan(&s); err == nil && s != "ok" {
				found = append(found, Finding{What: "the file's structure: " + s, Do: mend})
			}
		}
		err = errors.Join(err, rows.Err())
	}
	switch {
	case err != nil:
		return append(found, Finding{What: "the file's structure cannot be read: " + err.Error(), Do: mend})
	case len(found) == 0:
		return []Finding{{OK: true, What: "the file's structure is whole"}}
	}
	return found
}

func (j *Journal) checkChain(ctx context.Context) Finding {
	var seq uint64
	var hash journal.Hash
	var ends map[string]uint64
	err := j.reading(ctx, func(tx *sql.Tx) (err error) {
		if seq, hash, err = headOf(tx); err == nil {
			ends, err = endsOf(tx)
		}
		return err
	})
	if err == nil {
		err = journal.Verify(ctx, &counted{Journal: j, until: seq, ends: ends})
	}
	var broken *journal.Broken
	switch {
	case errors.As(err, &broken):
		return Finding{
			What: fmt.Sprintf("the history is not what was appended from change %d on: %s", broken.Seq, broken.Why),
			Do: fmt.Sprintf("copy the file aside; changes before %d are good; restore a backup that goes further, or start a new journal",
				broken.Seq),
			Seq: broken.Seq,
		}
	case err != nil:
		return bad(j.path, err)
	case seq == 0:
		return Finding{OK: true, What: "the history is empty"}
	}
	return Finding{OK: true, What: fmt.Sprintf("the history is whole: %d changes, the last hash is %s", seq, hash)}
}

// counted compares the ends of the streams with what is read.
type counted struct {
	*Journal
	until uint64 // the ends are as of this change
	ends  map[string]uint64
}

// Read adds a *journal.Broken where a stream does not end as it is said to.
func (c *counted) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		seen := map[string]uint64{}
		for ch, err := range c.Journal.Read(ctx, q) {
			if err == nil && ch.Seq <= c.until {
				seen[ch.Entity] = ch.Version
			}
			if !yield(ch, err) || err != nil {
				return
			}
		}
		for _, names := range []map[string]uint64{c.ends, seen} {
			for entity := range names {
				if c.ends[entity] != seen[entity] {
					yield(journal.Change{}, broken(c.until, endDiffers, entity, c.ends[entity], seen[entity]))
					return
				}
			}
		}
	}
}

func (j *Journal) checkSnapshots(ctx context.Context) Finding {
	var whole, not int
	err := j.reading(ctx, func(tx *sql.Tx) error {
		whole, not = 0, 0
		return snapshots(tx, j.path, func(_ journal.Snapshot, is bool) bool {
			if is {
				whole++
			} else {
				not++
			}
			return true
		})
	})
	switch {
	case err != nil:
		return bad(j.path, err)
	case not > 0:
		return Finding{
			What: fmt.Sprintf("%d of %d snapshots are damaged or of another history; they are passed over", not, not+whole),
			Do:   "nothing: the next ones take their place; a start takes a little longer meanwhile",
		}
	}
	return Finding{OK: true, What: fmt.Sprintf("%d snapshots, all whole", whole)}
}
