package speech

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Args builds an event's arguments from names and texts.
func Args(of map[string]string) json.RawMessage {
	if len(of) == 0 {
		return nil
	}
	return encode.JSON(of)
}

// Ended is the terminal event for a stop.
func Ended(stop driver.Stop) driver.Fact {
	return driver.Fact{Kind: driver.Stopped, Stop: &stop, Context: stop.ContextPercent}
}

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
	raw := bytes.ToValidUTF8(trimmed, []byte(string(utf8.RuneError)))
	if !json.Valid(raw) {
		return f // the line is the best description
	}
	f.Raw = raw
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		f.Text = fmt.Sprintf("an event could not be read: %v", err)
		return f
	}
	if why := e.fault(); why != "" {
		f.Text = why
		return f
	}
	return e.of(f)
}

// event is a line as an agent wrote it. It may have fields that its kind does not have, and no word about ok.
type event struct {
	driver.Fact
	OK *bool `json:"ok"`
}

// of returns the fact of a valid event, with the place of f and the fields of its kind.
func (e *event) of(f driver.Fact) driver.Fact {
	f.Kind, f.Text, f.Part, f.Tool = e.Kind, e.Text, e.Part, e.Tool
	switch e.Kind {
	case driver.Listening:
		f.Part, f.Tool, f.Input = false, "", e.Input // a point in time, not speech
	case driver.ToolCalled:
		f.Args, f.Cut = e.Args, e.Cut
	case driver.PermissionAsked:
		f.Ask, f.Args, f.Cut = e.Ask, e.Args, e.Cut
		f.Options = driver.Unambiguous(e.Options)
	case driver.PermissionAnswered, driver.PermissionWithdrawn, driver.TextRead:
		f.ID = e.ID
	case driver.UsageReported:
		f.Usage, f.Context = e.Usage, percent(e.Context)
	case driver.ConversationNamed:
		f.Conversation = e.Conversation
	case driver.RateLimited:
		f.Until = e.Until
	case driver.ProviderAway:
		f.Provider = e.Provider
	case driver.Stopped:
		f.Context = percent(e.Context)
		f.Stop = &driver.Stop{OK: *e.OK, ContextPercent: f.Context}
		if e.Stop != nil {
			f.Stop.Reason, f.Stop.Detail, f.Stop.Alone = e.Stop.Reason, e.Stop.Detail, e.Stop.Alone
		}
		f.Text = strings.TrimSuffix(f.Stop.Reason+": "+f.Stop.Detail, ": ")
	}
	return f
}

// percent keeps a number within the range of a percentage.
func percent(n int) int { return min(max(n, 0), 100) }

// fault returns why an event is invalid; empty if it is valid.
func (e *event) fault() string {
	switch e.Kind {
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
		if e.ID == "" && e.Kind == driver.PermissionAsked {
			return "a permission_asked event has no id, so it cannot be answered"
		}
		if e.ID == "" {
			return fmt.Sprintf("a %s event does not name the question", e.Kind)
		}
	case driver.ProviderAway:
		if !e.Provider.Known() {
			return "a provider_away event does not say why"
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
		return fmt.Sprintf("an event of an unknown type: %q", clip.Text(string(e.Kind), clippedBytes))
	}
	return ""
}

// A result is shown to people while the agent works. The program has the whole result.
const (
	resultLinesMax = 40      // fits on a screen
	resultBytesMax = 4 << 10 // 40 lines of about 100 characters
)

// Result reports what a tool call has printed or changed. It does not count as text of the agent.
// Control characters are shown as visible characters. Text above the limits is omitted, with a
// note. Output of a tool that only reads is not reported, because the call names what it read.
func (w *Writer) Result(tool, text string) {
	if slices.Contains(readers, tool) {
		return
	}
	if text = visible(strings.TrimRight(text, " \t\r\n")); text == "" || tool == "" {
		return
	}
	shown := text
	if lines := strings.SplitAfterN(shown, "\n", resultLinesMax+1); len(lines) > resultLinesMax {
		shown = strings.Join(lines[:resultLinesMax], "")
	}
	shown = shown[:edge(shown, resultBytesMax)]
	if left := len(text) - len(shown); left > 0 {
		shown = strings.TrimRight(shown, "\n") + fmt.Sprintf("\n… [%d more bytes are not shown]", left)
	}
	w.Tell(driver.Fact{Kind: driver.Said, Tool: tool, Text: shown})
}

var readers = []string{"Read", "LS", "Glob", "Grep", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead"}

// visible shows control characters, except line breaks and tabs.
func visible(text string) string { return termtext.Show(strings.ReplaceAll(text, "\r\n", "\n")) }

// Diff describes a change of a file: its name, the lines that were removed and those that were added.
func Diff(path, before, after string) string {
	old, now := lines(before), lines(after)
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	var b strings.Builder
	b.WriteString(path)
	for _, l := range old {
		b.WriteString("\n- " + l)
	}
	for _, l := range now {
		b.WriteString("\n+ " + l)
	}
	return b.String()
}

func lines(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
