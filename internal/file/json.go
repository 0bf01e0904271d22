package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
