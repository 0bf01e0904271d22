package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
)

// A reader takes changes in chunks and lets go of its connection in between, so that
// a slow consumer keeps neither a connection nor the log from being reused.
const (
	chunkChanges = 512
	chunkBytes   = 4 << 20 // of data: changes may be a megabyte each
)

const (
	readAll    = "SELECT seq, entity, version, time, phrase, cause, hash, data FROM change WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3"
	readStream = `SELECT seq, entity, version, time, phrase, cause, hash, data,
		(SELECT hash FROM change AS before WHERE before.seq = change.seq - 1)
		FROM change WHERE entity = ?4 AND seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3`
)

// cursor is a Read under way.
type cursor struct {
	query  journal.Query
	until  uint64
	chain  journal.Chain // where all is read
	chunk  []journal.Change
	bytes  int
	id     int64  // of the entity, where one is read
	last   uint64 // its version before the next that is to be read
	sum    journal.Summer
	opened bool
	done   bool
}

// Read yields what the query names; see [journal.Journal]. Each change is checked
// against the hash chain before it is yielded; a *journal.Broken says where it fails.
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
	limited := false
	each := func(row []driver.Value) (bool, error) {
		if err := cur.take(c, row); err != nil {
			return false, err
		}
		limited = len(cur.chunk) == chunkChanges || cur.bytes >= chunkBytes
		return !limited, nil
	}
	var err error
	if cur.query.Entity == "" {
		err = c.query(each, readAll, int64(cur.query.After), int64(cur.until), int64(chunkChanges))
	} else {
		err = c.query(each, readStream, int64(cur.query.After), int64(cur.until), int64(chunkChanges), cur.id)
	}
	if busy(err) && len(cur.chunk) > 0 { // what was taken is good; the rest comes with the next chunk
		limited, err = true, nil
	}
	if err != nil {
		return err
	}
	cur.done = !limited || cur.query.After >= cur.until
	switch {
	case !cur.done:
	case cur.query.Entity != "":
		return cur.atEnd(c)
	case cur.chain.Seq < cur.until:
		return &journal.Broken{Seq: cur.chain.Seq + 1, Why: "it is missing"}
	}
	return nil
}

// atEnd makes sure that the index has not lost the rest of a stream: what was read last
// is followed by the next version, or is where the stream is said to end.
func (cur *cursor) atEnd(c *conn) error {
	var next, end int64
	var more bool
	err := c.query(func(row []driver.Value) (bool, error) {
		next, more = row[0].(int64)
		end, _ = row[1].(int64)
		return false, nil
	}, `SELECT (SELECT version FROM change WHERE entity = ?1 AND seq > ?2 ORDER BY seq LIMIT 1), version
		FROM entity WHERE id = ?1`, cur.id, int64(cur.until))
	if err != nil {
		return err
	}
	if more && uint64(next) == cur.last+1 || !more && uint64(end) == cur.last {
		return nil
	}
	return &journal.Broken{Seq: cur.query.After + 1, Why: fmt.Sprintf("from here on changes of %s are missing: %d were found, the stream ends at %d", cur.query.Entity, cur.last, end)}
}

// open finds out what the query means in this file.
func (cur *cursor) open(c *conn) (err error) {
	head, _, err := c.number("SELECT max(seq) FROM change")
	if err != nil {
		return err
	}
	cur.opened, cur.until = true, uint64(head)
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
		last, _, err := c.number("SELECT version FROM change WHERE entity = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1", cur.id, int64(cur.query.After))
		cur.last = uint64(last)
		return err
	}
	cur.chain.Seq = cur.query.After
	cur.chain.Hash, err = c.hashOf(cur.query.After)
	return err
}

// take turns a row into a change and checks it.
func (cur *cursor) take(c *conn, row []driver.Value) error {
	cur.chunk = append(cur.chunk, journal.Change{})
	ch := &cur.chunk[len(cur.chunk)-1]
	why, err := decode(c, row, ch)
	if err == nil && why != "" {
		err = &journal.Broken{Seq: ch.Seq, Why: why}
	}
	if err == nil && cur.query.Entity == "" {
		err = cur.chain.Take(ch)
	} else if err == nil {
		err = cur.follow(row, ch)
	}
	if err != nil {
		cur.chunk = cur.chunk[:len(cur.chunk)-1]
		return err
	}
	cur.query.After = ch.Seq
	cur.bytes += len(ch.Data)
	return nil
}

// follow checks a change of one stream: its own hash over the one before it in the
// file, and its place in the stream.
func (cur *cursor) follow(row []driver.Value, ch *journal.Change) error {
	var prev journal.Hash
	before, _ := row[8].([]byte)
	if n := copy(prev[:], before); n != len(prev) && ch.Seq != 1 {
		return &journal.Broken{Seq: ch.Seq - 1, Why: "it is missing"}
	}
	if want := cur.sum.Sum(prev, ch); want != ch.Hash {
		return &journal.Broken{Seq: ch.Seq, Why: fmt.Sprintf("its hash is %s, its contents give %s", ch.Hash, want)}
	}
	if ch.Version != cur.last+1 {
		return &journal.Broken{Seq: ch.Seq, Why: fmt.Sprintf("%s has version %d where %d follows", ch.Entity, ch.Version, cur.last+1)}
	}
	cur.last = ch.Version
	return nil
}

// decode fills a change from a row of readAll; why is not empty where it cannot be one.
func decode(c *conn, row []driver.Value, ch *journal.Change) (why string, err error) {
	seq, ok0 := row[0].(int64)
	entity, ok1 := row[1].(int64)
	version, ok2 := row[2].(int64)
	nanos, ok3 := row[3].(int64)
	words, ok4 := row[4].(int64)
	cause, ok5 := row[5].(int64)
	hash, ok6 := row[6].([]byte)
	ch.Seq = uint64(seq)
	if !ok0 || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || len(hash) != len(ch.Hash) {
		return "a column has the wrong type or length", nil
	}
	name, found, err := c.entity(entity)
	if err != nil {
		return "", err
	}
	if !found {
		return fmt.Sprintf("its entity %d is not in the file", entity), nil
	}
	p, found, err := c.phrase(words)
	if err != nil {
		return "", err
	}
	if !found {
		return fmt.Sprintf("its phrase %d is not in the file", words), nil
	}
	ch.Version, ch.Time, ch.Cause = uint64(version), time.Unix(0, nanos).UTC(), uint64(cause)
	ch.Entity, ch.Machine, ch.Row, ch.From, ch.To, ch.Trigger, ch.Actor = name, p.machine, p.rule, p.was, p.became, p.cue, p.actor
	copy(ch.Hash[:], hash)
	if row[7] != nil {
		data, ok := row[7].([]byte)
		if !ok {
			return "its data has the wrong type", nil
		}
		ch.Data = data
	}
	return "", nil
}

// reading lends a connection that reads.
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
	return explain(j.path, patiently(ctx, func() error { return do(c) }))
}

// Head is the last Seq and its hash; see [journal.Journal].
func (j *Journal) Head(ctx context.Context) (seq uint64, hash journal.Hash, err error) {
	err = j.reading(ctx, func(c *conn) error {
		seq, hash = 0, journal.Hash{}
		return c.query(func(row []driver.Value) (bool, error) {
			n, _ := row[0].(int64)
			seq = uint64(n)
			if b, _ := row[1].([]byte); copy(hash[:], b) != len(hash) {
				return false, &journal.Broken{Seq: seq, Why: "it has no hash"}
			}
			return false, nil
		}, "SELECT seq, hash FROM change ORDER BY seq DESC LIMIT 1")
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
