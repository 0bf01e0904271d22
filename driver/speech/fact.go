package speech

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Fact parses one line of an agent's output. A line that does not begin with a brace was printed by
// a program that does not know the protocol: it is Said. Everything else is an event, or Faulted.
func Fact(line driver.Line) driver.Fact {
	f := driver.Fact{Kind: driver.Said, Offset: line.End, Text: line.Text()}
	trimmed := bytes.TrimSpace(line.Bytes)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return f
	}
	f.Kind = driver.Faulted
	if line.Cut {
		f.Text = "an event was not read, it is too long: " + f.Text
		return f
	}
	var e Event
	raw := bytes.ToValidUTF8(trimmed, []byte(string(utf8.RuneError)))
	if !json.Valid(raw) {
		return f // the line is the best description
	}
	f.Raw = raw
	if err := json.Unmarshal(raw, &e); err != nil {
		f.Text = fmt.Sprintf("an event could not be read: %v", err)
		return f
	}
	if why := e.fault(); why != "" {
		f.Text = why
		return f
	}
	e.fill(&f)
	return f
}

// fill copies the fields of a valid event into a fact.
func (e *Event) fill(f *driver.Fact) {
	f.Kind, f.Text, f.Part, f.Tool = e.Type, e.Text, e.Part, e.Tool
	switch e.Type {
	case driver.Listening:
		f.Part, f.Tool, f.Input = false, "", e.Input // a point in time, not speech
	case driver.PermissionAsked:
		f.Ask = driver.Ask{ID: e.ID, Options: driver.Unambiguous(e.Options), Paths: e.Paths}
	case driver.PermissionAnswered, driver.PermissionWithdrawn:
		f.Ask = driver.Ask{ID: e.ID}
	case driver.TextRead:
		f.ID = e.ID
	case driver.UsageReported:
		f.Usage, f.Context = e.Usage, percent(e.ContextPercent)
	case driver.ConversationNamed:
		f.Conversation = *e.Conversation
	case driver.RateLimited:
		f.Until = e.Until
	case driver.Stopped:
		f.Stop = driver.Stop{OK: *e.OK, Reason: e.Reason, Detail: e.Detail, ContextPercent: percent(e.ContextPercent)}
		f.Text = strings.TrimSuffix(e.Reason+": "+e.Detail, ": ")
	}
}

// percent keeps a number within the range of a percentage.
func percent(n int) int { return min(max(n, 0), 100) }

// fault returns why an event is invalid; empty if it is valid.
func (e *Event) fault() string {
	switch e.Type {
	case driver.Said, driver.Thought, driver.Faulted, driver.RateLimited:
	case driver.Listening:
		if e.Input < 0 {
			return "a listening event has a negative amount of input"
		}
	case driver.ToolCalled:
		if e.Tool == "" {
			return "a tool_called event does not name the tool"
		}
	case driver.PermissionAsked, driver.PermissionAnswered, driver.PermissionWithdrawn:
		if e.ID == "" && e.Type == driver.PermissionAsked {
			return "a permission_asked event has no id, so it cannot be answered"
		}
		if e.ID == "" {
			return fmt.Sprintf("a %s event does not name the question", e.Type)
		}
	case driver.TextRead:
		if e.ID == "" {
			return "a text_read event does not name the text"
		}
	case driver.UsageReported:
		if e.InputTokens < 0 || e.OutputTokens < 0 || e.CostUSD < 0 {
			return "a usage_reported event has a negative number"
		}
	case driver.ConversationNamed:
		if e.Conversation == nil || e.Conversation.ID == "" {
			return "a conversation_named event does not name the conversation"
		}
	case driver.Stopped:
		if e.OK == nil {
			return "a stopped event does not say whether it is ok"
		}
	default:
		return fmt.Sprintf("an event of an unknown type: %q", clip.Text(string(e.Type), clippedBytes))
	}
	return ""
}
