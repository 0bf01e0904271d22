package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSONFault says why a JSON file is refused, and where.
type JSONFault struct {
	File   string // a path or a name for messages
	Path   string // of the field, such as steps.coding.status; empty for the whole file
	Line   int    // from 1; 0 if unknown or if it concerns the whole file
	Offset int64  // in bytes from the start
	Fault  string // what is wrong
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

// JSONReader reads a JSON file field by field and keeps the first fault with its place. After a fault,
// returned values are meaningless.
type JSONReader struct {
	File  string
	Whole []byte
	Once  bool  // a name that occurs twice is a fault, because readers disagree about its value
	Fault error // a *JSONFault
}

// Placed is a field and the offset of its value in the file.
type Placed struct {
	Field
	At int64
}

// Object parses the file as one JSON object of at most most bytes.
func (r *JSONReader) Object(b []byte, most int) ([]Placed, error) {
	file := Placed{Field: Field{Raw: b}}
	switch {
	case len(b) > most:
		r.Wrong(file, "", fmt.Sprintf("larger than %d MiB; keep other data in a file of its own", most>>20))
	case len(bytes.TrimSpace(b)) == 0:
		r.Wrong(file, "", "the file is empty")
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		r.Wrong(file, "", "starts with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(b):
		file.At = FirstInvalid(b)
		r.Wrong(file, "", "not valid UTF-8")
	}
	if r.Fault != nil {
		return nil, r.Fault
	}
	var value json.RawMessage
	if err := json.Unmarshal(b, &value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			file.At = syntax.Offset
		}
		r.Wrong(file, "", err.Error())
		return nil, r.Fault
	}
	if at := TooDeep(b); at >= 0 {
		file.At = at
		r.Wrong(file, "", fmt.Sprintf("nested deeper than %d; flatten it", DepthMax))
		return nil, r.Fault
	}
	fields := r.Fields(file, "")
	return fields, r.Fault
}

// Wrong records a fault, if it is the first.
func (r *JSONReader) Wrong(f Placed, under, fault string) {
	if r.Fault != nil {
		return
	}
	path := under + f.Name
	at := min(f.At, int64(len(r.Whole)))
	r.Fault = &JSONFault{File: r.File, Path: path, Line: 1 + bytes.Count(r.Whole[:at], []byte("\n")), Offset: at, Fault: fault}
}

// Needs records a fault if a field is missing.
func (r *JSONReader) Needs(fields []Placed, name, under string) {
	for _, f := range fields {
		if f.Name == name {
			return
		}
	}
	r.Wrong(Placed{Field: Field{Name: name}, At: r.inside(under, fields)}, under, "is missing")
}

// inside returns a place for a missing field: the first field of the object, or the start of the file.
func (r *JSONReader) inside(under string, fields []Placed) int64 {
	if under == "" || len(fields) == 0 {
		return 0
	}
	return fields[0].At
}

// Fields returns the fields of an object in order. Unless Once is set, a name that occurs twice keeps its
// first position and its last value, as in Python.
func (r *JSONReader) Fields(f Placed, under string) []Placed {
	var fields []Placed
	place := map[string]int{}
	err := EachField(f.Raw, func(key string, raw json.RawMessage, end int64) error {
		one := Placed{Field{key, raw}, f.At + end - int64(len(raw))}
		i, again := place[key]
		switch {
		case again && r.Once:
			if f.Name != "" {
				under += f.Name + "."
			}
			r.Wrong(one, under, "is given twice; leave one of them out")
			return r.Fault
		case again:
			fields[i] = one
		default:
			place[key] = len(fields)
			fields = append(fields, one)
		}
		return nil
	})
	if err != nil {
		r.Wrong(f, under, err.Error()) // unless there is a fault already
		return nil
	}
	return fields
}

// Text reads a string field.
func (r *JSONReader) Text(f Placed, under string) string {
	var text string
	if f.Raw[0] != '"' || json.Unmarshal(f.Raw, &text) != nil {
		r.Wrong(f, under, "is no string")
	}
	return text
}

// TextOrNil reads a string field that may be null.
func (r *JSONReader) TextOrNil(f Placed, under string) *string {
	if string(f.Raw) == "null" {
		return nil
	}
	text := r.Text(f, under)
	return &text
}

// Count reads an integer that is not negative.
func (r *JSONReader) Count(f Placed, under string) int {
	n, err := strconv.Atoi(string(f.Raw))
	if err != nil || n < 0 {
		r.Wrong(f, under, "is no whole number from 0 on")
		return 0
	}
	return n
}

// Items reads the elements of an array field.
func (r *JSONReader) Items(f Placed, under string) []json.RawMessage {
	var items []json.RawMessage
	if f.Raw[0] != '[' || json.Unmarshal(f.Raw, &items) != nil {
		r.Wrong(f, under, "is no list")
	}
	return items
}

// Texts reads an array of strings.
func (r *JSONReader) Texts(f Placed, under string) []string {
	items := r.Items(f, under)
	if len(items) == 0 {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if item[0] != '"' || json.Unmarshal(item, &texts[i]) != nil {
			r.Wrong(f, under, fmt.Sprintf("has an entry that is no string: its %d.", i+1))
			return nil
		}
	}
	return texts
}
