package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"

	"github.com/fairlead-dev/fairlead/journal"
)

// A reader reads changes in chunks and releases its connection in between, so that a slow consumer
// neither occupies a connection nor prevents reuse of the log.
const (
	chunkChanges = 512
	chunkBytes   = 4 << 20 // of data: changes may be a megabyte each
)

// cursor is a Read under way. It goes from batch to batch; each is checked as a whole.
type cursor struct {
	query  journal.Query
	until  uint64
	next   uint64       // first seq of the batch that comes
	prev   journal.Hash // of the change before it
	chunk  []journal.Change
	bytes  int
	id     int64  // of the entity, where one is read
	last   uint64 // version of the stream's last change that was met, where one is read
	seen   uint64 // last change that was taken, where its batch is read again because it was compacted meanwhile
	sum    journal.Summer
	opened bool
	done   bool
}

// Read yields the changes that the query selects; see [journal.Journal]. Each change is checked
// against the hash chain before it is yielded; a *journal.Broken says where the check failed.
func (j *Journal) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		cur := cursor{query: q}
		for !cur.done {
			err := j.reading(ctx, func(c *conn) error { return cur.fill(c) })
			for i := range cur.chunk { // also before an error: these are good
				if !yield(cur.chunk[i], nil) {
					return
				}
			}
			if err != nil {
				yield(journal.Change{}, fmt.Errorf("read journal: %w", err))
				return
			}
		}
	}
}

// fill reads the next chunk.
func (cur *cursor) fill(c *conn) error {
	cur.chunk, cur.bytes = cur.chunk[:0], 0
	if !cur.opened {
		if err := cur.open(c); err != nil || cur.done {
			return err
		}
	}
	if err := cur.leap(c); err != nil || cur.done {
		return err
	}
	scanned := 0
	err := c.batches(cur.next-1, func(b *batchRow) (bool, error) {
		if err := cur.take(c, b); err != nil {
			return false, err
		}
		scanned += int(b.last - b.first + 1)
		return cur.next <= cur.until && scanned < chunkChanges && cur.bytes < chunkBytes, nil
	})
	if busy(err) && scanned > 0 { // what was taken is good; the rest comes with the next chunk
		return nil
	}
	if err != nil {
		return err
	}
	if cur.done = cur.next > cur.until; !cur.done && scanned == 0 {
		return broken(cur.next, "it is missing")
	}
	return nil
}

// open determines what the query means in this file.
func (cur *cursor) open(c *conn) error {
	head, err := c.lastBatch()
	if err != nil {
		return err
	}
	cur.opened, cur.until = true, head.last
	if u := cur.query.Until; u != 0 {
		cur.until = min(u, cur.until)
	}
	if cur.query.After >= cur.until {
		cur.done = true
		return nil
	}
	if cur.query.Entity != "" {
		if cur.id, err = c.entityID(cur.query.Entity); err != nil || cur.id == 0 {
			cur.done = true
			return err
		}
	}
	first, _, err := c.number("SELECT max(first) FROM batch WHERE first <= ?1", int64(cur.query.After)+1)
	if err != nil {
		return err
	}
	cur.next = max(1, uint64(first))
	cur.prev, err = c.hashBefore(cur.next)
	return err
}

// leap goes over what is known to be without the selected entity. What is left out is not checked; a gap in the versions
// of the entity shows if too much was left out.
func (cur *cursor) leap(c *conn) error {
	if cur.id == 0 {
		return nil
	}
	next, err := c.skip(cur.next, cur.id)
	if err != nil || next == cur.next {
		return err
	}
	if cur.done = next > cur.until; cur.done {
		return nil
	}
	cur.next = next
	cur.prev, err = c.hashBefore(next)
	return err
}

// take adds the selected changes of a batch to the chunk. A batch without the selected entity, in a
// stretch that has it, is checked as well: it may have contained the entity before it was damaged.
func (cur *cursor) take(c *conn, b *batchRow) error {
	if b.first < cur.next && b.last >= cur.next && b.packed {
		prev, err := c.hashBefore(b.first)
		if err != nil {
			return err
		}
		cur.seen, cur.next, cur.prev = cur.next-1, b.first, prev
	}
	if b.first != cur.next {
		return broken(cur.next, "it is missing (the next one stored is %d)", b.first)
	}
	from := len(cur.chunk)
	got, err := b.changes(c, cur.prev, &cur.sum, cur.chunk)
	cur.chunk = got[:from]
	for i := range got[from:] {
		ch := got[from+i]
		if ch.Seq <= cur.seen || cur.id != 0 && ch.Entity != cur.query.Entity {
			continue
		}
		if followed := cur.last != 0 || cur.query.After == 0; followed && cur.id != 0 && ch.Version != cur.last+1 {
			return broken(ch.Seq, "%s has version %d where %d follows", ch.Entity, ch.Version, cur.last+1)
		}
		cur.last = ch.Version
		if ch.Seq <= cur.query.After || ch.Seq > cur.until {
			continue
		}
		cur.chunk = append(cur.chunk, ch)
		cur.bytes += len(ch.Data)
	}
	if err != nil {
		return err
	}
	cur.next, cur.prev = b.last+1, b.hash
	return nil
}

// reading lends a connection for reading.
func (j *Journal) reading(ctx context.Context, do func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-j.readers:
	default:
		select {
		case c = <-j.readers:
		case j.slots <- struct{}{}:
		case <-j.closed:
			return journal.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		if c != nil { // Close looked for idle connections while we had this one
			return errors.Join(journal.ErrClosed, c.close())
		}
		return journal.ErrClosed
	}
	if c == nil {
		var err error
		if c, err = dial(j.path, j.how); err != nil {
			<-j.slots
			return explain(j.path, err)
		}
		if err := c.exec("PRAGMA query_only = 1"); err != nil {
			<-j.slots
			return explain(j.path, errors.Join(err, c.close()))
		}
	}
	defer func() { j.readers <- c }()
	return explain(j.path, j.mark(patiently(ctx, func() error { return do(c) })))
}

// Head is the last Seq and its hash; see [journal.Journal].
func (j *Journal) Head(ctx context.Context) (seq uint64, hash journal.Hash, err error) {
	err = j.reading(ctx, func(c *conn) error {
		last, err := c.lastBatch()
		seq, hash = last.last, last.hash
		return err
	})
	if err != nil {
		return 0, journal.Hash{}, fmt.Errorf("read the journal's head: %w", err)
	}
	return seq, hash, nil
}

// sameBytes says whether a column holds these bytes.
func sameBytes(v driver.Value, want []byte) bool {
	b, ok := v.([]byte)
	return ok && bytes.Equal(b, want)
}
