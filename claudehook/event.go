package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The hooks that are asked for. Others may come, since people add them by hand; they are passed over.
const (
	SessionStart     = "SessionStart"
	UserPromptSubmit = "UserPromptSubmit"
	PreToolUse       = "PreToolUse"
	PostToolUse      = "PostToolUse"
	SubagentStop     = "SubagentStop"
	Stop             = "Stop"
	SessionEnd       = "SessionEnd"
)

// Names lists the hooks that are asked for, in the order in which a session meets them.
func Names() []string {
	return []string{SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStop, Stop, SessionEnd}
}

// Limits of what a hook is told.
const (
	inputBytesMax = 4 << 20 // a file written at once is the largest; nobody reads a larger one
	idBytesMax    = 512     // the program's own names
)

// Event is what a hook is told on standard input. Fields of other events are empty.
type Event struct {
	Name       string `json:"hook_event_name"`
	Session    string `json:"session_id"` // the program's own id of its session
	Dir        string `json:"cwd"`        // the caller's working folder
	Transcript string `json:"transcript_path"`
	Agent      string `json:"agent_id"`   // inside a subagent
	AgentType  string `json:"agent_type"` // inside a subagent: its name

	Prompt string `json:"prompt"` // UserPromptSubmit

	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Use      string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"` // PostToolUse

	Again      bool         `json:"stop_hook_active"`
	Last       string       `json:"last_assistant_message"` // Stop, SubagentStop
	Background []Background `json:"background_tasks"`       // Stop: what still runs; older programs do not say

	Source string `json:"source"` // SessionStart: startup, resume, clear, compact
	Reason string `json:"reason"` // SessionEnd
}

// Background is work that goes on after an answer.
type Background struct {
	Type   string `json:"type"`   // subagent, shell, …
	Status string `json:"status"` // running, …
}

// Fault is an input that cannot be taken. Session is the program's session as far as it could be
// found in what was read; empty: it could not.
type Fault struct {
	Session string
	Why     error
}

func (f *Fault) Error() string { return f.Why.Error() }
func (f *Fault) Unwrap() error { return f.Why }

// Decode reads what a hook is told: one JSON object of 4 MiB at most. Its errors are *Fault.
func Decode(in io.Reader) (Event, error) {
	text, err := io.ReadAll(io.LimitReader(in, inputBytesMax+1))
	if err != nil {
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("read what the hook is told: %w", err)}
	}
	if len(text) > inputBytesMax {
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("the hook is told more than %d bytes, so nothing in it is judged; write large files in parts", inputBytesMax)}
	}
	var is Event
	if err := json.Unmarshal(text, &is); err != nil {
		return Event{}, &Fault{sessionIn(text), fmt.Errorf("what the hook is told is not what Claude Code documents: %w", inWords(err))}
	}
	for what, id := range map[string]string{"session_id": is.Session, "agent_id": is.Agent, "agent_type": is.AgentType, "tool_use_id": is.Use, "tool_name": is.Tool} {
		if len(id) > idBytesMax {
			return Event{}, &Fault{is.Session, fmt.Errorf("the hook's %s has %d bytes, and the most is %d", what, len(id), idBytesMax)}
		}
	}
	return is, nil
}

// inWords says what is wrong with a text, without the names of our types.
func inWords(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return fmt.Errorf("it is no object (%s)", wrong.Value)
	}
	return fmt.Errorf("its %s may not be this (%s)", wrong.Field, wrong.Value)
}

// sessionIn finds the session's id in an object that is cut off or wrong further on. What stands
// deeper in it, where a model could have put it, is not looked at.
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

// errNoSession says that an input names no session.
var errNoSession = errors.New("what the hook is told names no session")

var errNoTool = errors.New("the hook is not told which tool it is about")
