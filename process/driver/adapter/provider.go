package adapter

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// ProviderErrors is a driver's table of what its programs say about errors of their provider. It is
// data beside the driver, provider_errors.json, and each row has a recorded sample in testdata.
type ProviderErrors []ProviderError

// ProviderError is one row.
type ProviderError struct {
	Program string              // that says it
	Code    driver.ProviderCode //
	Pattern *regexp.Regexp      // of the answer that it reports as a success
	Sample  string              // file in testdata/provider_errors
}

// ReadProviderErrors reads a table. It panics if it is faulty, since it is part of the program.
func ReadProviderErrors(text []byte) ProviderErrors {
	var rows []struct {
		Program, Code, Pattern, Sample string
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		panic(fmt.Sprintf("adapter: provider_errors.json: %v", err))
	}
	var all ProviderErrors
	for _, r := range rows {
		all = append(all, ProviderError{r.Program, driver.ProviderCode(r.Code), regexp.MustCompile(r.Pattern), r.Sample})
	}
	return all
}

// Find returns the code of the first row that matches an answer; empty: none does.
func (t ProviderErrors) Find(text string) driver.ProviderCode {
	for _, row := range t {
		if row.Pattern.MatchString(strings.TrimSpace(text)) {
			return row.Code
		}
	}
	return ""
}

// Answers collects what the answers of a session consist of. An answer without a tool call, a question
// and usage shows no work: its text alone decides whether it is one.
type Answers struct {
	Table ProviderErrors

	now, all answer
}

type answer struct {
	said   []byte
	long   bool // said has no room for its whole text
	worked bool
	called bool // a tool
}

// aloneBytesMax is the longest text of an answer without work that is kept. Programs that give an
// error as their answer print less.
const aloneBytesMax = 4 << 10

func (a *answer) say(text string) {
	room := aloneBytesMax - len(a.said)
	a.said, a.long = append(a.said, text[:min(room, len(text))]...), a.long || len(text) > room
}

// Begin begins an answer.
func (a *Answers) Begin() { a.now = answer{} }

// Say adds a text of the agent.
func (a *Answers) Say(text string) {
	a.now.say(text)
	a.all.say(text)
}

// Spoke reports whether the answer has a text.
func (a *Answers) Spoke() bool { return len(a.now.said) > 0 }

// Work records a question, usage, or another sign that the model has answered.
func (a *Answers) Work() { a.now.worked, a.all.worked = true, true }

// Call records a tool call.
func (a *Answers) Call() {
	a.Work()
	a.now.called = true
}

// EndsWithError reports whether the last words of an answer are an error of the provider (APIError). They are the model's if the answer has
// usage or a question and no tool call. After a call they can be the program's, because the next request may have failed.
func (a *Answers) EndsWithError(words string) bool {
	return APIError(words) && (a.now.called || !a.now.worked)
}

// Failure returns how an answer that its program reports as a success has failed; nil: it has not.
func (a *Answers) Failure() *driver.Stop {
	text := strings.TrimSpace(strings.ToValidUTF8(string(a.now.said), "\uFFFD"))
	switch {
	case a.now.worked:
		return nil
	case text == "":
		return &driver.Stop{
			Reason: session.ReasonNoAnswer,
			Detail: "the program ended its answer without a text, a tool call or usage; start it once by hand to see what its provider says",
		}
	}
	code := a.Table.Find(text)
	if code == "" && !protocolError(text) {
		return nil
	}
	return &driver.Stop{Reason: ReasonOf(code, session.ReasonProviderError), Detail: Clipped(text, NoticeBytesMax)}
}

// ReasonOf is the reason of a session that ends because of its provider; other is that of the codes that have none of their own.
func ReasonOf(code driver.ProviderCode, other string) string {
	switch code {
	case driver.ProviderAuthentication:
		return session.ReasonNotSignedIn
	case driver.ProviderRateLimit:
		return session.ReasonRateLimited
	case driver.ProviderContextFull:
		return session.ReasonContextExhausted
	}
	return other
}

// Alone returns the text of a session in which nothing shows that a model has answered; empty: something does, or
// the text is long.
func (a *Answers) Alone() string {
	if a.all.worked || a.all.long {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(a.all.said), "\uFFFD"))
}

// protocolError reports whether a text contains an error of a provider's protocol: a JSON object with an
// error that has a code or a type, as in {"error":{"code":"context_length_exceeded"}}.
func protocolError(text string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return false
		}
		var of struct {
			Error json.RawMessage `json:"error"`
		}
		var is struct {
			Code any `json:"code"`
			Type any `json:"type"`
		}
		d := json.NewDecoder(strings.NewReader("{" + after))
		if d.Decode(&of) == nil {
			return len(of.Error) > 0 && json.Unmarshal(of.Error, &is) == nil && (is.Code != nil || is.Type != nil)
		}
		rest = after
	}
}
