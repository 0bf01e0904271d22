package crewfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	w := file.NewJSONWriter(1024 + len(d.Soul) + len(d.Extra))
	w.Open('{')
	w.Field(fieldType, documentType)
	w.Field(fieldStatus, string(d.Status))
	w.TextOrNull(fieldName, file.OrNull(d.Name))
	w.Field(fieldColor, d.Color)
	w.Field(fieldColorName, d.ColorName)
	w.Field(fieldGender, d.Gender)
	w.Number(fieldSeat, d.Seat)
	w.Name(fieldFace)
	w.Open('{')
	w.Field(fieldEyes, d.Face.Eyes)
	w.Field(fieldMouth, d.Face.Mouth)
	var extra []file.Field
	for _, f := range unknownFields(d.Extra) {
		switch {
		case f.Name == fieldFace:
			w.Extra(unknownFields(f.Raw))
		case !slices.Contains(documentFields, f.Name):
			extra = append(extra, f)
		}
	}
	w.Close('}')
	w.Field(fieldSoul, d.Soul)
	w.TextOrNull(fieldCreated, timeOrNull(d.CreatedAt))
	w.TextOrNull(fieldLastAlive, timeOrNull(d.LastAliveAt))
	w.TextOrNull(fieldLastSession, file.OrNull(d.LastSession))
	w.Extra(extra)
	w.Close('}')
	return append(w.Bytes(), '\n')
}

// DocumentSum returns the sum of what WriteDocument returns (X3).
func DocumentSum(d *crew.Document) string { return string(file.SumOf(WriteDocument(d))) }

func timeOrNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return file.OrNull(file.FormatTime(at))
}

// unknownFields reads the fields that were unknown, with < > & unescaped.
func unknownFields(extra json.RawMessage) []file.Field {
	if len(extra) == 0 {
		return nil
	}
	r := &file.JSONReader{File: "a document's unknown fields", Whole: extra}
	var fields []file.Field
	for _, f := range r.Fields(file.Placed{Field: file.Field{Raw: extra}}, "") {
		fields = append(fields, file.Field{Name: f.Name, Raw: json.RawMessage(unescaped.Replace(string(f.Raw)))})
	}
	if r.Fault != nil {
		panic("crewfile: unknown fields that were read before: " + r.Fault.Error())
	}
	return fields
}

// unescaped writes < > & as they are, where json.HTMLEscape escaped them. An escaped backslash stays: what
// follows it is no escape.
var unescaped = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
