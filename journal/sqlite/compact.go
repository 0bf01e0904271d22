package sqlite

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
)

// The data of a compacted batch is the byte packedMark and its records, compressed by DEFLATE. No record begins with
// that byte, because the ids of entities begin at 1.
const (
	packedMark   = 0
	packedMax    = chunkBytes + 2*journal.DataBytesMax // bytes of the records of a compacted batch
	segmentMax   = endsEvery                           // changes that are compacted in one transaction
	segmentBytes = 32 << 20                            // and bytes of their records: they are held in memory
	vacuumShare  = 8                                   // the file is written anew if one part of so many is free
)

// Compacting says what Compact does.
type Compacting struct {
	Before time.Time // only changes before this time
	Dry    bool      // change nothing
	Alone  bool      // no other process works with the journal, so the file can be written anew, without free pages
}

// Compacted is what Compact did, or would do.
type Compacted struct {
	Changes       uint64 // that were compressed now
	Before, After int64  // bytes of these
	Free          int64  // bytes in the file that the next changes will use
}

// Compact compresses the changes of a journal before a time. They stay where they are in the hash chain, and every
// reader gets them as before. Each step is one transaction, so Compact may be killed at any time. Another process may
// read and append meanwhile.
func Compact(ctx context.Context, path string, how Compacting) (done Compacted, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("compact the journal: %w", err)
		}
	}()
	j, err := openToCompact(ctx, path, how)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for next := uint64(0); ; {
		var s segment
		if err := j.reading(ctx, func(c *conn) error {
			s = segment{}
			return s.read(c, next, how.Before)
		}); err != nil || len(s.rows) == 0 {
			if err != nil {
				return done, err
			}
			break
		}
		next = s.last + 1
		if s.after >= s.before {
			continue // it would not get smaller
		}
		if !how.Dry {
			if replaced, err := j.replace(ctx, &s); err != nil || !replaced {
				if err != nil {
					return done, err
				}
				continue
			}
		}
		done.Changes, done.Before, done.After = done.Changes+s.last-s.first+1, done.Before+s.before, done.After+s.after
	}
	if how.Dry {
		return done, nil
	}
	return done, j.shrink(ctx, how.Alone, &done)
}

// openToCompact opens a journal, for a dry run only to read. It does not change the format below a daemon of an older
// Fairlead, which could not read the journal then.
func openToCompact(ctx context.Context, path string, how Compacting) (*Journal, error) {
	if how.Alone && !how.Dry {
		return Open(ctx, path)
	}
	j := handle(path, readOnly)
	var have int64
	err := j.reading(ctx, func(c *conn) (err error) {
		if err = identify(c); err == nil {
			have, _, err = c.number("PRAGMA user_version")
		}
		return err
	})
	if want := int64(len(migrations())); err == nil && have != want {
		err = &Unusable{Path: path, What: fmt.Sprintf("it has format %d, and this program writes format %d", have, want), Do: "run `fairlead down` if an older Fairlead works here, then `fairlead up` with this program once, and try again"}
	}
	if how.Dry && err == nil {
		return j, nil
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return nil, err
	}
	return Open(ctx, path)
}

// segment is a part of the journal that is compacted in one transaction.
type segment struct {
	first, last   uint64
	before, after int64 // bytes of the rows
	count         int64 // rows before
	rows          []batchRow
}

// read compresses the first changes from next on that are not compressed. It checks them against the hash chain on the
// way, and what it has made as well. No rows: there is nothing more to do.
func (s *segment) read(c *conn, next uint64, before time.Time) error {
	first, found, err := c.number("SELECT first FROM batch WHERE first >= ?1 AND substr(data, 1, 1) <> x'00' ORDER BY first LIMIT 1", int64(next))
	if err != nil || !found {
		return err
	}
	end, err := c.segmentEnd(first)
	if err != nil {
		return err
	}
	prev, err := c.hashBefore(uint64(first))
	if err != nil {
		return err
	}
	s.first = uint64(first)
	var (
		from    = prev
		sum     journal.Summer
		changes []journal.Change
		raw     int64
	)
	p := packer{keep: func(b batchRow) error {
		b.data = deflate(b.data)
		s.rows = append(s.rows, b)
		s.after += int64(len(b.data))
		return nil
	}}
	err = c.batches(s.first-1, func(b *batchRow) (bool, error) {
		if b.last > uint64(end) || b.packed {
			return false, nil
		}
		if changes, err = b.changes(c, prev, &sum, changes[:0]); err != nil {
			return false, err
		}
		if !changes[len(changes)-1].Time.Before(before) {
			return false, nil
		}
		if err := p.addAll(b, changes); err != nil {
			return false, err
		}
		s.last, prev = b.last, b.hash
		s.before, s.count, raw = s.before+int64(b.stored), s.count+1, raw+int64(len(b.data))
		return raw < segmentBytes, nil
	})
	if err == nil {
		err = p.flush()
	}
	if err != nil {
		return err
	}
	return s.check(c, from, prev)
}

// segmentEnd is the last change that may be in a segment: entities are looked for in stretches of batches, so that no
// batch may be in two stretches.
func (c *conn) segmentEnd(first int64) (int64, error) {
	end := first + segmentMax - 1
	last, found, err := c.number("SELECT last FROM stretch WHERE first <= ?1 AND last >= ?1 ORDER BY first DESC LIMIT 1", first)
	if err != nil || found {
		return min(end, last), err
	}
	later, found, err := c.number("SELECT min(first) FROM stretch WHERE first > ?1", first)
	if err != nil || !found {
		return end, err
	}
	return min(end, later-1), nil
}

// check reads the compressed rows as a reader does.
func (s *segment) check(c *conn, prev, last journal.Hash) error {
	var sum journal.Summer
	for i := range s.rows {
		b := s.rows[i]
		if err := b.inflate(); err != nil {
			return err
		}
		if _, err := b.changes(c, prev, &sum, nil); err != nil {
			return fmt.Errorf("what was compressed reads differently, and the journal is as it was: %w", err)
		}
		prev = b.hash
	}
	if prev != last {
		return fmt.Errorf("changes %d to %d, compressed, have another hash; the journal is as it was", s.first, s.last)
	}
	return nil
}

// replace puts a segment's rows into the place of those that it was read from. It does nothing if another process has
// replaced them.
func (j *Journal) replace(ctx context.Context, s *segment) (replaced bool, err error) {
	j.pen <- struct{}{}
	defer func() { <-j.pen }()
	w := j.writer
	if err := patiently(ctx, func() error { return w.exec("BEGIN IMMEDIATE") }); err != nil {
		return false, explain(j.path, err)
	}
	replaced, err = s.store(w)
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK") // where SQLite has rolled back by itself this fails, and that is well
	}
	return replaced, explain(j.path, err)
}

func (s *segment) store(w *conn) (same bool, err error) {
	const among = " FROM batch WHERE first >= ?1 AND first <= ?2"
	err = w.query(func(row []driver.Value) (bool, error) {
		same = row[0] == s.count && row[1] == s.before
		return false, nil
	}, "SELECT count(*), sum(length(data))"+among, int64(s.first), int64(s.last))
	if err != nil || !same {
		return false, err
	}
	if err := w.exec("DELETE"+among, int64(s.first), int64(s.last)); err != nil {
		return false, err
	}
	for i := range s.rows {
		b := &s.rows[i]
		if err := w.exec(insertBatch, int64(b.first), int64(b.last), b.hash[:], b.data); err != nil {
			return false, err
		}
	}
	return true, nil
}

// shrink gives free pages back, and says how many there are.
func (j *Journal) shrink(ctx context.Context, alone bool, done *Compacted) error {
	w := j.writer
	free, _, err := w.number("PRAGMA freelist_count")
	if err != nil {
		return explain(j.path, err)
	}
	all, _, err := w.number("PRAGMA page_count")
	if err == nil && alone && free*vacuumShare > all {
		if err = patiently(ctx, func() error { return w.exec("VACUUM") }); err == nil {
			free = 0
			_, _, err = w.number("PRAGMA wal_checkpoint(TRUNCATE)")
		}
	}
	if err != nil {
		return explain(j.path, err)
	}
	size, _, err := w.number("PRAGMA page_size")
	done.Free = free * size
	return explain(j.path, err)
}

// deflate compresses records.
func deflate(records []byte) []byte {
	var to bytes.Buffer
	to.WriteByte(packedMark)
	z, err := flate.NewWriter(&to, flate.DefaultCompression)
	if err == nil {
		_, err = z.Write(records)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("sqlite: compress into memory: " + err.Error())
	}
	return to.Bytes()
}

// inflate makes the records of a compacted batch readable; of another it does nothing.
func (b *batchRow) inflate() error {
	b.stored = len(b.data)
	if b.packed = b.stored > 0 && b.data[0] == packedMark; !b.packed {
		return nil
	}
	z := flate.NewReader(bytes.NewReader(b.data[1:]))
	records, err := io.ReadAll(io.LimitReader(z, packedMax+1))
	if err == nil && len(records) > packedMax {
		err = fmt.Errorf("it has more than %d bytes", packedMax)
	}
	if err != nil {
		return broken(b.first, "its batch cannot be decompressed: %v", err)
	}
	b.data = records
	return nil
}
