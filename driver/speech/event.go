package speech

import (
	"encoding/json"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
)

// Event is one line that an agent writes: a fact, in JSON. Type is a driver.FactKind; what else is
// filled depends on it.
type Event struct {
	Type driver.FactKind `json:"type"`

	Text string `json:"text,omitempty"` // of permission_answered: the option that was told
	Part bool   `json:"part,omitempty"` // said, thought: the line goes on
	Tool string `json:"tool,omitempty"`

	// ID is a question's: permission_asked, permission_answered, permission_withdrawn.
	ID      string          `json:"id,omitempty"`
	Options []driver.Option `json:"options,omitempty"`
	Paths   []string        `json:"paths,omitempty"` // absolute

	// Args is a JSON object: what a tool is called with, in the words of Claude Code where the tool
	// is one of those (file_path, content, command, …). Cut names those that are not here whole, or says
	// "args", or "paths", where some of those are not here at all:
	// nobody may judge a call by the beginning of an argument.
	Args json.RawMessage `json:"args,omitempty"`
	Cut  []string        `json:"cut,omitempty"`

	driver.Usage

	Input  int64  `json:"input,omitempty"` // listening: bytes of input that were taken
	OK     *bool  `json:"ok,omitempty"`    // stopped
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`

	Until        time.Time         `json:"until,omitzero"` // rate_limited
	Conversation *driver.Conversed `json:"conversation,omitempty"`

	// Raw is the program's own message, for those who want to know: as it was, or, where it was too
	// long or no JSON, a string with its beginning.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Args makes an event's arguments of names and texts.
func Args(of map[string]string) json.RawMessage {
	if len(of) == 0 {
		return nil
	}
	b, err := json.Marshal(of)
	if err != nil {
		panic("speech: texts that are no JSON: " + err.Error())
	}
	return b
}

// Ended is the terminal event.
func Ended(stop driver.Stop) Event {
	return Event{Type: driver.Stopped, OK: &stop.OK, Reason: stop.Reason, Detail: stop.Detail}
}
