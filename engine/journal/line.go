package journal

import (
	"encoding/json"
	"unicode/utf8"
)

// Line is a change as it is stored as text, one line of JSON: in the archive of the SQLite journal, and in the messages of a stream.
// It has no hash, which follows from the changes before it.
type Line struct {
	Change
	Data  string    `json:"data,omitempty"`  // byte for byte, which JSON in JSON is not
	Bytes []byte    `json:"bytes,omitempty"` // in its place, if it is not UTF-8
	Hash  *struct{} `json:"hash,omitempty"`
}

// LineOf is the line of a change.
func LineOf(c *Change) Line {
	l := Line{Change: *c}
	l.Time = c.Time.UTC()
	if utf8.Valid(c.Data) {
		l.Data = string(c.Data)
	} else {
		l.Bytes = c.Data
	}
	return l
}

// Stored is the change of a line, without its hash.
func (l *Line) Stored() Change {
	c := l.Change
	switch {
	case len(l.Bytes) > 0:
		c.Data = l.Bytes
	case l.Data != "":
		c.Data = json.RawMessage(l.Data)
	}
	return c
}
