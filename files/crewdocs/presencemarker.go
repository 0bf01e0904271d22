package crewdocs

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/files/prompts"
	"github.com/fairlead-dev/fairlead/internal/file"
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

// ParseStatus parses the JSON of an [AGENT_STATUS] marker: the agents that the lead reports, in its order.
// Unknown fields are ignored. A known field of another kind, or a missing one (a status, and a name or a
// gridPosition), is a *file.JSONFault that says what to write. Seat numbers are not checked here.
func ParseStatus(b []byte) ([]crew.Listed, error) {
	var status struct {
		Agents []struct {
			Name   string `json:"name"`
			Status string `json:"status"`
			Seat   *int   `json:"gridPosition"`
		} `json:"agents"`
	}
	content := file.Content{File: statusMarkerName, Text: b}
	if err := content.Decode(presenceMarkerMax, &status); err != nil {
		return nil, err
	}
	if status.Agents == nil {
		return nil, content.Wrong("/agents", `is missing; if no member is alive, write {"agents":[]}`)
	}
	var agents []crew.Listed
	for i, is := range status.Agents {
		where := jsontext.Pointer(fmt.Sprintf("/agents/%d", i))
		one := crew.Listed{Name: is.Name, Status: is.Status, Seat: crew.NoSeat}
		if is.Seat != nil {
			one.Seat = *is.Seat
		}
		switch {
		case one.Status == "":
			return nil, content.Wrong(where+"/status", `is missing; write "alive", or leave the agent out`)
		case one.Name == "" && one.Seat == crew.NoSeat:
			return nil, content.Wrong(where+"/name", "is missing, and so is gridPosition; say who it is")
		}
		agents = append(agents, one)
	}
	return agents, nil
}

// ParseRegistered parses the JSON of an [AGENT_REGISTERED] marker: an agent's identity. It needs a name of 1
// to 64 characters and a gridPosition; other fields may be missing or null. A soul of more than 256 KiB,
// another text of more than 200 bytes, a control character outside the soul, and a field of another kind are
// a *file.JSONFault. Seat numbers are not checked here.
func ParseRegistered(b []byte) (crew.Identity, error) {
	var found identity
	content := file.Content{File: registerMarkerName, Text: b}
	if err := content.Decode(presenceMarkerMax, &found); err != nil {
		return crew.Identity{}, err
	}
	is, err := found.read(content)
	switch {
	case err != nil:
		return crew.Identity{}, err
	case strings.TrimSpace(is.Name) == "":
		return crew.Identity{}, content.Wrong("/name", "is missing or empty; register an agent once it has chosen its name")
	}
	return is, nil
}

// read checks an identity. The error is a *file.JSONFault.
func (i *identity) read(content file.Content) (crew.Identity, error) {
	if i.Seat == nil {
		return crew.Identity{}, content.Wrong("/gridPosition", "is missing")
	}
	name := string(i.Name)
	if n := utf8.RuneCountInString(name); n > identityNameMax {
		return crew.Identity{}, content.Wrong("/name", fmt.Sprintf("has %d characters; %d is the most", n, identityNameMax))
	}
	for _, short := range []struct {
		where jsontext.Pointer
		text  string
	}{
		{"/name", name},
		{"/color", i.Color},
		{"/colorName", i.ColorName},
		{"/gender", i.Gender},
		{"/faceVariant/eyes", i.Face.Eyes},
		{"/faceVariant/mouth", i.Face.Mouth},
	} {
		if err := word(content, short.where, short.text); err != nil {
			return crew.Identity{}, err
		}
	}
	if n := len(i.Soul); n > SoulBytesMax {
		return crew.Identity{}, content.Wrong("/individuationArtifact", fmt.Sprintf(
			"has %d bytes; %d is the most: shorten it, or put the rest into a file and name the file", n, SoulBytesMax))
	}
	if written, _ := json.Marshal(i.Soul); len(written) > soulWrittenMax { // a string always encodes
		return crew.Identity{}, content.Wrong("/individuationArtifact",
			"has mostly characters that take six bytes each in JSON; write it as plain text")
	}
	return crew.Identity{
		Name: name, Color: i.Color, ColorName: i.ColorName, Gender: i.Gender, Seat: *i.Seat,
		Face: crew.Face{Eyes: i.Face.Eyes, Mouth: i.Face.Mouth}, Soul: i.Soul,
	}, nil
}

// word checks a short text without line breaks.
func word(content file.Content, where jsontext.Pointer, text string) error {
	if n := len(text); n > identityBytesMax && where != "/name" { // a name has its limit in characters
		return content.Wrong(where, fmt.Sprintf("has %d bytes; %d is the most", n, identityBytesMax))
	}
	if strings.ContainsFunc(text, prompts.BreaksLine) {
		return content.Wrong(where, "has a control character, or one that turns the direction of writing; write it without")
	}
	return nil
}
