package sqlite

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"slices"
)

// stretchMax is how many changes may wait for the next stretch. If there are more, as in a journal of an older Fairlead,
// the stretch begins later, and who reads one entity reads all changes before it.
const stretchMax = 4 * endsEvery

// storeStretch keeps which entities the changes since the last stretch are about, within a transaction that knows the
// tail.
func (j *Journal) storeStretch() error {
	w, head := j.writer, j.tail.seq
	after, _, err := w.number("SELECT max(last) FROM stretch")
	if err != nil || uint64(after) >= head { // another writer has stored it
		return err
	}
	if head > uint64(after)+stretchMax {
		first, _, err := w.number("SELECT max(first) FROM batch WHERE first <= ?1", int64(head-endsEvery))
		if err != nil {
			return err
		}
		after = max(after, first-1)
	}
	met := map[int64]uint64{}
	if err := w.countOn(met, uint64(after)); err != nil {
		return err
	}
	ids := make([]uint64, 0, len(met))
	for id := range met {
		ids = append(ids, uint64(id))
	}
	slices.Sort(ids)
	var data []byte
	before := uint64(0)
	for _, id := range ids {
		data = binary.AppendUvarint(data, id-before)
		before = id
	}
	return w.exec("INSERT INTO stretch (first, last, sum, data) VALUES (?1, ?2, ?3, ?4)", after+1, int64(head), stretchSum(after+1, int64(head), data), data)
}

func stretchSum(first, last int64, data []byte) []byte {
	text := binary.BigEndian.AppendUint64(nil, uint64(first))
	text = binary.BigEndian.AppendUint64(text, uint64(last))
	sum := sha256.Sum256(append(text, data...))
	return sum[:]
}

// skip returns the first seq from next on at which changes of an entity may be: next itself, or the beginning of a later
// batch.
func (c *conn) skip(next uint64, entity int64) (uint64, error) {
	for {
		end := int64(0)
		err := c.query(func(row []driver.Value) (bool, error) {
			first, _ := row[0].(int64)
			last, _ := row[1].(int64)
			data, _ := row[3].([]byte)
			if last >= int64(next) && sameBytes(row[2], stretchSum(first, last, data)) && !holds(data, entity) {
				end = last
			}
			return false, nil
		}, "SELECT first, last, sum, data FROM stretch WHERE first <= ?1 ORDER BY first DESC LIMIT 1", int64(next))
		if err != nil || end == 0 {
			return next, err
		}
		next = uint64(end) + 1
	}
}

// holds reports whether an id is in the list of a stretch. A list that cannot be read holds each.
func holds(data []byte, id int64) bool {
	at := uint64(0)
	for len(data) > 0 {
		var step uint64
		rest, err := uvarint(data, &step)
		if err != nil {
			return true
		}
		if at, data = at+step, rest; at >= uint64(id) {
			return at == uint64(id)
		}
	}
	return false
}
