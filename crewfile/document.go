package crewfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

const (
	// DocumentBytesMax bounds the file of one agent: its soul with each character escaped to six bytes, and
	// unknown fields.
	DocumentBytesMax = 2 << 20

	// documentExtraMax bounds the unknown fields of a document, because the journal and every snapshot hold
	// them.
	documentExtraMax = 64 << 10

	documentType = "agent-identity"
)

// The fields of a document that are not part of the identity.
const (
	fieldType        = "type"
	fieldStatus      = "status"
	fieldCreated     = "createdAt"
	fieldLastAlive   = "lastAliveAt"
	fieldLastSession = "lastSessionId"
)

// documentFields are the seed's fields in its order (seed 001, agent-identity document).
var documentFields = []string{
	fieldType, fieldStatus, fieldName, fieldColor, fieldColorName, fieldGender, fieldSeat,
	fieldFace, fieldSoul, fieldCreated, fieldLastAlive, fieldLastSession,
}

// documentReader reads documents and the JSON of the lead's markers.
type documentReader struct{ file.JSONReader }

// ReadDocument parses an agent-identity document. The caller sets the ID, which is the file's name. bare
// means that the document has no status; the status is then unknown (P12), as it is for an unknown word.
// Times may be any RFC 3339 and are kept in milliseconds. Unknown fields of the document and of its
// faceVariant go into Extra, in order and with numbers as written (X7): at most 64 KiB.
//
// The error is a *file.JSONFault: not an object, another type, no gridPosition, a field given twice, a field
// of another kind than the seed's, or one that is too long.
func ReadDocument(b []byte) (doc crew.Document, bare bool, err error) {
	r := &documentReader{file.JSONReader{File: "the document", Whole: b, Once: true}}
	fields, err := r.Object(b, DocumentBytesMax)
	if err != nil {
		return crew.Document{}, false, err
	}
	bare = true
	var extra []file.Placed
	for _, f := range fields {
		switch {
		case f.Name == fieldType:
			if kind := r.Text(f, ""); kind != documentType {
				r.Wrong(f, "", fmt.Sprintf("is %.40q; a document of an agent has %q", kind, documentType))
			}
		case f.Name == fieldStatus:
			if status := r.TextOrNil(f, ""); status != nil {
				doc.Status, bare = statusOf(*status), false
			}
		case f.Name == fieldCreated:
			doc.CreatedAt = r.time(f)
		case f.Name == fieldLastAlive:
			doc.LastAliveAt = r.time(f)
		case f.Name == fieldLastSession:
			doc.LastSession = r.word(f, "")
		case f.Name == fieldFace:
			var more []file.Placed
			if doc.Face, more = r.face(f); len(more) > 0 {
				extra = slices.Insert(extra, 0, file.Placed{Field: file.Field{Name: fieldFace, Raw: objectOf(more)}, At: f.At}) // where the field is in the document
			}
		case !r.identity(&doc.Identity, f):
			extra = append(extra, f)
		}
	}
	if bare {
		doc.Status = crew.Unknown
	}
	r.Needs(fields, fieldType, "")
	r.Needs(fields, fieldSeat, "")
	if r.Fault == nil {
		doc.Extra = r.extra(extra)
	}
	if r.Fault != nil {
		return crew.Document{}, false, r.Fault
	}
	return doc, bare, nil
}

func statusOf(word string) crew.Status {
	switch status := crew.Status(word); status {
	case crew.Hatching, crew.Alive, crew.Sleeping, crew.Expired:
		return status
	}
	return crew.Unknown
}

// time reads a time or null.
func (r *documentReader) time(f file.Placed) time.Time {
	text := r.textOrNull(f, "")
	if text == "" {
		return time.Time{}
	}
	at, err := file.ParseTime(text)
	if err != nil || at.Year() < 1 || at.Year() > 9999 {
		r.Wrong(f, "", "is no time in RFC 3339, as 2026-02-16T12:00:00.000Z")
		return time.Time{}
	}
	return at.Truncate(time.Millisecond)
}

// extra makes one object of the unknown fields. It escapes like encoding/json, so that the value stays the
// same after it was stored in the journal.
func (r *documentReader) extra(fields []file.Placed) json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	var spelled bytes.Buffer
	json.HTMLEscape(&spelled, objectOf(fields))
	if n := spelled.Len(); n > documentExtraMax {
		r.Wrong(file.Placed{Field: fields[0].Field, At: fields[0].At}, "", fmt.Sprintf(
			"and the other fields that Fairlead does not know have %d bytes together; %d is the most: keep other data in a file of its own", n, documentExtraMax))
		return nil
	}
	return spelled.Bytes()
}

// objectOf encodes the fields as an object without white space.
func objectOf(fields []file.Placed) []byte {
	var object bytes.Buffer
	object.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			object.WriteByte(',')
		}
		object.Write(file.Quoted(f.Name))
		object.WriteByte(':')
		if err := json.Compact(&object, f.Raw); err != nil {
			panic("crewfile: a value that was read is no JSON: " + err.Error())
		}
	}
	object.WriteByte('}')
	return object.Bytes()
}

// WriteDocument returns the file's content: the seed's fields in its order, then unknown fields in theirs,
// indented by two spaces, without HTML escaping, with a final newline. An empty name, time or session is
// null.
func WriteDocument(d *crew.Document) []byte {
	w := documentWriter{}
	w.text(fieldType, documentType)
	w.text(fieldStatus, string(d.Status))
	w.textOrNull(fieldName, d.Name)
	w.text(fieldColor, d.Color)
	w.text(fieldColorName, d.ColorName)
	w.text(fieldGender, d.Gender)
	w.raw(fieldSeat, []byte(strconv.Itoa(d.Seat)))
	extra := unknownFields(d.Extra)
	w.raw(fieldFace, faceOf(d.Face, extra))
	w.text(fieldSoul, d.Soul)
	w.textOrNull(fieldCreated, timeOrNone(d.CreatedAt))
	w.textOrNull(fieldLastAlive, timeOrNone(d.LastAliveAt))
	w.textOrNull(fieldLastSession, d.LastSession)
	for _, f := range extra {
		if !slices.Contains(documentFields, f.Name) {
			w.raw(f.Name, indented(f.Raw, "  "))
		}
	}
	w.out.WriteString("\n}\n")
	return w.out.Bytes()
}

// DocumentSum returns the sum of what WriteDocument returns (X3).
func DocumentSum(d *crew.Document) string { return string(file.SumOf(WriteDocument(d))) }

type documentWriter struct{ out bytes.Buffer }

func (w *documentWriter) raw(name string, value []byte) {
	if w.out.Len() == 0 {
		w.out.WriteString("{\n  ")
	} else {
		w.out.WriteString(",\n  ")
	}
	w.out.Write(file.Quoted(name))
	w.out.WriteString(": ")
	w.out.Write(value)
}

// faceOf encodes a face: known fields first, then unknown ones.
func faceOf(face crew.Face, extra []file.Placed) []byte {
	var out bytes.Buffer
	part := func(before, name string, value []byte) {
		out.WriteString(before + "\n    ")
		out.Write(file.Quoted(name))
		out.WriteString(": ")
		out.Write(value)
	}
	part("{", fieldEyes, file.Quoted(face.Eyes))
	part(",", fieldMouth, file.Quoted(face.Mouth))
	for _, f := range extra {
		if f.Name != fieldFace {
			continue
		}
		for _, more := range unknownFields(f.Raw) {
			part(",", more.Name, indented(more.Raw, "    "))
		}
	}
	out.WriteString("\n  }")
	return out.Bytes()
}

func (w *documentWriter) text(name, text string) { w.raw(name, file.Quoted(text)) }

func (w *documentWriter) textOrNull(name, text string) {
	if text == "" {
		w.raw(name, []byte("null"))
		return
	}
	w.text(name, text)
}

func timeOrNone(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return file.FormatTime(at)
}

func unknownFields(extra json.RawMessage) []file.Placed {
	if len(extra) == 0 {
		return nil
	}
	r := &file.JSONReader{File: "a document's unknown fields", Whole: extra}
	fields := r.Fields(file.Placed{Field: file.Field{Raw: extra}}, "")
	if r.Fault != nil {
		panic("crewfile: unknown fields that were read before: " + r.Fault.Error())
	}
	return fields
}

// indented formats a value for the file: over several lines, with < > & unescaped.
func indented(value []byte, under string) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, value, under, "  "); err != nil {
		panic("crewfile: a value that was read is no JSON: " + err.Error())
	}
	b := out.Bytes()
	if !bytes.Contains(b, []byte(`\u00`)) {
		return b
	}
	plain := b[:0]
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			plain = append(plain, b[i])
			continue
		}
		if i+6 <= len(b) {
			switch string(b[i : i+6]) {
			case `\u003c`:
				plain, i = append(plain, '<'), i+5
				continue
			case `\u003e`:
				plain, i = append(plain, '>'), i+5
				continue
			case `\u0026`:
				plain, i = append(plain, '&'), i+5
				continue
			}
		}
		plain, i = append(plain, b[i], b[i+1]), i+1
	}
	return plain
}
