package agentfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// FileName is the name of the file in the agent's workspace (seed 000, File Location).
const FileName = "agent_state.json"

// The seed's words for what is wished and what is done (seed 000, The Four States).
const (
	Continuous = "continuous"
	Pause      = "pause"
	RunOnce    = "run_once"
	RunCleanup = "run_cleanup"
)

// Who set desired_state last, as setBy says it (SPEC, Control).
const (
	SetByHuman = "human"
	SetByAgent = "agent"
)

const (
	agentStateBytesMax = file.BytesMax // the seed's file has 200 bytes; a megabyte is somebody's mistake
)

// The names of the five fields, in the order of the seed's example.
const (
	fieldDesired   = "desired_state"
	fieldCurrent   = "current_state"
	fieldTimestamp = "timestamp"
	fieldSetBy     = "setBy"
	fieldNote      = "note"
)

// AgentState is one agent_state.json (seed 000, File Format). Of a known field, empty
// means absent. A field other than desired_state that is known but holds no string is
// kept in Extra under its name, and given up only when it is set.
type State struct {
	DesiredState string // what is wished, as written, known word or not (C13)
	CurrentState string // what the agent's side says it does
	Timestamp    string // of the last write, as written; Time reads it
	SetBy        string // who set DesiredState last: human or agent
	Note         string // why
	Extra        []file.Field
}

// Malformed says why bytes are no agent_state.json, and where (C12).
type Malformed struct {
	Offset int64  // in bytes from the start, where the fault was noticed
	Line   int    // from 1
	Fault  string // in words, without the file's contents
}

func (m *Malformed) Error() string {
	return fmt.Sprintf("%s is malformed at line %d (byte %d): %s", FileName, m.Line, m.Offset, m.Fault)
}

// ParseAgentState reads the bytes of one file. The error is a *Malformed where they are
// no JSON object with a string desired_state, are no UTF-8, exceed 1 MiB or nest deeper
// than 64. Of a name given twice the last value counts, as in Python and JavaScript:
// whoever wrote the file reads it so. NaN and Infinity, which Python can write, are no
// JSON and are refused.
func Parse(b []byte) (State, error) {
	if fault, at := unfit(b); fault != "" {
		return State{}, malformed(b, at, fault)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(b, &whole); err != nil {
		at, fault := int64(0), err.Error()
		if syntax, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // encoding/json returns it bare
			at = syntax.Offset
		}
		return State{}, malformed(b, at, fault)
	}
	if at := file.TooDeep(b); at >= 0 {
		return State{}, malformed(b, at, fmt.Sprintf("nested deeper than %d; flatten it", file.DepthMax))
	}
	fields, err := topLevel(b)
	if err != nil {
		return State{}, err
	}
	return fromFields(b, fields)
}

// unfit names what keeps bytes from being looked at as JSON at all.
func unfit(b []byte) (fault string, at int64) {
	switch {
	case len(b) > agentStateBytesMax:
		return fmt.Sprintf("larger than %d bytes; keep other data in a file of its own", agentStateBytesMax), agentStateBytesMax
	case len(bytes.TrimSpace(b)) == 0:
		return "the file is empty", 0
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return "starts with a byte order mark; save it as UTF-8 without one", 0
	case !utf8.Valid(b):
		return "not valid UTF-8", file.FirstInvalid(b)
	}
	return "", 0
}

// topLevel gives the fields of the object in their order; a name given twice keeps its
// first place and its last value.
func topLevel(b []byte) ([]file.Field, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, malformed(b, 0, "not a JSON object")
	}
	var fields []file.Field
	place := map[string]int{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, malformed(b, dec.InputOffset(), err.Error())
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, malformed(b, dec.InputOffset(), err.Error())
		}
		key, ok := name.(string)
		if !ok {
			return nil, malformed(b, dec.InputOffset(), "a field's name is no string")
		}
		if i, again := place[key]; again {
			fields[i].Raw = raw
			continue
		}
		place[key] = len(fields)
		fields = append(fields, file.Field{Name: key, Raw: raw})
	}
	return fields, nil
}

func fromFields(b []byte, fields []file.Field) (State, error) {
	var s State
	wished := false
	for _, f := range fields {
		known := s.known(f.Name)
		var text string
		isString := f.Raw[0] == '"' && json.Unmarshal(f.Raw, &text) == nil
		switch {
		case f.Name == fieldDesired && !isString:
			return State{}, malformed(b, offsetOf(b, f.Name), fieldDesired+" is no string")
		case known != nil && isString:
			*known = text
			wished = wished || f.Name == fieldDesired
		default:
			s.Extra = append(s.Extra, f)
		}
	}
	if !wished {
		return State{}, malformed(b, 0, fieldDesired+" is missing")
	}
	return s, nil
}

// known is where a field of the seed's is kept; nil for any other.
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

func offsetOf(b []byte, name string) int64 {
	return int64(max(0, bytes.Index(b, []byte(`"`+name+`"`))))
}

func malformed(b []byte, at int64, fault string) *Malformed {
	at = min(at, int64(len(b)))
	return &Malformed{Offset: at, Line: 1 + bytes.Count(b[:at], []byte("\n")), Fault: fault}
}

// Render gives the bytes of the file: the seed's fields in the seed's order, those that
// are not empty, then the unknown ones in theirs, indented by two spaces, without HTML
// escaping and without a newline at the end (as the seed's json.dump). desired_state is
// always there.
func (s State) Render() []byte { return s.appendTo(nil) }

func (s State) appendTo(out []byte) []byte {
	out = append(out, "{\n  \""+fieldDesired+"\": "...)
	out = file.AppendQuoted(out, s.DesiredState)
	for _, name := range [...]string{fieldCurrent, fieldTimestamp, fieldSetBy, fieldNote} {
		if text := *s.known(name); text != "" {
			out = append(append(append(out, ",\n  \""...), name...), "\": "...)
			out = file.AppendQuoted(out, text)
		}
	}
	for _, f := range s.Extra {
		if known := s.known(f.Name); known != nil && (*known != "" || f.Name == fieldDesired) {
			continue // it was set since; two of one name would be read as either
		}
		out = file.AppendQuoted(append(out, ",\n  "...), f.Name)
		out = append(append(out, ": "...), f.Raw...)
	}
	return append(out, "\n}"...)
}

// WithCommand is Mission Control's write: what is wished, who wishes it and why, and the
// time; current_state and all unknown fields stay as found (seed 000: never modify
// current_state).
func (s State) WithCommand(desired, setBy, note string, at time.Time) State {
	s.DesiredState, s.SetBy, s.Note, s.Timestamp = desired, setBy, note, file.FormatTime(at)
	s.Extra = without(s.Extra, fieldSetBy, fieldNote, fieldTimestamp)
	return s
}

// WithCurrent is the agent's write: what it does now, and the time; the wish, who wished
// it and why, and all unknown fields stay as found.
func (s State) WithCurrent(current string, at time.Time) State {
	s.CurrentState, s.Timestamp = current, file.FormatTime(at)
	s.Extra = without(s.Extra, fieldCurrent, fieldTimestamp)
	return s
}

func without(fields []file.Field, names ...string) []file.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f file.Field) bool { return slices.Contains(names, f.Name) })
}

// Time reads Timestamp.
func (s State) Time() (time.Time, error) { return file.ParseTime(s.Timestamp) }

// Sum is that of what Render gives; the bytes themselves are kept by nobody.
func (s State) Sum() file.Sum {
	var room [512]byte // more than nearly all files have
	return file.SumOf(s.appendTo(room[:0]))
}
