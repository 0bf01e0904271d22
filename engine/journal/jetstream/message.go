package jetstream

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

// A message is text. Its first line is its head, and the rest is its part of a batch:
//
//	{"format":2,"id":"9f…","first":7,"part":1,"parts":1,"sum":"5c0d1e2f"}
//	{"before":"…","hash":"…"}
//	{"seq":7,"version":3,"time":"…","machine":"control",…}
//
// A batch has a line with the hashes of the change before the first and of the last change, and then each change as a
// [journal.Line]. One that is larger than the server takes in one message is cut into parts, at any byte.
const (
	format   = 2
	headMax  = 160                             // bytes of a head: all numbers are bounded
	partsMax = 1000                            // of an atomic batch, by the server
	bodyMax  = 2*journal.BatchBytesMax + 5<<20 // data, of which each byte may be escaped, and the words of 1000 changes
)

// id names one append among all of all writers.
type id [16]byte

func (n id) String() string { return hex.EncodeToString(n[:]) }

// MarshalText returns the same as String.
func (n id) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText takes exactly 32 hexadecimal digits.
func (n *id) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(n)) {
		return errHead
	}
	_, err := hex.Decode(n[:], text)
	return err
}

// head is the first line of a message.
type head struct {
	Format int    `json:"format"`
	ID     id     `json:"id"` // of the append, the same in all its tries and parts
	First  uint64 `json:"first"`
	Part   int    `json:"part"`  // from 1
	Parts  int    `json:"parts"` // of the batch
	Sum    string `json:"sum"`   // CRC-32C of the head with an empty sum, and of the part
}

// message is one message of the stream. The body is its part of a batch.
type message struct {
	head
	body []byte
}

// batch is what one append stores.
type batch struct {
	first   uint64
	before  journal.Hash
	hash    journal.Hash // of the last change
	changes []journal.Change
}

func (b *batch) last() uint64 { return b.first + uint64(len(b.changes)) - 1 }

// ends is the first line of a batch.
type ends struct {
	Before journal.Hash `json:"before"`
	Hash   journal.Hash `json:"hash"`
}

// OtherFormat is the error for a stream that another version of Fairlead has written.
type OtherFormat struct{ Has, Knows int }

func (o *OtherFormat) Error() string {
	if o.Has > o.Knows {
		return fmt.Sprintf("the journal's stream has format %d, and this program reads format %d: a newer Fairlead wrote it; use that version on this host too",
			o.Has, o.Knows)
	}
	return fmt.Sprintf("the journal's stream has format %d of a development version, and this program reads format %d; to continue with the verified copy of one engine host, run `fairlead down` on all of them and `fairlead cluster leave --others-lost` on that one, then invite the others again",
		o.Has, o.Knows)
}

var (
	errHead  = errors.New("its first line is not that of a message")
	errSum   = errors.New("its checksum is wrong")
	errCount = errors.New("it is too large")
	errSeq   = errors.New("its changes are not numbered one after the other")
	errZone  = errors.New("a time in it is not UTC")
	errParts = errors.New("its parts are not numbered as parts are")
	castagno = crc32.MakeTable(crc32.Castagnoli)
)

// messagesOf makes the messages of a batch, none larger than limit.
func messagesOf(name id, b *batch, limit int) [][]byte {
	body := appendBatch(nil, b)
	room := limit - headMax
	parts := (len(body) + room - 1) / room
	messages := make([][]byte, 0, parts)
	for part := 1; part <= parts; part++ {
		piece := body[:min(room, len(body))]
		body = body[len(piece):]
		h := head{Format: format, ID: name, First: b.first, Part: part, Parts: parts}
		h.Sum = h.sum(piece)
		messages = append(messages, slices.Concat(encode.JSON(h), []byte("\n"), piece))
	}
	return messages
}

// sum is the checksum of a message with this head.
func (h head) sum(body []byte) string {
	h.Sum = ""
	return fmt.Sprintf("%08x", crc32.Update(crc32.Checksum(encode.JSON(h), castagno), castagno, body))
}

func appendBatch(dst []byte, b *batch) []byte {
	dst = append(dst, encode.JSON(ends{b.before, b.hash})...)
	for i := range b.changes {
		dst = append(dst, '\n')
		dst = append(dst, encode.JSON(journal.LineOf(&b.changes[i]))...)
	}
	return dst
}

// parse takes a message apart. The body is not copied.
func parse(raw []byte) (m message, err error) {
	line, body, found := bytes.Cut(raw, []byte("\n"))
	if !found || json.Unmarshal(line, &m.head) != nil {
		return m, errHead
	}
	switch m.body = body; {
	case m.Format != format:
		return m, &OtherFormat{m.Format, format}
	case !bytes.Equal(line, encode.JSON(m.head)): // a key or a number is written differently
		return m, errHead
	case m.Sum != m.sum(body):
		return m, errSum
	case m.First == 0 || m.Part < 1 || m.Part > m.Parts || m.Parts > partsMax:
		return m, errParts
	}
	return m, nil
}

// decode takes a batch apart, from the bodies of all its parts. Its hashes are not checked.
func decode(first uint64, body []byte) (*batch, error) {
	n := bytes.Count(body, []byte("\n"))
	if n == 0 || n > journal.BatchChangesMax || len(body) > bodyMax {
		return nil, errCount
	}
	lines := bytes.Split(body, []byte("\n"))
	var around ends
	if err := json.Unmarshal(lines[0], &around); err != nil {
		return nil, fmt.Errorf("its hashes cannot be read: %w", err)
	}
	b := &batch{first: first, before: around.Before, hash: around.Hash, changes: make([]journal.Change, n)}
	for i := range b.changes {
		var l journal.Line
		if err := json.Unmarshal(lines[i+1], &l); err != nil {
			return nil, fmt.Errorf("its change %d cannot be read: %w", i+1, err)
		}
		c := l.Stored()
		if c.Seq == 0 || c.Seq != first+uint64(i) {
			return nil, errSeq
		}
		if _, offset := c.Time.Zone(); offset != 0 {
			return nil, errZone
		}
		c.Time = c.Time.UTC()
		b.changes[i] = c
	}
	return b, nil
}
