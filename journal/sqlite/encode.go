package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
)

// The data of a batch is its changes one after the other, integers as varints:
//
//	entity    number of a row of entity
//	version   of the entity's stream
//	time      nanoseconds since the change before it in the batch; of the first since 1970; signed
//	phrase    number of a row of phrase
//	cause     seq, or 0
//	data      length and so many bytes
//	mark      the first 4 bytes of the change's hash
//
// Seqs count on from the batch's first. The whole hash of the last change is kept beside the
// data, and with it the hash of each: the marks are there to say which change is the damaged
// one, not to keep out a forger.
const (
	markBytes      = 4
	recordBytesMin = 6 + markBytes // a record of six small numbers and no data
)

// record is a change in a batch, before its numbers are looked up.
type record struct {
	entity, version, phrase, cause uint64
	nanos                          int64
	data                           []byte // of the batch's own bytes
	mark                           [markBytes]byte
}

func appendRecord(dst []byte, r *record, before int64) []byte {
	dst = binary.AppendUvarint(dst, r.entity)
	dst = binary.AppendUvarint(dst, r.version)
	dst = binary.AppendVarint(dst, r.nanos-before)
	dst = binary.AppendUvarint(dst, r.phrase)
	dst = binary.AppendUvarint(dst, r.cause)
	dst = binary.AppendUvarint(dst, uint64(len(r.data)))
	dst = append(dst, r.data...)
	return append(dst, r.mark[:]...)
}

var errRecord = errors.New("its record breaks off")

// nextRecord reads a record and gives what follows it.
func nextRecord(from []byte, r *record, before int64) (rest []byte, err error) {
	var size uint64
	for _, n := range []*uint64{&r.entity, &r.version} {
		if from, err = uvarint(from, n); err != nil {
			return nil, err
		}
	}
	delta, n := binary.Varint(from)
	if n <= 0 {
		return nil, errRecord
	}
	r.nanos, from = before+delta, from[n:]
	for _, n := range []*uint64{&r.phrase, &r.cause, &size} {
		if from, err = uvarint(from, n); err != nil {
			return nil, err
		}
	}
	if size > uint64(len(from)) || len(from)-int(size) < markBytes {
		return nil, errRecord
	}
	r.data, from = from[:size], from[size:]
	copy(r.mark[:], from)
	return from[markBytes:], nil
}

func uvarint(from []byte, to *uint64) ([]byte, error) {
	v, n := binary.Uvarint(from)
	if n <= 0 {
		return nil, errRecord
	}
	*to = v
	return from[n:], nil
}

// batchRow is a row of batch.
type batchRow struct {
	first, last uint64
	hash        journal.Hash
	data        []byte // its records, also of a compacted batch
	stored      int    // bytes of data in the file
	packed      bool   // it is compacted
}

// broken names the first change that is wrong.
func broken(seq uint64, format string, args ...any) error {
	return &journal.Broken{Seq: seq, Why: fmt.Sprintf(format, args...)}
}

// changes appends the batch's changes to dst, checked against the hash of the change before
// the batch. Where one is wrong dst has those before it, and the error is a *journal.Broken.
func (b *batchRow) changes(c *conn, prev journal.Hash, sum *journal.Summer, dst []journal.Change) ([]journal.Change, error) {
	if b.last < b.first || b.last-b.first >= uint64(len(b.data)/recordBytesMin)+1 {
		return dst, broken(b.first, "its batch is said to end with change %d, and has no room for so many", b.last)
	}
	var r record
	rest := b.data
	for seq := b.first; seq <= b.last; seq++ {
		var err error
		if rest, err = nextRecord(rest, &r, r.nanos); err != nil {
			return dst, broken(seq, "%v", err)
		}
		dst = append(dst, journal.Change{})
		ch := &dst[len(dst)-1]
		if err := c.fill(ch, seq, &r); err != nil {
			return dst[:len(dst)-1], err
		}
		ch.Hash = sum.Sum(prev, ch)
		if [markBytes]byte(ch.Hash[:markBytes]) != r.mark {
			return dst[:len(dst)-1], broken(seq, "its contents give a hash that begins with %x, and it is marked %x", ch.Hash[:markBytes], r.mark)
		}
		prev = ch.Hash
	}
	switch {
	case len(rest) > 0:
		return dst[:len(dst)-1], broken(b.last, "%d bytes after it belong to no change", len(rest))
	case prev != b.hash:
		return dst[:len(dst)-int(b.last-b.first+1)], broken(b.first, "the changes up to %d give the hash %s, and it is %s", b.last, prev, b.hash)
	}
	return dst, nil
}

// fill makes a change of a record.
func (c *conn) fill(ch *journal.Change, seq uint64, r *record) error {
	name, found, err := c.entity(int64(r.entity))
	if err != nil {
		return err
	}
	if !found {
		return broken(seq, "its entity %d is not in the file", r.entity)
	}
	p, found, err := c.phrase(int64(r.phrase))
	if err != nil {
		return err
	}
	if !found {
		return broken(seq, "its phrase %d is not in the file", r.phrase)
	}
	ch.Seq, ch.Version, ch.Time, ch.Cause = seq, r.version, time.Unix(0, r.nanos).UTC(), r.cause
	ch.Entity, ch.Machine, ch.Row, ch.From, ch.To, ch.Trigger, ch.Actor = name, p.machine, p.rule, p.was, p.became, p.cue, p.actor
	if len(r.data) > 0 {
		ch.Data = json.RawMessage(r.data[:len(r.data):len(r.data)])
	}
	return nil
}
