package agentstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// FileName is the name of the file in the agent's workspace (seed 000, File Location).
const FileName = "agent_state.json"

// Values of desired_state and current_state (seed 000, The Four States).
const (
	Continuous = "continuous"
	Pause      = "pause"
	RunOnce    = "run_once"
	RunCleanup = "run_cleanup"
)

// Values of setBy, which says who set desired_state last (SPEC, Control).
const (
	SetByHuman = "human"
	SetByAgent = "agent"
)

const agentStateBytesMax = file.BytesMax // the seed's file has 200 bytes

// The names of the known fields, in the order of the seed's example.
const (
	fieldDesired   = "desired_state"
	fieldCurrent   = "current_state"
	fieldTimestamp = "timestamp"
	fieldSetBy     = "setBy"
	fieldNote      = "note"
)

// State is the content of one agent_state.json (seed 000, File Format). An empty known field means that it is
// absent. If a known field other than desired_state is not a string, it is kept in Extra under its name until
// a new value is set.
type State struct {
	DesiredState string // as written, whether or not the word is known (C13)
	CurrentState string // what the agent's side reports
	Timestamp    string // of the last write, as written; Time parses it
	SetBy        string // who set DesiredState last: human or agent
	Note         string // the reason
	Extra        file.Fields
}

// Malformed says why content is not an agent_state.json, and where (C12).
type Malformed = file.JSONFault

// Parse reads the content of one file. The error is a *Malformed if it is not a JSON object with a string
// desired_state, is not UTF-8, exceeds 1 MiB or nests deeper than 64. If a name occurs twice, the last value
// counts, as in Python and JavaScript. NaN and Infinity, which Python can write, are refused because they are
// not JSON.
func Parse(b []byte) (State, error) {
	var fields file.Fields
	content := file.Content{File: FileName, Text: b, LastCounts: true}
	if err := content.Decode(agentStateBytesMax, &fields); err != nil {
		return State{}, err
	}
	var s State
	fault := "is missing"
	for _, f := range fields {
		known := s.known(f.Name)
		isString := known != nil && json.Unmarshal(f.Raw, known) == nil && f.Raw.Kind() == '"'
		switch {
		case f.Name != fieldDesired && !isString:
			s.Extra = append(s.Extra, f)
		case f.Name == fieldDesired && isString:
			fault = ""
		case f.Name == fieldDesired:
			fault = "is no string"
		}
	}
	if fault != "" {
		return State{}, content.Wrong("/"+fieldDesired, fault)
	}
	return s, nil
}

// known returns the place of a known field's value, or nil for other fields.
func (s *State) known(name string) *string {
	switch name {
	case fieldDesired:
		return &s.DesiredState
	case fieldCurrent:
		return &s.CurrentState
	case fieldTimestamp:
		return &s.Timestamp
	case fieldSetBy:
		return &s.SetBy
	case fieldNote:
		return &s.Note
	}
	return nil
}

// Render returns the file's content: known fields that are not empty in the seed's order, then unknown ones
// in theirs, indented by two spaces, without HTML escaping and without a final newline (like the seed's
// json.dump). desired_state is always present.
func (s State) Render() []byte {
	var out bytes.Buffer
	field := func(name string, value []byte) {
		fmt.Fprintf(&out, ",\n  %s: %s", encode.JSON(name), value)
	}
	for _, name := range [...]string{fieldDesired, fieldCurrent, fieldTimestamp, fieldSetBy, fieldNote} {
		if text := *s.known(name); text != "" || name == fieldDesired {
			field(name, encode.JSON(text))
		}
	}
	for _, f := range s.Extra {
		if known := s.known(f.Name); known == nil || *known == "" && f.Name != fieldDesired { // otherwise a new value was set
			field(f.Name, f.Raw)
		}
	}
	return append(append([]byte("{"), out.Bytes()[len(","):]...), "\n}"...)
}

// WithCommand returns the state with a new command: desired state, setBy, note and time. current_state and
// unknown fields stay as they are (seed 000: never modify current_state).
func (s State) WithCommand(desired, setBy, note string, at time.Time) State {
	s.DesiredState, s.SetBy, s.Note, s.Timestamp = desired, setBy, note, file.FormatTime(at)
	s.Extra = without(s.Extra, fieldSetBy, fieldNote, fieldTimestamp)
	return s
}

func without(fields file.Fields, names ...string) file.Fields {
	return slices.DeleteFunc(slices.Clone(fields), func(f file.Field) bool { return slices.Contains(names, f.Name) })
}

// Time parses Timestamp.
func (s State) Time() (time.Time, error) { return file.ParseTime(s.Timestamp) }

// Sum returns the sum of what Render returns.
func (s State) Sum() file.Sum { return file.SumOf(s.Render()) }

// SameAs reports whether two states differ at most in their timestamps.
func (s State) SameAs(other State) bool {
	s.Timestamp, other.Timestamp = "", ""
	return bytes.Equal(s.Render(), other.Render())
}
