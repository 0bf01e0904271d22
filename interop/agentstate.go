package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
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
	agentStateBytesMax = 1 << 20 // the seed's file has 200 bytes; a megabyte is somebody's mistake
	agentStateDepthMax = 64      // deeper than anybody nests by hand; keeps unknown fields cheap to walk
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
type AgentState struct {
	DesiredState string // what is wished, as written, known word or not (C13)
	CurrentState string // what the agent's side says it does
	Timestamp    string // of the last write, as written; Time reads it
	SetBy        string // who set DesiredState last: human or agent
	Note         string // why
	Extra        []Field
}

// Field is a field that we do not know: its name, and its value as it was written (X7).
type Field struct {
	Name string
	Raw  json.RawMessage // one valid JSON value, without white space around it
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
func ParseAgentState(b []byte) (AgentState, error) {
	if fault, at := unfit(b); fault != "" {
		return AgentState{}, malformed(b, at, fault)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(b, &whole); err != nil {
		at, fault := int64(0), err.Error()
		if syntax, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // encoding/json returns it bare
			at = syntax.Offset
		}
		return AgentState{}, malformed(b, at, fault)
	}
	if at := tooDeep(b); at >= 0 {
		return AgentState{}, malformed(b, at, fmt.Sprintf("nested deeper than %d; flatten it", agentStateDepthMax))
	}
	fields, err := topLevel(b)
	if err != nil {
		return AgentState{}, err
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
		return "not valid UTF-8", firstInvalid(b)
	}
	return "", 0
}

func firstInvalid(b []byte) int64 {
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

// tooDeep gives the offset of the first bracket beyond the limit in valid JSON, or -1.
func tooDeep(b []byte) int64 {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > agentStateDepthMax {
				return int64(i)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// topLevel gives the fields of the object in their order; a name given twice keeps its
// first place and its last value.
func topLevel(b []byte) ([]Field, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, malformed(b, 0, "not a JSON object")
	}
	var fields []Field
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
		fields = append(fields, Field{key, raw})
	}
	return fields, nil
}

func fromFields(b []byte, fields []Field) (AgentState, error) {
	var s AgentState
	wished := false
	for _, f := range fields {
		known := s.known(f.Name)
		var text string
		isString := f.Raw[0] == '"' && json.Unmarshal(f.Raw, &text) == nil
		switch {
		case f.Name == fieldDesired && !isString:
			return AgentState{}, malformed(b, offsetOf(b, f.Name), fieldDesired+" is no string")
		case known != nil && isString:
			*known = text
			wished = wished || f.Name == fieldDesired
		default:
			s.Extra = append(s.Extra, f)
		}
	}
	if !wished {
		return AgentState{}, malformed(b, 0, fieldDesired+" is missing")
	}
	return s, nil
}

// known is where a field of the seed's is kept; nil for any other.
func (s *AgentState) known(name string) *string {
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
func (s AgentState) Render() []byte { return s.appendTo(nil) }

func (s AgentState) appendTo(out []byte) []byte {
	out = append(out, "{\n  \""+fieldDesired+"\": "...)
	out = appendQuoted(out, s.DesiredState)
	for _, name := range [...]string{fieldCurrent, fieldTimestamp, fieldSetBy, fieldNote} {
		if text := *s.known(name); text != "" {
			out = append(append(append(out, ",\n  \""...), name...), "\": "...)
			out = appendQuoted(out, text)
		}
	}
	for _, f := range s.Extra {
		if known := s.known(f.Name); known != nil && (*known != "" || f.Name == fieldDesired) {
			continue // it was set since; two of one name would be read as either
		}
		out = appendQuoted(append(out, ",\n  "...), f.Name)
		out = append(append(out, ": "...), f.Raw...)
	}
	return append(out, "\n}"...)
}

func quoted(text string) []byte { return appendQuoted(nil, text) }

// appendQuoted adds a JSON string without HTML escaping.
func appendQuoted(out []byte, text string) []byte {
	if plain(text) { // nearly all are
		return append(append(append(out, '"'), text...), '"')
	}
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(fmt.Sprintf("interop: a string does not encode: %v", err))
	}
	return append(out, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// plain says whether a text stands in JSON as it is.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// WithCommand is Mission Control's write: what is wished, who wishes it and why, and the
// time; current_state and all unknown fields stay as found (seed 000: never modify
// current_state).
func (s AgentState) WithCommand(desired, setBy, note string, at time.Time) AgentState {
	s.DesiredState, s.SetBy, s.Note, s.Timestamp = desired, setBy, note, FormatTime(at)
	s.Extra = without(s.Extra, fieldSetBy, fieldNote, fieldTimestamp)
	return s
}

// WithCurrent is the agent's write: what it does now, and the time; the wish, who wished
// it and why, and all unknown fields stay as found.
func (s AgentState) WithCurrent(current string, at time.Time) AgentState {
	s.CurrentState, s.Timestamp = current, FormatTime(at)
	s.Extra = without(s.Extra, fieldCurrent, fieldTimestamp)
	return s
}

func without(fields []Field, names ...string) []Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return slices.Contains(names, f.Name) })
}

// Time reads Timestamp.
func (s AgentState) Time() (time.Time, error) { return ParseTime(s.Timestamp) }

// ParseTime reads a time as foreign programs write it: RFC 3339 with any fraction, which
// is also the seed's isoformat()+"Z"; a space or a small t for the T; and the +00:00Z
// that the same line of Python gives when the time knows its zone.
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

// FormatTime writes a time as the seed does: UTC, milliseconds, Z.
func FormatTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// Sum names the contents of a file: the first 8 bytes of their SHA-256, as 16
// hexadecimal digits. Enough to tell our writes from others', not to keep out a forger,
// who could as well write the file.
type Sum string

// SumOf is the Sum of these bytes.
func SumOf(b []byte) Sum {
	full := sha256.Sum256(b)
	var digits [16]byte
	hex.Encode(digits[:], full[:8])
	return Sum(digits[:])
}

// Sum is that of what Render gives; the bytes themselves are kept by nobody.
func (s AgentState) Sum() Sum {
	var room [512]byte // more than nearly all files have
	return SumOf(s.appendTo(room[:0]))
}
