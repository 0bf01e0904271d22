package file

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const DepthMax = 64 // bounds the cost of walking unknown fields

// Field is a field of a JSON object, with its value as written (X7).
type Field struct {
	Name string
	Raw  jsontext.Value // one valid JSON value, without surrounding white space
}

// Fields are all fields of an object whose names are not known before, in order. A name that occurs twice keeps its first
// position and its last value, as in Python.
type Fields []Field

// UnmarshalJSONFrom reads the object.
func (f *Fields) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	place := map[string]int{}
	return EachMember(d, func(name string) error {
		value, err := d.ReadValue()
		at, again := place[name]
		if !again {
			at = len(*f)
			place[name], *f = at, append(*f, Field{Name: name})
		}
		(*f)[at].Raw = value.Clone()
		return err
	})
}

// MarshalJSONTo writes the object.
func (f Fields) MarshalJSONTo(e *jsontext.Encoder) error {
	return WriteMembers(e, len(f), func(i int) (string, any) { return f[i].Name, f[i].Raw })
}

// WriteMembers writes an object with so many members, in order.
func WriteMembers(e *jsontext.Encoder, n int, member func(i int) (name string, value any)) error {
	err := e.WriteToken(jsontext.BeginObject)
	for i := 0; i < n && err == nil; i++ {
		name, value := member(i)
		err = errors.Join(e.WriteToken(jsontext.String(name)), json.MarshalEncode(e, value))
	}
	return errors.Join(err, e.WriteToken(jsontext.EndObject))
}

// Pack writes fields of other programs as one JSON object on one line. Their values keep their order and their spelling (X7).
func Pack(fields any, more ...json.Options) ([]byte, error) {
	return json.Marshal(fields, append(more, jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true))...)
}

// Unpack reads what Pack has written.
func Unpack(packed []byte, to any) error {
	return json.Unmarshal(packed, to, jsontext.AllowInvalidUTF8(true))
}

// ErrNoObject is returned for JSON that is not an object.
var ErrNoObject = errors.New("is no JSON object")

// Unmarked is the text of another program's file without the byte order mark that some editors write before it.
func Unmarked(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }

// FirstInvalid is the offset of the first byte that is not valid JSON, or -1.
func FirstInvalid(b []byte) int64 {
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return int64(at)
}

// TooDeep returns the offset of the first bracket beyond DepthMax in valid JSON, or -1.
func TooDeep(b []byte) int64 {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > DepthMax {
				return int64(i)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// ParseTime parses a time as other programs write it: RFC 3339 with any fraction, which includes the seed's
// isoformat()+"Z"; a space or a small t instead of T; and +00:00Z, which the same Python code gives for a
// time with a zone.
func ParseTime(text string) (time.Time, error) {
	norm := strings.ToUpper(strings.TrimSpace(text))
	if before, ok := strings.CutSuffix(norm, "+00:00Z"); ok {
		norm = before + "Z"
	}
	if len(norm) > 10 && norm[10] == ' ' {
		norm = norm[:10] + "T" + norm[11:]
	}
	at, err := time.Parse(time.RFC3339Nano, norm)
	if err != nil {
		return time.Time{}, fmt.Errorf("timestamp %.40q is not RFC 3339 (as 2025-10-15T22:39:14.372Z)", text)
	}
	return at.UTC(), nil
}

// FormatTime formats a time like seed 000: UTC, milliseconds, Z.
func FormatTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// JSONFault says why a JSON file is refused, and where.
type JSONFault struct {
	File   string // a path or a name for messages
	Path   string // of the field, such as steps.coding.status; empty for the whole file
	Line   int    // from 1; 0 if unknown or if it concerns the whole file
	Offset int64  // in bytes from the start
	Fault  string // what is wrong

	Unfinished bool // the text breaks off, so it may still be being written
}

func (f *JSONFault) Error() string {
	if f.Line == 0 {
		return strings.Join(strings.Fields(f.File+": "+f.Path+" "+f.Fault), " ")
	}
	if f.Path == "" {
		return fmt.Sprintf("%s is malformed at line %d (byte %d): %s", f.File, f.Line, f.Offset, f.Fault)
	}
	return fmt.Sprintf("%s is malformed at line %d (byte %d): %s %s", f.File, f.Line, f.Offset, f.Path, f.Fault)
}

// Text is a text that is written as null if it is empty.
type Text string

// MarshalJSONTo writes the text, or null.
func (t Text) MarshalJSONTo(e *jsontext.Encoder) error {
	if t == "" {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(string(t)))
}
