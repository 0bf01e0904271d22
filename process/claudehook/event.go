package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The hooks that install adds. Users may add others by hand; those are ignored.
const (
	SessionStart     = "SessionStart"
	UserPromptSubmit = "UserPromptSubmit"
	PreToolUse       = "PreToolUse"
	PostToolUse      = "PostToolUse"
	SubagentStop     = "SubagentStop"
	Stop             = "Stop"
	SessionEnd       = "SessionEnd"
)

// Names lists the hooks that install adds, in the order in which they occur.
func Names() []string {
	return []string{SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStop, Stop, SessionEnd}
}

// Limits of a hook's input.
const (
	inputBytesMax = 4 << 20 // the largest input is a whole file that is written at once
	idBytesMax    = 512     // the program's own names
)

// Event is a hook's input. Fields of other events are empty.
type Event struct {
	Name       string `json:"hook_event_name"`
	Session    string `json:"session_id"` // the program's own session id
	Dir        string `json:"cwd"`        // the caller's working folder
	Transcript string `json:"transcript_path"`
	Agent      string `json:"agent_id"`   // inside a subagent
	AgentType  string `json:"agent_type"` // inside a subagent: its name

	Mode string `json:"permission_mode"` // the program's: default, plan, bypassPermissions, …

	Prompt string `json:"prompt"` // UserPromptSubmit

	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Use      string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"` // PostToolUse

	Again      bool         `json:"stop_hook_active"`
	Last       string       `json:"last_assistant_message"` // Stop, SubagentStop
	Background []Background `json:"background_tasks"`       // Stop: what still runs; older versions of the program omit it

	Source string `json:"source"` // SessionStart: startup, resume, clear, compact
	Reason string `json:"reason"` // SessionEnd
}

// Background is work that continues after an answer.
type Background struct {
	Type   string `json:"type"`   // subagent, shell, …
	Status string `json:"status"` // running, …
}

// Fault is an input that cannot be parsed. Session is the program's session id if it was found; else empty.
type Fault struct {
	Session string
	Why     error
}

func (f *Fault) Error() string { return f.Why.Error() }
func (f *Fault) Unwrap() error { return f.Why }

// Decode parses a hook's input: one JSON object of at most 4 MiB. Its errors are *Fault.
func Decode(in io.Reader) (Event, error) {
	text, err := io.ReadAll(io.LimitReader(in, inputBytesMax+1))
	if err != nil {
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("read the hook's input: %w", err)}
	}
	if len(text) > inputBytesMax {
		return Event{},
			&Fault{
				sessionIn(text),
				fmt.Errorf("the hook's input has more than %d bytes and cannot be checked; write large files in parts", inputBytesMax),
			}
	}
	is, err := eventOf(text)
	if err != nil {
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("the hook's input does not have the format that Claude Code documents: %w", err)}
	}
	for what, id := range map[string]string{
		"session_id": is.Session, "agent_id": is.Agent, "agent_type": is.AgentType,
		"tool_use_id": is.Use, "tool_name": is.Tool,
	} {
		if len(id) > idBytesMax {
			return Event{}, &Fault{is.Session, fmt.Errorf("the hook's %s has %d bytes; the maximum is %d", what, len(id), idBytesMax)}
		}
	}
	return is, nil
}

// eventOf reads the fields of an event. Names are case-sensitive, as in the program that writes them, and
// a name that is given twice is a fault: a decoder that ignores case would judge another tool or another
// input than the one that the program uses.
func eventOf(text []byte) (is Event, err error) {
	if err := jsonv2.Unmarshal(text, &is, jsontext.AllowInvalidUTF8(true)); err != nil { // a text may have half of a surrogate pair
		return is, inWords(err)
	}
	if kind := jsontext.Value(text).Kind(); kind != '{' {
		return is, fmt.Errorf("it is not an object (%v)", kind)
	}
	return is, nil
}

// inWords explains what is wrong with a text, without the names of Go types.
func inWords(err error) error {
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	wrong, _ := errors.AsType[*jsonv2.SemanticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("unexpected end of JSON input")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("its field %.60q is given twice", syntax.JSONPointer.LastToken())
	case wrong != nil && wrong.JSONPointer == "":
		return fmt.Errorf("it is not an object (%v)", wrong.JSONKind)
	case wrong != nil:
		return fmt.Errorf("its field %s has the wrong type (%v)", strings.TrimPrefix(string(wrong.JSONPointer), "/"), wrong.JSONKind)
	}
	return err
}

// sessionIn finds the session id in an object that is truncated or wrong further on. Nested values are
// ignored, because a model could have written them.
func sessionIn(text []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return ""
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return ""
		}
		if key.String() == "session_id" {
			if id, err := d.ReadToken(); err == nil && id.Kind() == '"' {
				return id.String()
			}
			return ""
		}
		if d.SkipValue() != nil {
			return ""
		}
	}
	return ""
}

// errNoSession says that an input has no session id.
var errNoSession = errors.New("the hook's input has no session id")

var errNoTool = errors.New("the hook's input names no tool")
