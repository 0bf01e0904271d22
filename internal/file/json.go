package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/encode"
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
	return append(out, encode.JSON(text)...)
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
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
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

// OrNull is a text that is null if it is empty.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
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

// JSONWriter writes JSON indented by two spaces, like Python's json.dump with indent=2: an empty list or object
// on one line, otherwise one line for each element.
type JSONWriter struct {
	buf   bytes.Buffer
	depth int
	empty bool // nothing was written yet inside the innermost brackets
}

// NewJSONWriter returns a writer with room for size bytes.
func NewJSONWriter(size int) *JSONWriter {
	w := &JSONWriter{}
	w.buf.Grow(size)
	return w
}

// Bytes is what was written.
func (w *JSONWriter) Bytes() []byte { return w.buf.Bytes() }

// Open begins an object or a list.
func (w *JSONWriter) Open(bracket byte) {
	w.buf.WriteByte(bracket)
	w.depth++
	w.empty = true
}

// Close ends it.
func (w *JSONWriter) Close(bracket byte) {
	w.depth--
	if !w.empty {
		w.line()
	}
	w.buf.WriteByte(bracket)
	w.empty = false
}

// margin is a line break and the deepest indent of known fields.
const margin = "\n                "

func (w *JSONWriter) line() {
	if n := 1 + 2*w.depth; n <= len(margin) {
		w.buf.WriteString(margin[:n])
		return
	}
	w.buf.WriteByte('\n')
	for range w.depth {
		w.buf.WriteString("  ")
	}
}

// Item begins an element of a list.
func (w *JSONWriter) Item() {
	if !w.empty {
		w.buf.WriteByte(',')
	}
	w.empty = false
	w.line()
}

// Name begins a field; its value comes next.
func (w *JSONWriter) Name(name string) {
	w.Item()
	w.Text(name)
	w.buf.WriteString(": ")
}

// Text writes a string as a value.
func (w *JSONWriter) Text(text string) {
	w.buf.Write(AppendQuoted(w.buf.AvailableBuffer(), text))
}

// Field writes a field with a string.
func (w *JSONWriter) Field(name, value string) {
	w.Name(name)
	w.Text(value)
}

// Number writes a field with a whole number.
func (w *JSONWriter) Number(name string, n int) {
	w.Name(name)
	w.buf.Write(strconv.AppendInt(w.buf.AvailableBuffer(), int64(n), 10))
}

// Bool writes a field with true or false.
func (w *JSONWriter) Bool(name string, value bool) {
	w.Name(name)
	w.buf.WriteString(strconv.FormatBool(value))
}

// TextOrNull writes a field with a string, or with null.
func (w *JSONWriter) TextOrNull(name string, value *string) {
	w.Name(name)
	if value == nil {
		w.buf.WriteString("null")
		return
	}
	w.Text(*value)
}

// Texts writes a field with a list of strings.
func (w *JSONWriter) Texts(name string, values []string) {
	w.Name(name)
	w.Open('[')
	for _, value := range values {
		w.Item()
		w.Text(value)
	}
	w.Close(']')
}

// Raw writes a value with this writer's indent.
func (w *JSONWriter) Raw(value json.RawMessage) {
	prefix := bytes.Repeat([]byte("  "), w.depth)
	if err := json.Indent(&w.buf, value, string(prefix), "  "); err != nil {
		panic(fmt.Sprintf("file: a value that was read does not indent: %v", err))
	}
}

// Extra writes fields as they were read.
func (w *JSONWriter) Extra(fields []Field) {
	for _, f := range fields {
		w.Name(f.Name)
		w.Raw(f.Raw)
	}
}
