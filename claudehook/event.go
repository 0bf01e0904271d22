package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Event is a hook's input. Fields of other events are empty. eventOf has their names.
type Event struct {
	Name       string
	Session    string // the program's own session id
	Dir        string // the caller's working folder
	Transcript string
	Agent      string // inside a subagent
	AgentType  string // inside a subagent: its name

	Mode string // the program's permission mode: default, plan, bypassPermissions, …

	Prompt string // UserPromptSubmit

	Tool     string
	Input    json.RawMessage
	Use      string
	Response json.RawMessage // PostToolUse

	Again      bool
	Last       string       // Stop, SubagentStop
	Background []Background // Stop: what still runs; older versions of the program omit it

	Source string // SessionStart: startup, resume, clear, compact
	Reason string // SessionEnd
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
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("the hook's input has more than %d bytes and cannot be checked; write large files in parts", inputBytesMax)}
	}
	is, err := eventOf(text)
	if err != nil {
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("the hook's input does not have the format that Claude Code documents: %w", inWords(err))}
	}
	for what, id := range map[string]string{"session_id": is.Session, "agent_id": is.Agent, "agent_type": is.AgentType, "tool_use_id": is.Use, "tool_name": is.Tool} {
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
	fields := map[string]any{
		"hook_event_name": &is.Name, "session_id": &is.Session, "cwd": &is.Dir, "transcript_path": &is.Transcript,
		"agent_id": &is.Agent, "agent_type": &is.AgentType, "prompt": &is.Prompt,
		"tool_name": &is.Tool, "tool_input": &is.Input, "tool_use_id": &is.Use, "tool_response": &is.Response,
		"stop_hook_active": &is.Again, "last_assistant_message": &is.Last, "background_tasks": &is.Background,
		"source": &is.Source, "permission_mode": &is.Mode, "reason": &is.Reason,
	}
	if !json.Valid(text) { // one value, and nothing after it
		var any json.RawMessage
		return is, json.Unmarshal(text, &any)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return is, &json.UnmarshalTypeError{Value: fmt.Sprint(start)}
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return is, err
		}
		key, _ := t.(string)
		if seen[key] {
			return is, fmt.Errorf("its field %.60q is given twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return is, err
		}
		into, known := fields[key]
		if !known {
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" {
				wrong.Field = key
			}
			return is, err
		}
	}
	return is, nil
}

// inWords explains what is wrong with a text, without the names of Go types.
func inWords(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return fmt.Errorf("it is not an object (%s)", wrong.Value)
	}
	return fmt.Errorf("its field %s has the wrong type (%s)", wrong.Field, wrong.Value)
}

// sessionIn finds the session id in an object that is truncated or wrong further on. Nested values are
// ignored, because a model could have written them.
func sessionIn(text []byte) string {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		if key == "session_id" {
			if id, err := dec.Token(); err == nil {
				id, _ := id.(string)
				return id
			}
			return ""
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return ""
		}
	}
	return ""
}

// errNoSession says that an input has no session id.
var errNoSession = errors.New("the hook's input has no session id")

var errNoTool = errors.New("the hook's input names no tool")
