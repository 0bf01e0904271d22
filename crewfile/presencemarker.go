package crewfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/prompt"
)

const (
	// SoulBytesMax bounds an individuationArtifact: about a hundred pages.
	SoulBytesMax = 256 << 10

	// soulWrittenMax bounds the same as JSON, where a control character takes six bytes: a change in the
	// journal has at most a megabyte.
	soulWrittenMax = 512 << 10

	presenceMarkerMax  = 1 << 20 // the marker scanner's limit
	identityNameMax    = 64      // in characters: the name is shown below a face
	identityBytesMax   = 200     // of all other short texts
	statusMarkerName   = "[AGENT_STATUS]"
	registerMarkerName = "[AGENT_REGISTERED]"
)

// Field names of an identity (seed 001, Fireproof Document Schema).
const (
	fieldName      = "name"
	fieldColor     = "color"
	fieldColorName = "colorName"
	fieldGender    = "gender"
	fieldSeat      = "gridPosition"
	fieldFace      = "faceVariant"
	fieldSoul      = "individuationArtifact"
	fieldEyes      = "eyes"
	fieldMouth     = "mouth"
)

// ParseStatus parses the JSON of an [AGENT_STATUS] marker: the agents that the lead reports, in its order.
// Unknown fields are ignored. A known field of another kind, or a missing one (a status, and a name or a
// gridPosition), is a *file.JSONFault that says what to write. Seat numbers are not checked here.
func ParseStatus(b []byte) ([]crew.Listed, error) {
	r := &documentReader{file.JSONReader{File: statusMarkerName, Whole: b, Once: true}}
	fields, err := r.Object(b, presenceMarkerMax)
	if err != nil {
		return nil, err
	}
	var agents []crew.Listed
	listed := false
	for _, f := range fields {
		if f.Name != "agents" {
			continue
		}
		listed = true
		for i, item := range r.Items(f, "") {
			agents = append(agents, r.listed(file.Placed{Field: file.Field{Name: fmt.Sprintf("agents[%d]", i), Raw: item}, At: f.At}))
		}
	}
	if !listed {
		r.Wrong(file.Placed{Field: file.Field{Name: "agents"}}, "", `is missing; if no member is alive, write {"agents":[]}`)
	}
	if r.Fault != nil {
		return nil, r.Fault
	}
	return agents, nil
}

// listed reads one entry of a status.
func (r *documentReader) listed(item file.Placed) crew.Listed {
	one, under := crew.Listed{Seat: crew.NoSeat}, item.Name+"."
	for _, f := range r.Fields(item, "") {
		switch f.Name {
		case fieldName:
			one.Name = r.textOrNull(f, under)
		case "status":
			one.Status = r.Text(f, under)
		case fieldSeat:
			if string(f.Raw) != "null" {
				one.Seat = r.Count(f, under)
			}
		}
	}
	switch {
	case one.Status == "":
		r.Wrong(file.Placed{Field: file.Field{Name: "status"}, At: item.At}, under, `is missing; write "alive", or leave the agent out`)
	case one.Name == "" && one.Seat == crew.NoSeat:
		r.Wrong(file.Placed{Field: file.Field{Name: fieldName}, At: item.At}, under, "is missing, and so is gridPosition; say who it is")
	}
	return one
}

func (r *documentReader) textOrNull(f file.Placed, under string) string {
	if text := r.TextOrNil(f, under); text != nil {
		return *text
	}
	return ""
}

// ParseRegistered parses the JSON of an [AGENT_REGISTERED] marker: an agent's identity. It needs a name of 1
// to 64 characters and a gridPosition; other fields may be missing or null. A soul of more than 256 KiB,
// another text of more than 200 bytes, a control character outside the soul, and a field of another kind are
// a *file.JSONFault. Seat numbers are not checked here.
func ParseRegistered(b []byte) (crew.Identity, error) {
	r := &documentReader{file.JSONReader{File: registerMarkerName, Whole: b, Once: true}}
	fields, err := r.Object(b, presenceMarkerMax)
	if err != nil {
		return crew.Identity{}, err
	}
	var is crew.Identity
	for _, f := range fields {
		r.identity(&is, f)
	}
	r.Needs(fields, fieldName, "")
	r.Needs(fields, fieldSeat, "")
	if strings.TrimSpace(is.Name) == "" {
		r.Wrong(file.Placed{Field: file.Field{Name: fieldName}}, "", "is empty; register an agent once it has chosen its name")
	}
	if r.Fault != nil {
		return crew.Identity{}, r.Fault
	}
	return is, nil
}

// identity reads one field and reports whether it belongs to the identity.
func (r *documentReader) identity(is *crew.Identity, f file.Placed) bool {
	switch f.Name {
	case fieldName:
		is.Name = r.word(f, "")
		if n := utf8.RuneCountInString(is.Name); n > identityNameMax {
			r.Wrong(f, "", fmt.Sprintf("has %d characters; %d is the most", n, identityNameMax))
		}
	case fieldColor:
		is.Color = r.word(f, "")
	case fieldColorName:
		is.ColorName = r.word(f, "")
	case fieldGender:
		is.Gender = r.word(f, "")
	case fieldSeat:
		is.Seat = r.Count(f, "")
	case fieldFace:
		is.Face, _ = r.face(f)
	case fieldSoul:
		is.Soul = r.soul(f)
	default:
		return false
	}
	return true
}

// word reads a short text without line breaks, or null.
func (r *documentReader) word(f file.Placed, under string) string {
	text := r.textOrNull(f, under)
	if n := len(text); n > max(identityBytesMax, identityNameMax*utf8.UTFMax) || n > identityBytesMax && f.Name != fieldName {
		r.Wrong(f, under, fmt.Sprintf("has %d bytes; %d is the most", n, identityBytesMax))
	}
	if strings.ContainsFunc(text, prompt.BreaksLine) {
		r.Wrong(f, under, "has a control character, or one that turns the direction of writing; write it without")
	}
	return text
}

// face reads a face and returns its unknown fields.
func (r *documentReader) face(f file.Placed) (face crew.Face, extra []file.Placed) {
	if string(f.Raw) == "null" {
		return face, nil
	}
	for _, part := range r.Fields(f, "") {
		switch part.Name {
		case fieldEyes:
			face.Eyes = r.word(part, f.Name+".")
		case fieldMouth:
			face.Mouth = r.word(part, f.Name+".")
		default:
			extra = append(extra, part)
		}
	}
	return face, extra
}

func (r *documentReader) soul(f file.Placed) string {
	soul := r.textOrNull(f, "")
	if len(soul) > SoulBytesMax {
		r.Wrong(f, "", fmt.Sprintf("has %d bytes; %d is the most: shorten it, or put the rest into a file and name the file", len(soul), SoulBytesMax))
		return ""
	}
	if written, _ := json.Marshal(soul); len(written) > soulWrittenMax { // a string always encodes
		r.Wrong(f, "", "has mostly characters that take six bytes each in JSON; write it as plain text")
		return ""
	}
	return soul
}
