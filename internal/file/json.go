package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const DepthMax = 64 // bounds the cost of walking unknown fields

// Field is a field of a JSON object, with its value as written (X7).
type Field struct {
	Name string
	Raw  json.RawMessage // one valid JSON value, without surrounding white space
}

// EachField calls field for every field of a JSON object, in order, with the offset of the value's end. It
// stops at the first error, its own or that of field. ErrNoObject: the text does not begin as an object.
func EachField(object []byte, field func(name string, value json.RawMessage, end int64) error) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return ErrNoObject
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		key, ok := name.(string)
		if !ok {
			return errors.New("has a field whose name is no string")
		}
		if err := field(key, value, dec.InputOffset()); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoObject is returned for JSON that is not an object.
var ErrNoObject = errors.New("is no JSON object")

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

// Quoted is a text as a JSON string without HTML escaping.
func Quoted(text string) []byte { return AppendQuoted(nil, text) }

// AppendQuoted appends a JSON string without HTML escaping.
func AppendQuoted(out []byte, text string) []byte {
	if plain(text) { // the common case
		return append(append(append(out, '"'), text...), '"')
	}
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(fmt.Sprintf("file: a string does not encode: %v", err))
	}
	return append(out, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// plain reports whether a text needs no escaping in JSON.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
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
