package crewdocs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/file"
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

// document is the file, with the seed's fields in its order (seed 001, agent-identity document). A nil pointer is null.
type document struct {
	Type        string         `json:"type"`
	Status      *string        `json:"status"`
	Identity    identity       `json:",inline"`
	CreatedAt   file.Text      `json:"createdAt"`
	LastAliveAt file.Text      `json:"lastAliveAt"`
	LastSession file.Text      `json:"lastSessionId"`
	Extra       jsontext.Value `json:",unknown"`
}

// identity is what an agent says of itself.
type identity struct {
	Name      file.Text `json:"name"`
	Color     string    `json:"color"`
	ColorName string    `json:"colorName"`
	Gender    string    `json:"gender"`
	Seat      *int      `json:"gridPosition"` // nil is a fault
	Face      face      `json:"faceVariant"`
	Soul      string    `json:"individuationArtifact"`
}

type face struct {
	Eyes  string         `json:"eyes"`
	Mouth string         `json:"mouth"`
	Extra jsontext.Value `json:",unknown"`
}

// unknown are the unknown fields of a document and of its face, as the journal has them.
type unknown struct {
	Face  jsontext.Value `json:"faceVariant,omitzero"`
	Extra jsontext.Value `json:",unknown"`
}

// ReadDocument parses an agent-identity document. The caller sets the ID, which is the file's name. bare
// means that the document has no status; the status is then unknown (P12), as it is for an unknown word.
// Times may be any RFC 3339 and are kept in milliseconds. Unknown fields of the document and of its
// faceVariant go into Extra, in order and with numbers as written (X7): at most 64 KiB.
//
// The error is a *file.JSONFault: not an object, another type, no gridPosition, a field given twice, a field
// of another kind than the seed's, or one that is too long.
func ReadDocument(b []byte) (doc crew.Document, bare bool, err error) {
	var is document
	content := file.Content{File: "the document", Text: b}
	if err := content.Decode(DocumentBytesMax, &is); err != nil {
		return crew.Document{}, false, err
	}
	switch {
	case is.Type == "":
		return crew.Document{}, false, content.Wrong("/type", "is missing")
	case is.Type != documentType:
		return crew.Document{}, false, content.Wrong("/type", fmt.Sprintf("is %.40q; a document of an agent has %q", is.Type, documentType))
	}
	who, err := is.Identity.read(content)
	if err != nil {
		return crew.Document{}, false, err
	}
	doc = crew.Document{Identity: who, Status: crew.Unknown, LastSession: string(is.LastSession)}
	if bare = is.Status == nil; !bare {
		doc.Status = statusOf(*is.Status)
	}
	if err := word(content, "/lastSessionId", doc.LastSession); err != nil {
		return crew.Document{}, false, err
	}
	if doc.CreatedAt, err = timeOf(content, "/createdAt", is.CreatedAt); err != nil {
		return crew.Document{}, false, err
	}
	if doc.LastAliveAt, err = timeOf(content, "/lastAliveAt", is.LastAliveAt); err != nil {
		return crew.Document{}, false, err
	}
	if doc.Extra, err = is.extra(content); err != nil {
		return crew.Document{}, false, err
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

// timeOf parses a time. None is the zero time.
func timeOf(content file.Content, where jsontext.Pointer, text file.Text) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := file.ParseTime(string(text))
	if err != nil || at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, content.Wrong(where, "is no time in RFC 3339, as 2026-02-16T12:00:00.000Z")
	}
	return at.Truncate(time.Millisecond), nil
}

// extra makes one object of the unknown fields.
func (d *document) extra(content file.Content) (json.RawMessage, error) {
	if d.Extra == nil && d.Identity.Face.Extra == nil {
		return nil, nil
	}
	object, err := Escaped(unknown{d.Identity.Face.Extra, d.Extra})
	if n := len(object); err == nil && n > documentExtraMax {
		var fields file.Fields
		if err := file.Unpack(object, &fields); err != nil {
			return nil, err
		}
		return nil, content.Wrong(jsontext.Pointer("").AppendToken(fields[0].Name), fmt.Sprintf(
			"and the other fields that Fairlead does not know have %d bytes together; %d is the most: keep other data in a file of its own",
			n, documentExtraMax))
	}
	return object, err
}

// Escaped encodes unknown fields like encoding/json does, so that they stay the same after they were stored in the journal.
func Escaped(fields any) (json.RawMessage, error) {
	return file.Pack(fields, jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
}

// WriteDocument returns the file's content: the seed's fields in its order, then unknown fields in theirs,
// indented by two spaces, without HTML escaping, with a final newline. An empty name, time or session is
// null.
func WriteDocument(d *crew.Document) []byte {
	var more unknown
	if len(d.Extra) > 0 {
		if err := file.Unpack([]byte(unescaped.Replace(string(d.Extra))), &more); err != nil {
			panic("crewdocs: unknown fields that were read before: " + err.Error())
		}
	}
	status := string(d.Status)
	b, err := file.Encode(&document{
		Type: documentType, Status: &status,
		Identity: identity{
			Name: file.Text(d.Name), Color: d.Color, ColorName: d.ColorName, Gender: d.Gender, Seat: &d.Seat,
			Face: face{d.Face.Eyes, d.Face.Mouth, more.Face}, Soul: d.Soul,
		},
		CreatedAt: timeOrNull(d.CreatedAt), LastAliveAt: timeOrNull(d.LastAliveAt), LastSession: file.Text(d.LastSession),
		Extra: more.Extra,
	})
	if err != nil {
		panic("crewdocs: a document is not written: " + err.Error())
	}
	return append(b, '\n')
}

// DocumentSum returns the sum of what WriteDocument returns (X3).
func DocumentSum(d *crew.Document) string { return string(file.SumOf(WriteDocument(d))) }

func timeOrNull(at time.Time) file.Text {
	if at.IsZero() {
		return ""
	}
	return file.Text(file.FormatTime(at))
}

// unescaped writes < > & as they are, where json.HTMLEscape escaped them. An escaped backslash stays: what
// follows it is no escape.
var unescaped = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
