package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// messageKind is the JSON-RPC kind of an object from the program.
type messageKind int

const (
	broken       messageKind = iota // not a valid message
	request                         // the program expects a response
	notification                    // the program expects no response
	response                        // to one of the driver's requests
)

const (
	idBytesMax    = 1 << 10 // limit for IDs; a longer one is invalid
	wordsBytesMax = 4 << 10 // limit for an error's text, which is shown in one place
)

// message is one message of JSON-RPC 2.0, or the invalid input that arrived in its place.
type message struct {
	kind   messageKind
	id     json.RawMessage // as received, so that the response repeats it exactly
	method string
	params json.RawMessage
	result json.RawMessage
	err    *rpcError
	raw    json.RawMessage // the complete message
	text   string          // broken: why it is invalid
}

// rpcError is the error of a response. Its code is not reliable: programs were seen to return four
// different codes for an unknown conversation.
type rpcError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

const methodNotFound = -32601

// decode reads one object of valid JSON. It never fails: an invalid message has the kind broken and a
// text that says why.
func decode(raw json.RawMessage) message {
	all := members(raw)
	if all == nil {
		return message{kind: broken, raw: raw, text: "a message that is not a JSON object"}
	}
	m := message{raw: raw, id: all["id"], params: all["params"], result: all["result"]}
	bad := func(why string) message { return message{kind: broken, raw: m.raw, text: why} }
	if isNull(m.id) {
		m.id = nil
	}
	if m.id != nil && (len(m.id) > idBytesMax || !bytes.ContainsAny(m.id[:1], `"-0123456789`)) {
		return bad("a message whose id is neither a number nor a short string")
	}
	if given, ok := all["method"]; ok {
		if m.method = textOf(given); m.method == "" {
			return bad("a message whose method is not a name")
		}
		m.kind = notification
		if m.id != nil {
			m.kind = request
		}
		return m
	}
	if failed := all["error"]; failed != nil && !isNull(failed) {
		m.err = readError(failed)
	} else if m.result == nil {
		return bad("a message with neither method nor result nor error")
	}
	m.kind = response
	return m
}

// readError reads an error leniently: some programs omit the code, and some send only a string.
func readError(raw json.RawMessage) *rpcError {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return &rpcError{Message: text}
	}
	of := objectOf(raw)
	code, _ := of.number("code")
	return &rpcError{Code: int64(code), Message: of.text("message"), Data: of["data"]}
}

// words formats an error in one line: its message, and what its data adds.
func (e *rpcError) words() string {
	text := oneLine(e.Message)
	var detail string
	of := objectOf(e.Data)
	for _, name := range []string{"details", "detail", "error", "message", "reason"} {
		if detail = oneLine(of.text(name)); detail != "" {
			break
		}
	}
	if detail == "" {
		_ = json.Unmarshal(e.Data, &detail) // data that is a string; other types add nothing
		detail = oneLine(detail)
	}
	switch {
	case detail != "" && !strings.Contains(text, detail):
		text = strings.TrimPrefix(text+": "+detail, ": ")
	case text == "":
		text = fmt.Sprintf("error %d without a message", e.Code)
	}
	return clip(text, wordsBytesMax)
}

// number returns the ID of a response. The driver's IDs are whole numbers; some programs send them
// back as strings.
func (m message) number() (uint64, bool) {
	text := strings.Trim(string(m.id), `"`)
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// fields is a JSON object whose members are decoded one by one. A member of the wrong type counts as
// missing and does not affect the others.
type fields map[string]json.RawMessage

func objectOf(raw json.RawMessage) fields {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return members(raw)
}

// members is objectOf for what is known to be valid, as every part of a message is. A message has objects within
// objects, and each is read once this way. The values are parts of raw.
func members(raw json.RawMessage) fields {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return nil
	}
	of := make(fields)
	for i = space(raw, i+1); i < len(raw) && raw[i] == '"'; {
		name := i
		i = after(raw, name)
		value := space(raw, space(raw, i)+1) // after the colon
		end := after(raw, value)
		of[textOf(raw[name:i])] = raw[value:end:end]
		if i = space(raw, end); i < len(raw) && raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	return of
}

// space returns the first place at or after i that is not white space.
func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\r' || raw[i] == '\n') {
		i++
	}
	return min(i, len(raw))
}

// after returns the place after the value at i.
func after(raw []byte, i int) int {
	for depth := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 { // a number or a word
				return i + len(raw[i:]) - len(bytes.TrimLeft(raw[i:], "+-.0123456789Eaeflnrstu"))
			}
		}
		if i++; depth == 0 {
			break
		}
	}
	return min(i, len(raw))
}

// textOf returns a JSON string as a text; other values have none.
func textOf(raw json.RawMessage) string {
	if n := len(raw); n >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : n-1])
	}
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func (f fields) text(name string) string { return textOf(f[name]) }

func (f fields) number(name string) (float64, bool) {
	var n *float64
	if raw := f[name]; raw == nil || json.Unmarshal(raw, &n) != nil || n == nil {
		return 0, false
	}
	return *n, true
}

func (f fields) yes(name string) bool { return string(f[name]) == "true" }

func (f fields) object(name string) fields { return members(f[name]) }

// has reads a capability: {} and true mean that it exists, null and false that it does not.
func (f fields) has(name string) bool {
	raw, ok := f[name]
	return ok && !isNull(raw) && string(raw) != "false"
}

func (f fields) list(name string) []json.RawMessage {
	var all []json.RawMessage
	if raw := f[name]; raw == nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// clip returns the beginning of a text, with a note about its full length.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… [cut: %d bytes]", len(s))
}

// oneLine replaces line breaks, tabs and control characters by spaces.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
}

// The protocol has no code for a rate limit of the provider. Programs report it as an error in their
// own words; these patterns were observed or are documented.
var (
	limitWords   = regexp.MustCompile(`(?i)rate[ _-]?limit|too many requests|(usage|session|weekly|hourly|daily) limit|quota (exceeded|exhausted)|exceeded your current quota|resource_exhausted|(status|error|http|code)\W{0,4}(code\W{0,4})?429\b`)
	contextWords = regexp.MustCompile(`(?i)prompt is too long|context_length_exceeded|maximum context length|exceed\w*.{0,40}context (window|length)|context (window|length).{0,40}exceed|input is too long|ran out of room in the model's context`)
	waitWords    = regexp.MustCompile(`(?i)(?:retry|try again|reset\w*|wait)\D{0,20}?(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b`)
	untilWords   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)`)
	signIn       = regexp.MustCompile(`(?i)auth|sign.?in|log.?in|api.?key|credential`)
)

// waitMax is the longest wait that is accepted. Weekly limits are the longest known ones.
const waitMax = 8 * 24 * time.Hour

// rateLimit reports whether an error is a provider's rate limit, and until when it applies; zero:
// unknown.
func rateLimit(e *rpcError, now time.Time) (until time.Time, limited bool) {
	data := string(e.Data)
	of := objectOf(e.Data)
	status, _ := of.number("status")
	if code, ok := of.number("statusCode"); ok {
		status = code
	}
	if status != 429 && e.Code != 429 && !limitWords.MatchString(e.Message+" "+data) {
		return time.Time{}, false
	}
	for _, name := range []string{"retry_after", "retryAfter", "retry-after", "retryAfterSeconds"} {
		if seconds, ok := number(of[name]); ok {
			return believed(now, now.Add(time.Duration(seconds*float64(time.Second)))), true
		}
	}
	for _, name := range []string{"resets_at", "resetsAt", "reset_at", "resetAt"} {
		if seconds, ok := number(of[name]); ok {
			if seconds > 1e12 { // it is in milliseconds
				seconds /= 1e3
			}
			return believed(now, time.Unix(int64(seconds), 0).UTC()), true
		}
	}
	text := e.Message + " " + data
	if at, err := time.Parse(time.RFC3339, untilWords.FindString(text)); err == nil {
		return believed(now, at.UTC()), true
	}
	if found := waitWords.FindStringSubmatch(text); found != nil {
		n, err := strconv.ParseFloat(found[1], 64)
		if err == nil && n < 1e9 {
			return believed(now, now.Add(time.Duration(n*float64(unit(found[2]))))), true
		}
	}
	return time.Time{}, true
}

func unit(word string) time.Duration {
	switch word = strings.ToLower(word); {
	case strings.HasPrefix(word, "ms"), strings.HasPrefix(word, "milli"):
		return time.Millisecond
	case strings.HasPrefix(word, "m"):
		return time.Minute
	case strings.HasPrefix(word, "h"):
		return time.Hour
	}
	return time.Second
}

// number decodes a number, also from a string.
func number(raw json.RawMessage) (float64, bool) {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	return n, err == nil && n >= 0 && n < 1e14
}

// believed returns until if it is plausible: not in the past and within waitMax. Otherwise it
// returns zero.
func believed(now, until time.Time) time.Time {
	if until.Before(now) || until.After(now.Add(waitMax)) {
		return time.Time{}
	}
	return until.UTC().Truncate(time.Second)
}
