package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

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
