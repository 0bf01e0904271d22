package speech

import (
	"encoding/json"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
)

// Event is one line that an agent writes: a fact, in JSON. Type is a driver.FactKind; it determines
// which other fields are set.
type Event struct {
	Type driver.FactKind `json:"type"`

	Text string `json:"text,omitempty"` // of permission_answered: the chosen option
	Part bool   `json:"part,omitempty"` // said, thought: the line continues
	Tool string `json:"tool,omitempty"`

	// ID is the ID of the question in permission_asked, permission_answered, permission_withdrawn,
	// and the ID of the steer order in text_read.
	ID      string          `json:"id,omitempty"`
	Options []driver.Option `json:"options,omitempty"`
	Paths   []string        `json:"paths,omitempty"` // absolute

	// Args is a JSON object: the arguments of a tool, in Claude Code's vocabulary if the tool is one of
	// its tools (file_path, content, command, …). Cut names the arguments that are incomplete. It
	// contains "args" or "paths" if some of those are missing completely, and "tool" if the program does
	// not name the tool. Policies must not allow a call by an incomplete argument.
	Args json.RawMessage `json:"args,omitempty"`
	Cut  []string        `json:"cut,omitempty"`

	driver.Usage

	Input  int64  `json:"input,omitempty"` // listening: bytes of input received
	OK     *bool  `json:"ok,omitempty"`    // stopped
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`

	ContextPercent int `json:"context_percent,omitempty"` // stopped, usage_reported: how full the model's context is

	Until        time.Time         `json:"until,omitzero"` // rate_limited
	Conversation *driver.Conversed `json:"conversation,omitempty"`

	// Raw is the program's own message, for diagnosis: unchanged or, if it is too long or not JSON, a
	// string with its beginning.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Args builds an event's arguments from names and texts.
func Args(of map[string]string) json.RawMessage {
	if len(of) == 0 {
		return nil
	}
	b, err := json.Marshal(of)
	if err != nil {
		panic("speech: encode texts: " + err.Error())
	}
	return b
}

// Ended is the terminal event for a stop.
func Ended(stop driver.Stop) Event {
	return Event{Type: driver.Stopped, OK: &stop.OK, Reason: stop.Reason, Detail: stop.Detail, ContextPercent: stop.ContextPercent}
}
