package codex

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// event is one line of `codex exec --json`.
type event struct {
	// thread.started, turn.started, item.started, item.updated, item.completed, turn.completed, turn.failed, error
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"` // error
	Error    fault  `json:"error"`   // turn.failed
	Usage    *usage `json:"usage"`
	Item     *item  `json:"item"`
}

// item is something that the agent says or does. IDs start at item_0 in every process.
type item struct {
	ID string `json:"id"`
	// agent_message, reasoning, command_execution, file_change, mcp_tool_call, collab_tool_call, web_search, todo_list, plan, error
	Type string `json:"type"`

	Text    string `json:"text"`    // agent_message, reasoning, plan
	Message string `json:"message"` // error
	Status  string `json:"status"`  // in_progress, completed, failed, declined

	Command string   `json:"command"` // command_execution
	Output  string   `json:"aggregated_output"`
	Changes []change `json:"changes"` // file_change

	Server    string          `json:"server"` // mcp_tool_call
	Tool      string          `json:"tool"`   // mcp_tool_call, collab_tool_call
	Arguments json.RawMessage `json:"arguments"`
	Error     fault           `json:"error"`
	Result    struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`

	Prompt string `json:"prompt"` // collab_tool_call
	Query  string `json:"query"`  // web_search

	Items []struct { // todo_list
		Text string `json:"text"`
	} `json:"items"`
}

type change struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // add, update, delete
}

// fault is an error: an object with a message or, in older versions, a string.
type fault struct{ Message string }

// UnmarshalJSON accepts any value.
func (f *fault) UnmarshalJSON(b []byte) error {
	f.Message = ""
	var with struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(b, &f.Message) != nil && json.Unmarshal(b, &with) == nil {
		f.Message = with.Message
	}
	return nil
}

// usage is the total of a thread over all its processes. Input includes cached tokens.
type usage struct {
	Input  adapter.Number `json:"input_tokens"`
	Output adapter.Number `json:"output_tokens"`
}

// read decodes one line. If a field has an unexpected shape, it returns an error and the fields that
// were decoded.
func read(raw json.RawMessage) (event, error) {
	var e event
	err := json.Unmarshal(raw, &e)
	return e, err
}

var (
	limitWords   = regexp.MustCompile(`(?i)\b(usage limit|rate.?limit|too many requests|429)\b|\bquota\b.*\bexceeded\b|\bexceeded\b.*\bquota\b`)
	contextWords = regexp.MustCompile(`(?i)context window|context length|ran out of room`)
	resumeWords  = regexp.MustCompile(`(?i)no rollout found|no saved session|session .*not found`)
	networkWords = regexp.MustCompile(`(?i)waiting for network|connection failed|stream disconnected|error sending request`)
	statusIn     = regexp.MustCompile(`(?i)\bstatus:? ([1-5]\d\d)\b`)
	deniedWords  = regexp.MustCompile(`(?i)requires approval|approval policy is never|rejected by|not permitted|denied`)

	awayWords = regexp.MustCompile(`(?i)^(reconnecting\b|stream error\b.*\bretrying\b)`) // codex waits for its provider, and tries again
	againAt   = regexp.MustCompile(`(?i)try again at (?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,? (\d{4}),? )?(\d{1,2}):(\d{2}) ?(AM|PM)`)
	againIn   = regexp.MustCompile(`(?i)try again in ((?:\d+(?:\.\d+)? ?(?:days?|hours?|minutes?|seconds?|[dhms])\b[ ,]*(?:and )?)+)`)
	piece     = regexp.MustCompile(`(?i)(\d+)(?:\.\d+)? ?(d|h|m|s)`)
)

// troubleOf classifies what codex says about its provider, while it tries again and at the end, by its text: codex sends nothing else.
func troubleOf(text string) driver.ProviderCode {
	status := 0
	if m := statusIn.FindStringSubmatch(text); m != nil {
		status = adapter.Digits(m[1])
	}
	switch {
	case contextWords.MatchString(text):
		return driver.ProviderContextFull
	case limitWords.MatchString(text):
		return driver.ProviderRateLimit
	case driver.KeyRefused(status, text):
		return driver.ProviderAuthentication
	case status == 0 && networkWords.MatchString(text):
		return driver.ProviderNetwork
	}
	return cmp.Or(driver.ProviderOfStatus(status), driver.ProviderUnavailable)
}

// failed is the end of an answer with an error, and the end of the rate limit if it names one.
func failed(text string, now time.Time) (stop driver.Stop, until time.Time) {
	stop = driver.Stop{
		Reason: adapter.ReasonOf(troubleOf(text), adapter.ReasonFailed),
		Detail: adapter.Clipped(text, adapter.NoticeBytesMax),
	}
	switch {
	case stop.Reason == session.ReasonRateLimited:
		until = again(text, now)
	case stop.Reason != session.ReasonContextExhausted && resumeWords.MatchString(text):
		stop.Reason = session.ReasonNotResumed
	}
	return stop, until
}

// again finds the end of a rate limit in its text: "try again at 3:42 PM", "… at Mar 10th, 2026 3:39
// AM", "… in 2 hours 13 minutes". codex uses the machine's time zone. It returns zero if nothing is
// found.
func again(text string, now time.Time) time.Time {
	if m := againAt.FindStringSubmatch(text); m != nil {
		return adapter.ClockTime(now, m[1], m[2], m[3], m[4], m[5], m[6])
	}
	m := againIn.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	const waitMax = 60 * 24 * time.Hour // longer waits mean that the text was misread
	var wait time.Duration
	for _, p := range piece.FindAllStringSubmatch(m[1], -1) {
		unit := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}[strings.ToLower(p[2])]
		if n := adapter.Digits(p[1]); n < int(waitMax/time.Second) {
			wait += time.Duration(n) * unit
		}
	}
	if wait <= 0 || wait > waitMax {
		return time.Time{}
	}
	return now.Add(wait).UTC()
}

// shells matches the shell prefix with which codex reports commands.
var shells = regexp.MustCompile(`^(?:/\S*/)?(?:ba|z|da)?sh -l?c `)

// unwrapped removes the shell prefix from a command, as the model wrote it. A command that cannot be
// parsed is returned unchanged.
func unwrapped(command string) string {
	prefix := shells.FindString(command)
	if prefix == "" {
		return command
	}
	if word, ok := unquoted(command[len(prefix):]); ok {
		return word
	}
	return command
}

// unquoted reads one word of a shell command line. It returns false if there is more than one word,
// or an expansion.
func unquoted(s string) (string, bool) {
	var b strings.Builder
	for len(s) > 0 {
		switch c := s[0]; c {
		case '\'':
			end := strings.IndexByte(s[1:], '\'')
			if end < 0 {
				return "", false
			}
			b.WriteString(s[1 : 1+end])
			s = s[end+2:]
		case '"':
			rest, ok := doubleQuoted(&b, s[1:])
			if !ok {
				return "", false
			}
			s = rest
		case '\\':
			if len(s) < 2 {
				return "", false
			}
			b.WriteByte(s[1])
			s = s[2:]
		case ' ', '\t', '\n', '$', '`', '&', '|', ';', '<', '>', '(', ')', '*', '?', '[', '~', '#':
			return "", false
		default:
			b.WriteByte(c)
			s = s[1:]
		}
	}
	return b.String(), true
}

// doubleQuoted reads up to the closing quote and returns what follows it.
func doubleQuoted(b *strings.Builder, s string) (rest string, ok bool) {
	for len(s) > 0 {
		switch c := s[0]; {
		case c == '"':
			return s[1:], true
		case c == '\\' && len(s) > 1 && strings.IndexByte("$`\"\\\n", s[1]) >= 0:
			b.WriteByte(s[1])
			s = s[2:]
		case c == '$' || c == '`':
			return "", false
		default:
			b.WriteByte(c)
			s = s[1:]
		}
	}
	return "", false
}
