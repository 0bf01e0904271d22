package jetstream

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// A message is, integers big-endian:
//
//	1 byte     format, now 1
//	16 bytes   id of the append, the same in all its tries and parts
//	8 bytes    seq of the first change of the batch
//	2 bytes    part, from 1
//	2 bytes    parts of the batch: 1, unless it is larger than the server takes in one message
//	4 bytes    CRC-32C of all other bytes of the message
//
// and its part of the batch. The batch is, integers as varints:
//
//	32 bytes   hash of the change before the first
//	32 bytes   hash of the last change
//	words      how many, then each with its length: every text of the changes once
//	changes    how many, then each:
//	           time, nanoseconds since the change before it, of the first since 1970, signed
//	           version and cause
//	           machine, entity, row, from, to, trigger, actor.kind, actor.id: numbers of words
//	           data: length and so many bytes
//
// The rows of the SQLite journal have another form: they name words by numbers of their own file.
const (
	format      = 1
	headBytes   = 1 + len(id{}) + 8 + 2 + 2 + crcBytes
	crcBytes    = 4
	crcAt       = headBytes - crcBytes
	wordsOf     = 8                             // words of a change
	changeBytes = 1 + 1 + 1 + wordsOf + 1       // the least that a change takes
	partsMax    = 1000                          // of an atomic batch, by the server
	bodyMax     = journal.BatchBytesMax + 4<<20 // data, and the words and numbers of 1000 changes
)

// id names one append among all of all writers.
type id [16]byte

func (n id) String() string { return hex.EncodeToString(n[:]) }

// message is one message of the stream. The body is its part of a batch.
type message struct {
	id          id
	first       uint64
	part, parts uint16
	body        []byte
}

// batch is what one append stores.
type batch struct {
	first   uint64
	before  journal.Hash
	hash    journal.Hash // of the last change
	changes []journal.Change
}

func (b *batch) last() uint64 { return b.first + uint64(len(b.changes)) - 1 }

// Newer is the error for a stream that a newer Fairlead writes.
type Newer struct{ Has, Knows int }

func (n *Newer) Error() string {
	return fmt.Sprintf("the journal's stream has format %d, and this program reads formats up to %d: a newer Fairlead wrote it; use that version on this host too", n.Has, n.Knows)
}

var (
	errShort = errors.New("it breaks off")
	errSum   = errors.New("its checksum is wrong")
	errWord  = errors.New("it names a word that it does not have")
	errCount = errors.New("it claims more than it has room for")
	errTail  = errors.New("there are bytes after its end")
	errParts = errors.New("its parts are not numbered as parts are")
	castagno = crc32.MakeTable(crc32.Castagnoli)
)

// encode makes the messages of a batch, none larger than limit.
func encode(name id, b *batch, limit int) [][]byte {
	body := appendBatch(nil, b)
	room := limit - headBytes
	parts := (len(body) + room - 1) / room
	messages := make([][]byte, 0, parts)
	for part := 1; part <= parts; part++ {
		piece := body[:min(room, len(body))]
		body = body[len(piece):]
		m := make([]byte, 0, headBytes+len(piece))
		m = append(m, format)
		m = append(m, name[:]...)
		m = binary.BigEndian.AppendUint64(m, b.first)
		m = binary.BigEndian.AppendUint16(m, uint16(part))  //nolint:gosec // partsMax of them at most
		m = binary.BigEndian.AppendUint16(m, uint16(parts)) //nolint:gosec // likewise
		m = append(m, 0, 0, 0, 0)
		m = append(m, piece...)
		binary.BigEndian.PutUint32(m[crcAt:], checksum(m))
		messages = append(messages, m)
	}
	return messages
}

func checksum(m []byte) uint32 {
	return crc32.Update(crc32.Checksum(m[:crcAt], castagno), castagno, m[headBytes:])
}

func texts(c *journal.Change) [wordsOf]*string {
	return [...]*string{&c.Machine, &c.Entity, &c.Row, &c.From, &c.To, &c.Trigger, &c.Actor.Kind, &c.Actor.ID}
}

func appendBatch(dst []byte, b *batch) []byte {
	dst = append(append(dst, b.before[:]...), b.hash[:]...)
	numbers, words := map[string]uint64{}, []string{}
	for i := range b.changes {
		for _, s := range texts(&b.changes[i]) {
			if _, met := numbers[*s]; !met {
				numbers[*s] = uint64(len(words))
				words = append(words, *s)
			}
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(words)))
	for _, w := range words {
		dst = append(binary.AppendUvarint(dst, uint64(len(w))), w...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.changes)))
	before := int64(0)
	for i := range b.changes {
		c := &b.changes[i]
		nanos := c.Time.UnixNano()
		dst = binary.AppendVarint(dst, nanos-before)
		before = nanos
		dst = binary.AppendUvarint(dst, c.Version)
		dst = binary.AppendUvarint(dst, c.Cause)
		for _, s := range texts(c) {
			dst = binary.AppendUvarint(dst, numbers[*s])
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(c.Data))), c.Data...)
	}
	return dst
}

// parse takes a message apart. The body is not copied.
func parse(raw []byte) (m message, err error) {
	if len(raw) > 0 && raw[0] > format {
		return m, &Newer{int(raw[0]), format}
	}
	if len(raw) < headBytes || raw[0] != format {
		return m, errShort
	}
	if binary.BigEndian.Uint32(raw[crcAt:]) != checksum(raw) {
		return m, errSum
	}
	copy(m.id[:], raw[1:])
	at := 1 + len(m.id)
	m.first = binary.BigEndian.Uint64(raw[at:])
	m.part, m.parts = binary.BigEndian.Uint16(raw[at+8:]), binary.BigEndian.Uint16(raw[at+10:])
	m.body = raw[headBytes:]
	if m.first == 0 || m.part == 0 || m.part > m.parts || m.parts > partsMax {
		return m, errParts
	}
	return m, nil
}

// decode takes a batch apart, from the bodies of all its parts. Its hashes are not checked.
func decode(first uint64, body []byte) (*batch, error) {
	b := &batch{first: first}
	if len(body) < len(b.before)+len(b.hash) || len(body) > bodyMax {
		return nil, errShort
	}
	r := reader{rest: body}
	copy(b.before[:], r.take(uint64(len(b.before))))
	copy(b.hash[:], r.take(uint64(len(b.hash))))
	words := make([]string, r.count(1))
	for i := range words {
		words[i] = string(r.take(r.number()))
	}
	b.changes = make([]journal.Change, r.count(changeBytes))
	if n := len(b.changes); r.err == nil && (n == 0 || n > journal.BatchChangesMax || first+uint64(n) < first) {
		return nil, errCount
	}
	nanos := int64(0)
	for i := range b.changes {
		c := &b.changes[i]
		nanos += r.signed()
		c.Seq, c.Time = first+uint64(i), time.Unix(0, nanos).UTC()
		c.Version, c.Cause = r.number(), r.number()
		for _, s := range texts(c) {
			if n := r.number(); n < uint64(len(words)) {
				*s = words[n]
			} else if r.err == nil {
				r.err = errWord
			}
		}
		if data := r.take(r.number()); len(data) > 0 {
			c.Data = data[:len(data):len(data)]
		}
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = errTail
	}
	if r.err != nil {
		return nil, r.err
	}
	return b, nil
}

// reader reads what may be damaged. After an error it gives zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = errShort
	}
	r.rest = nil
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

// count reads how many things follow, each of so many bytes at least.
func (r *reader) count(least int) int {
	n := r.number()
	if n > uint64(len(r.rest)/least) {
		if r.err == nil {
			r.err = errCount
		}
		r.rest = nil
		return 0
	}
	return int(n) //nolint:gosec // it is bounded by the bytes
}
