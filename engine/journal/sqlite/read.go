package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// A reader reads changes in chunks and releases its connection in between, so that a slow consumer
// neither occupies a connection nor prevents reuse of the log.
const (
	chunkChanges = 512
	chunkBytes   = 4 << 20 // of data: changes may be a megabyte each
)

// cursor is a Read under way.
type cursor struct {
	query  journal.Query
	path   string
	until  uint64
	next   uint64       // the first change that was not looked at
	prev   journal.Hash // of the change before it, where all changes are read
	last   uint64       // version of the entity's last change that was met, where one entity is read
	known  bool         // last is known
	end    uint64       // version with which the entity's stream ends
	whole  bool         // it is read up to that end
	chunk  []journal.Change
	sum    journal.Summer
	opened bool
	done   bool
}

// Read yields the changes that the query selects; see [journal.Journal]. Each change is checked
// against the hash chain before it is yielded; a *journal.Broken says where the check failed.
func (j *Journal) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		cur := cursor{query: q, path: j.path}
		for !cur.done {
			err := j.reading(ctx, cur.fill)
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

// fill reads the next chunk, within one transaction: changes may be moved to the archive between two.
func (cur *cursor) fill(tx *sql.Tx) error {
	cur.chunk = cur.chunk[:0]
	if !cur.opened {
		if err := cur.open(tx); err != nil || cur.done {
			return err
		}
	}
	part, err := partFrom(tx, cur.next, cur.query.Entity)
	switch {
	case err != nil:
		return err
	case part != nil:
		err = cur.takePart(tx, part)
	default:
		err = cur.takeRows(tx)
	}
	if err != nil {
		return err
	}
	if cur.done = cur.next > cur.until; cur.done && cur.whole && cur.known && cur.last != cur.end {
		return broken(cur.until, endDiffers, cur.query.Entity, cur.end, cur.last)
	}
	return nil
}

// open determines what the query means in this file.
func (cur *cursor) open(tx *sql.Tx) error {
	head, _, err := headOf(tx)
	if err != nil {
		return err
	}
	q := cur.query
	cur.opened, cur.until, cur.next = true, head, q.After+1
	if q.Until != 0 {
		cur.until = min(q.Until, head)
	}
	if q.After >= cur.until {
		cur.done = true
		return nil
	}
	if q.Entity == "" {
		cur.prev, err = hashOf(tx, cur.path, q.After)
		return err
	}
	cur.whole, cur.known = cur.until == head, q.After == 0
	if cur.end, err = endOf(tx, q.Entity); err != nil || q.After == 0 {
		return err
	}
	err = tx.QueryRow("SELECT version FROM change WHERE entity = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
		q.Entity, int64(q.After)).Scan(&cur.last)
	cur.known = err == nil
	if errors.Is(err, sql.ErrNoRows) { // it may be in the archive
		err = nil
	}
	return err
}

const endDiffers = "%s is said to end with version %d, and its last change up to here has version %d"

// The rows of a chunk end with the hash of the change before it, where that is not in the row before.
const (
	columns = `c.seq, c.version, c.time, c.entity, c.machine, c.row, c."from", c."to", c."trigger",
		c.actor_kind, c.actor_id, c.cause, c.data, c.hash`
	selectChanges = "SELECT " + columns + ", NULL FROM change c WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq LIMIT ?3"
	selectEntity  = "SELECT " + columns + `, before.hash FROM change c LEFT JOIN change before ON before.seq = c.seq - 1
		WHERE c.entity = ?4 AND c.seq BETWEEN ?1 AND ?2 ORDER BY c.seq LIMIT ?3`
)

// takeRows adds rows of the table to the chunk.
func (cur *cursor) takeRows(tx *sql.Tx) (err error) {
	var rows *sql.Rows
	if cur.query.Entity == "" {
		rows, err = tx.Query(selectChanges, int64(cur.next), int64(cur.until), chunkChanges)
	} else {
		rows, err = tx.Query(selectEntity, int64(cur.next), int64(cur.until), chunkChanges, cur.query.Entity)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	bytes, met := 0, 0
	for rows.Next() {
		c, before, err := scan(rows)
		if err != nil {
			return err
		}
		if cur.query.Entity != "" {
			if cur.prev = (journal.Hash{}); len(before) > 0 {
				copy(cur.prev[:], before)
			} else if cur.prev, err = hashOf(tx, cur.path, c.Seq-1); err != nil {
				return err
			}
		} else if c.Seq != cur.next {
			return broken(cur.next, "it is missing (the next one stored is %d)", c.Seq)
		}
		if sum := cur.sum.Sum(cur.prev, &c); sum != c.Hash {
			return broken(c.Seq, "its hash is %s, its contents give %s", c.Hash, sum)
		}
		if err := cur.take(&c); err != nil {
			return err
		}
		cur.prev = c.Hash
		cur.next, bytes, met = c.Seq+1, bytes+len(c.Data), met+1
		if bytes >= chunkBytes {
			return nil
		}
	}
	if err := rows.Err(); err != nil || met == chunkChanges {
		return err
	}
	if cur.query.Entity == "" && cur.next <= cur.until {
		return broken(cur.next, "it is missing")
	}
	cur.next = cur.until + 1
	return nil
}

// take adds a change to the chunk if the query selects it.
func (cur *cursor) take(c *journal.Change) error {
	if cur.query.Entity != "" {
		if c.Entity != cur.query.Entity {
			return nil
		}
		if cur.known && c.Version != cur.last+1 {
			return broken(c.Seq, "%s has version %d where %d follows", c.Entity, c.Version, cur.last+1)
		}
		cur.known, cur.last = true, c.Version
	}
	cur.chunk = append(cur.chunk, *c)
	return nil
}

// scan takes a row apart, which ends with the hash of the change before it, or NULL.
func scan(rows *sql.Rows) (c journal.Change, before []byte, err error) {
	var nanos int64
	var data, hash []byte
	err = rows.Scan(&c.Seq, &c.Version, &nanos, &c.Entity, &c.Machine, &c.Row, &c.From, &c.To, &c.Trigger,
		&c.Actor.Kind, &c.Actor.ID, &c.Cause, &data, &hash, &before)
	if err == nil && len(hash) != len(c.Hash) {
		err = fmt.Errorf("its hash has %d bytes", len(hash))
	}
	err = ofRow(c.Seq, err)
	c.Time = time.Unix(0, nanos).UTC()
	if len(data) > 0 {
		c.Data = data
	}
	copy(c.Hash[:], hash)
	return c, before, err
}

// ofRow makes a *Broken of an error about what is in a row. SQLite's own are left as they are.
func ofRow(seq uint64, err error) error {
	if err == nil || code(err) != 0 || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return broken(seq, "its row cannot be read: %v", err)
}

// hashOf gives the hash of a change, zero for seq 0, and a *Broken where there is none.
func hashOf(tx *sql.Tx, path string, seq uint64) (h journal.Hash, err error) {
	if seq == 0 {
		return h, nil
	}
	var stored []byte
	err = tx.QueryRow("SELECT hash FROM change WHERE seq = ?1 UNION ALL SELECT hash FROM archive WHERE last = ?1 LIMIT 1",
		int64(seq)).Scan(&stored)
	if err == nil && len(stored) != len(h) {
		err = fmt.Errorf("its hash has %d bytes", len(stored))
	}
	err = ofRow(seq, err)
	copy(h[:], stored)
	if !errors.Is(err, sql.ErrNoRows) {
		return h, err
	}
	part, err := partFrom(tx, seq, "")
	if err == nil && (part == nil || part.first > seq) {
		err = broken(seq, "it is missing")
	}
	if err != nil {
		return h, err
	}
	changes, err := part.read(tx, path)
	if err == nil {
		h = changes[seq-part.first].Hash
	}
	return h, err
}

// broken names the first change that is wrong.
func broken(seq uint64, format string, args ...any) error {
	return &journal.Broken{Seq: seq, Why: fmt.Sprintf(format, args...)}
}

// reading runs a transaction that only reads.
func (j *Journal) reading(ctx context.Context, do func(*sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.life.RLock()
	defer j.life.RUnlock()
	if j.isClosed() {
		return journal.ErrClosed
	}
	return explain(j.path, j.mark(patiently(ctx, func() error {
		tx, err := j.readers.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true}) // a context that can end would cost a goroutine
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // it has only read
		return do(tx)
	})))
}

// Head is the last Seq and its hash; see [journal.Journal].
func (j *Journal) Head(ctx context.Context) (seq uint64, hash journal.Hash, err error) {
	err = j.reading(ctx, func(tx *sql.Tx) (err error) {
		seq, hash, err = headOf(tx)
		return err
	})
	if err != nil {
		return 0, journal.Hash{}, fmt.Errorf("read the journal's head: %w", err)
	}
	return seq, hash, nil
}
