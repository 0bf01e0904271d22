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

// RunFault says why bytes are no run state, or no report, and where.
type JSONFault struct {
	File   string // run_state.json, the report or the manual input
	Path   string // of the field, as steps.coding.status; empty where it is the file as a whole
	Line   int    // from 1; 0: where in the file is not known, or it is the file itself
	Offset int64  // in bytes from the start
	Fault  string // in words
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

// reader reads the JSON of a file field by field, and keeps the first fault that it meets
// with its place. What it gives after a fault means nothing.
type JSONReader struct {
	File  string
	Whole []byte
	Once  bool  // a name given twice is a fault: two readers would read it as two things
	Fault error // a *RunFault
}

// placed is a field and where in the file its value begins.
type Placed struct {
	Field
	At int64
}

// object reads the file's bytes as one JSON object.
func (r *JSONReader) Object(b []byte, most int) ([]Placed, error) {
	file := Placed{Field: Field{Raw: b}}
	switch {
	case len(b) > most:
		r.Wrong(file, "", fmt.Sprintf("larger than %d MiB", most>>20))
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

// wrong keeps a fault, if it is the first.
func (r *JSONReader) Wrong(f Placed, under, fault string) {
	if r.Fault != nil {
		return
	}
	path := under + f.Name
	at := min(f.At, int64(len(r.Whole)))
	r.Fault = &JSONFault{File: r.File, Path: path, Line: 1 + bytes.Count(r.Whole[:at], []byte("\n")), Offset: at, Fault: fault}
}

// needs is a fault where a field is missing.
func (r *JSONReader) Needs(fields []Placed, name, under string) {
	for _, f := range fields {
		if f.Name == name {
			return
		}
	}
	r.Wrong(Placed{Field: Field{Name: name}, At: r.inside(under, fields)}, under, "is missing")
}

// inside is a place in the object that misses something: its first field, or the file's start.
func (r *JSONReader) inside(under string, fields []Placed) int64 {
	if under == "" || len(fields) == 0 {
		return 0
	}
	return fields[0].At
}

// fields takes an object apart, in order. A name given twice keeps its first place and has its
// last value, as in Python, where it is no fault.
func (r *JSONReader) Fields(f Placed, under string) []Placed {
	dec := json.NewDecoder(bytes.NewReader(f.Raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		r.Wrong(f, under, "is no JSON object")
		return nil
	}
	var fields []Placed
	place := map[string]int{}
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		if err != nil || !ok {
			r.Wrong(f, under, "has a field whose name is no string")
			return nil
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			r.Wrong(f, under, err.Error())
			return nil
		}
		one := Placed{Field{key, raw}, f.At + dec.InputOffset() - int64(len(raw))}
		if i, again := place[key]; again {
			if r.Once {
				if f.Name != "" {
					under += f.Name + "."
				}
				r.Wrong(one, under, "is given twice; leave one of them out")
				return nil
			}
			fields[i] = one
			continue
		}
		place[key] = len(fields)
		fields = append(fields, one)
	}
	return fields
}

func (r *JSONReader) Text(f Placed, under string) string {
	var text string
	if f.Raw[0] != '"' || json.Unmarshal(f.Raw, &text) != nil {
		r.Wrong(f, under, "is no string")
	}
	return text
}

func (r *JSONReader) TextOrNil(f Placed, under string) *string {
	if string(f.Raw) == "null" {
		return nil
	}
	text := r.Text(f, under)
	return &text
}

// count is a whole number that is not negative.
func (r *JSONReader) Count(f Placed, under string) int {
	n, err := strconv.Atoi(string(f.Raw))
	if err != nil || n < 0 {
		r.Wrong(f, under, "is no whole number from 0 on")
		return 0
	}
	return n
}

func (r *JSONReader) Items(f Placed, under string) []json.RawMessage {
	var items []json.RawMessage
	if f.Raw[0] != '[' || json.Unmarshal(f.Raw, &items) != nil {
		r.Wrong(f, under, "is no list")
	}
	return items
}

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
