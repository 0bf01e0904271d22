package sqlite

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/journal"
)

// endsEvery is after how many changes the ends of the streams are stored again. To find them
// a start reads at most twice so many changes, some milliseconds; to store them costs a few
// bytes an entity.
const endsEvery = 8192

func (j *Journal) endsDue() bool { return j.tail.seq >= j.tail.counted+endsEvery }

// storeEnds keeps where the streams end, within a transaction that knows the tail.
func (j *Journal) storeEnds() error {
	t := &j.tail
	data := []byte{}
	for _, id := range slices.Sorted(maps.Keys(t.versions)) {
		data = binary.AppendUvarint(data, uint64(id))
		data = binary.AppendUvarint(data, t.versions[id])
	}
	sum := sha256.Sum256(data)
	if err := j.writer.exec("DELETE FROM ends"); err != nil {
		return err
	}
	if err := j.writer.exec("INSERT INTO ends (seq, sum, data) VALUES (?1, ?2, ?3)", int64(t.seq), sum[:], data); err != nil {
		return err
	}
	t.counted = t.seq
	return nil
}

// findTail makes sure that what we remember of the end is the end.
func (j *Journal) findTail() error {
	t := &j.tail
	last, err := j.writer.lastBatch()
	if err != nil {
		return err
	}
	if t.known && t.seq == last.last {
		return nil
	}
	if !t.known || last.last < t.seq { // what a failed transaction has counted is not so
		t.seq, t.versions, t.counted = 0, map[int64]uint64{}, 0
		if err := j.readEnds(last.last); err != nil {
			return err
		}
		t.seq = t.counted
	}
	t.known = false
	if err := j.writer.countOn(t.versions, t.seq); err != nil {
		return err
	}
	t.known, t.seq, t.hash = true, last.last, last.hash
	return nil
}

// readEnds takes the stored ends, where they are whole and not of a later time.
func (j *Journal) readEnds(head uint64) error {
	t := &j.tail
	return j.writer.query(func(row []driver.Value) (bool, error) {
		seq, _ := row[0].(int64)
		data, _ := row[2].([]byte)
		sum := sha256.Sum256(data)
		if seq < 0 || uint64(seq) > head || !sameBytes(row[1], sum[:]) {
			return true, nil
		}
		if !takeEnds(data, t.versions) {
			clear(t.versions)
			return true, nil
		}
		t.counted = uint64(seq)
		return false, nil
	}, "SELECT seq, sum, data FROM ends ORDER BY seq DESC")
}

func takeEnds(data []byte, versions map[int64]uint64) (whole bool) {
	for len(data) > 0 {
		var id, version uint64
		rest, err := uvarint(data, &id)
		if err == nil {
			rest, err = uvarint(rest, &version)
		}
		if err != nil {
			return false
		}
		versions[int64(id)], data = version, rest
	}
	return true
}

// countOn adds the changes after a seq to the versions. Their contents are not checked: who
// reads them does that.
func (c *conn) countOn(versions map[int64]uint64, after uint64) error {
	return c.batches(after, func(b *batchRow) (bool, error) {
		var r record
		rest := b.data
		for seq := b.first; seq <= b.last; seq++ {
			var err error
			if rest, err = nextRecord(rest, &r, r.nanos); err != nil {
				return false, broken(seq, "%v", err)
			}
			if seq > after {
				versions[int64(r.entity)] = r.version
			}
		}
		return true, nil
	})
}

// lastBatch is the row at the end; of an empty journal the zero value. Its data is left out.
func (c *conn) lastBatch() (b batchRow, err error) {
	err = c.query(func(row []driver.Value) (bool, error) {
		return false, b.scan(row)
	}, "SELECT first, last, hash, x'' FROM batch ORDER BY first DESC LIMIT 1")
	return b, err
}

// batches calls each for the batch that holds the change behind a seq and those that follow.
func (c *conn) batches(after uint64, each func(*batchRow) (more bool, err error)) error {
	var b batchRow
	return c.query(func(row []driver.Value) (bool, error) {
		if err := b.scan(row); err != nil {
			return false, err
		}
		return each(&b)
	}, "SELECT first, last, hash, data FROM batch WHERE first >= (SELECT coalesce(max(first), 0) FROM batch WHERE first <= ?1) ORDER BY first", int64(after)+1)
}

// scan takes a row apart.
func (b *batchRow) scan(row []driver.Value) error {
	first, ok0 := row[0].(int64)
	last, ok1 := row[1].(int64)
	hash, ok2 := row[2].([]byte)
	data, ok3 := row[3].([]byte)
	if !ok3 && row[3] == nil {
		ok3 = true // an empty blob
	}
	b.first, b.last, b.data = uint64(first), uint64(last), data
	if !ok0 || !ok1 || !ok2 || !ok3 || copy(b.hash[:], hash) != len(b.hash) {
		return broken(b.first, "a column of its batch has the wrong type or length")
	}
	return b.inflate()
}

// hashOf gives the hash of a change, zero for seq 0, and a *Broken where there is none.
func (c *conn) hashOf(seq uint64, sum *journal.Summer) (h journal.Hash, err error) {
	if seq == 0 {
		return h, nil
	}
	found := false
	var before journal.Hash
	err = c.batches(seq-1, func(b *batchRow) (bool, error) {
		if b.first > seq || b.last < seq {
			return false, nil
		}
		found, h = true, b.hash
		if b.last == seq {
			return false, nil
		}
		if before, err = c.hashBefore(b.first); err != nil {
			return false, err
		}
		changes, err := b.changes(c, before, sum, nil)
		if err != nil {
			return false, err
		}
		h = changes[seq-b.first].Hash
		return false, nil
	})
	if err == nil && !found {
		err = broken(seq, "it is missing")
	}
	return h, err
}

// hashBefore is the hash of the change before a batch.
func (c *conn) hashBefore(first uint64) (h journal.Hash, err error) {
	if first <= 1 {
		return h, nil
	}
	var b batchRow
	err = c.query(func(row []driver.Value) (bool, error) {
		return false, b.scan(row)
	}, "SELECT first, last, hash, x'' FROM batch WHERE first < ?1 ORDER BY first DESC LIMIT 1", int64(first))
	if err == nil && b.last != first-1 {
		err = broken(b.last+1, "it is missing (the next one stored is %d)", first)
	}
	return b.hash, err
}
