package scriptmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// question is a request in a form that is independent of the API: the conversation and the offered
// tools.
type question struct {
	turns []Turn
	tools []tool
	shape *schema // the answer must be JSON of this shape
}

// tool is a tool that the program offers.
type tool struct {
	name  string
	space string            // its namespace, in the API responses
	free  bool              // it takes a text instead of arguments
	props map[string]schema // its arguments
}

// schema is the part of a JSON schema that an answer needs.
type schema struct {
	Type       string            `json:"type"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
}

// UnmarshalJSON takes what it understands; `"type": ["string", "null"]` and `true` are schemas, too.
func (s *schema) UnmarshalJSON(b []byte) error {
	var loose struct {
		Type       any                        `json:"type"`
		Enum       []any                      `json:"enum"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(b, &loose) != nil {
		return nil //nolint:nilerr // true and false are valid schemas, too; there is nothing to fill in
	}
	s.Enum = loose.Enum
	switch t := loose.Type.(type) {
	case string:
		s.Type = t
	case []any:
		if len(t) > 0 {
			s.Type, _ = t[0].(string)
		}
	}
	for name, raw := range loose.Properties {
		var p schema
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		if s.Properties == nil {
			s.Properties = map[string]schema{}
		}
		s.Properties[name] = p
	}
	return nil
}

// answer is the answer to one request.
type answer struct {
	thought string
	text    string
	calls   []call

	words int           // the text in this number of pieces,
	pause time.Duration // with this pause between them
	hold  bool          // then nothing until LetGo,
	after string        // then this text

	status     int // an error instead of a text
	retryAfter string

	in, out int // reported usage in tokens
}

// call is one call of a tool.
type call struct {
	tool tool
	args map[string]any
	free string // for a tool that takes a text
}

const (
	tokensIn, tokensOut = 100, 20 // of each answer, unless the prompt says otherwise
	slowWordsMax        = 10_000
	quoteMax            = 200 // length of a tool's result that the last text quotes
)

var field = regexp.MustCompile(`RESULT\.\w+`)

var item = regexp.MustCompile(`(?m)\bdo: (write|read|bash|mcp|tool|say|think|slow|hold|error|usage)\b[ \t]*([^\r\n]*)`)

// answer finds the prompt that contains a list, counts the calls since, and returns the next item.
func (q question) answer() answer {
	a := answer{in: tokensIn, out: tokensOut}
	if q.shape != nil {
		a.text = string(encode.JSON(q.shape.fill()))
		return a
	}
	if len(q.tools) == 0 { // a title or a summary: not part of the work
		a.text = "a conversation"
		return a
	}
	at := -1
	for i, t := range q.turns {
		if t.Role == "user" && item.MatchString(t.Text) {
			at = i
		}
	}
	if at < 0 {
		a.text = "There is nothing to do."
		return a
	}
	done, last := 0, ""
	for _, t := range q.turns[at+1:] {
		if t.Calls > 0 {
			done++
		}
		if t.Role == "tool" {
			last = t.Text
		}
	}
	next, after := a.list(q.turns[at].Text, done)
	if next == nil {
		a.text = fmt.Sprintf("Done after %d calls. The last result: %.*s", done, quoteMax, last)
		return a
	}
	q.do(&a, next[0], fill(next[1], last))
	if a.hold {
		a.after = after
	}
	return a
}

// list reads the settings for the whole prompt into the answer, and returns the item (verb, rest)
// that follows after this number of calls; nil if none is left. Plain text ends an answer, so it
// does not count as a call. The text that follows the item is returned as after.
func (a *answer) list(prompt string, done int) (next []string, after string) {
	for _, m := range item.FindAllStringSubmatch(prompt, -1) {
		verb, rest := m[1], strings.TrimSpace(m[2])
		switch {
		case verb == "think":
			a.thought = rest
		case verb == "usage":
			in, out, _ := strings.Cut(rest, " ")
			a.in, a.out = number(in), number(out)
		case next != nil && verb == "say" && after == "":
			after = "\n" + words(rest)
		case next != nil:
		case !slices.Contains([]string{"say", "slow", "hold", "error"}, verb) && done > 0:
			done--
		case done == 0:
			next = []string{verb, rest}
		}
	}
	return next, after
}

// fill replaces RESULT.NAME in an item by this field of the last tool's result.
func fill(rest, last string) string {
	return field.ReplaceAllStringFunc(rest, func(name string) string {
		var fields map[string]any
		if json.Unmarshal([]byte(last), &fields) != nil {
			return name // the tool refuses it and reports that to the test
		}
		return fmt.Sprint(fields[strings.TrimPrefix(name, "RESULT.")])
	})
}

// words returns the text to say. Line breaks are written as \n.
func words(rest string) string { return strings.ReplaceAll(rest, `\n`, "\n") }

func (q question) do(a *answer, verb, rest string) {
	first, second, _ := strings.Cut(rest, " ")
	second = strings.TrimSpace(second)
	switch verb {
	case "say":
		a.text = words(rest)
	case "hold":
		a.text, a.hold = words(rest), true
	case "slow":
		a.words, a.pause = min(number(first), slowWordsMax), time.Duration(number(second))*time.Millisecond
		var b strings.Builder
		for i := range a.words {
			fmt.Fprintf(&b, "word%d ", i) // all different: some programs stop a model that repeats itself
		}
		a.text = b.String()
	case "error":
		a.status, a.retryAfter = number(first), second
		if a.status < http.StatusBadRequest {
			a.status = http.StatusInternalServerError
		}
	case "tool":
		t := tool{name: first}
		if i := slices.IndexFunc(q.tools, func(t tool) bool { return t.name == first }); i >= 0 {
			t = q.tools[i]
		}
		a.use(call{tool: t, args: arguments(second), free: second})
	case "mcp":
		i := slices.IndexFunc(q.tools, func(t tool) bool { return strings.HasSuffix(t.name, first) })
		if i < 0 {
			a.text = "No tool is offered whose name ends in " + first + "."
			return
		}
		a.use(call{tool: q.tools[i], args: arguments(second)})
	case "write":
		a.use(q.write(first, second))
	case "read":
		if t, ok := q.offered("read", "read_file"); ok {
			a.use(call{tool: t, args: t.args(first, "filePath", "file_path", "path", "absolute_path")})
			return
		}
		a.use(q.shell("cat " + first))
	case "bash":
		a.use(q.shell(rest))
	}
}

func (a *answer) use(c call) {
	a.text = "I use " + c.tool.name + "."
	a.calls = append(a.calls, c)
}

// write writes a file with a tool that the program offers.
func (q question) write(path, text string) call {
	if t, ok := q.offered("write", "write_file", "Write"); ok {
		args := t.args(path, "filePath", "file_path", "path")
		args["content"] = text + "\n"
		return call{tool: t, args: args}
	}
	if t, ok := q.offered("apply_patch"); ok {
		patch := "*** Begin Patch\n*** Add File: " + path + "\n+" + text + "\n*** End Patch\n"
		return call{tool: t, free: patch, args: map[string]any{"input": patch}}
	}
	return q.shell("printf '%s\\n' '" + text + "' > " + path)
}

func (q question) shell(command string) call {
	t, ok := q.offered("bash", "Bash", "run_shell_command", "exec_command", "shell_command", "shell")
	if !ok {
		t = tool{name: "bash"} // the program reports that it has none, and the test sees that
	}
	args := t.args(command, "command", "cmd")
	if t.name == "shell" {
		args["command"] = []string{"bash", "-c", command}
	}
	if _, wants := t.props["description"]; wants {
		args["description"] = "an item of the list"
	}
	if _, wants := t.props["is_background"]; wants {
		args["is_background"] = false
	}
	return call{tool: t, args: args}
}

// offered returns the first of these tools that the program offers.
func (q question) offered(names ...string) (tool, bool) {
	for _, name := range names {
		if i := slices.IndexFunc(q.tools, func(t tool) bool { return t.name == name }); i >= 0 {
			return q.tools[i], true
		}
	}
	return tool{}, false
}

func (q question) names() []string {
	names := make([]string, len(q.tools))
	for i, t := range q.tools {
		names[i] = t.name
	}
	return names
}

// args returns arguments with a value under the first of these names that the tool has.
func (t tool) args(value string, names ...string) map[string]any {
	for _, name := range names {
		if _, ok := t.props[name]; ok {
			return map[string]any{name: value}
		}
	}
	return map[string]any{names[0]: value}
}

func arguments(text string) map[string]any {
	args := map[string]any{}
	if text != "" && json.Unmarshal([]byte(text), &args) != nil {
		args["not_json"] = text // the tool refuses it and reports that to the test
	}
	return args
}

// number parses a word of the list; an invalid one is 0.
func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// fill returns a minimal value that matches the schema, with the first of several choices.
func (s schema) fill() any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Type {
	case "object", "":
		filled := map[string]any{}
		for name, p := range s.Properties {
			filled[name] = p.fill()
		}
		return filled
	case "array":
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return false
	}
	return "scripted"
}

// String formats the answer as Request.Answer shows it.
func (a answer) String() string {
	switch {
	case a.status != 0:
		return fmt.Sprintf("error %d", a.status)
	case len(a.calls) > 0:
		c := a.calls[0]
		return "call " + c.tool.name + " " + c.json()
	}
	return "say " + a.text
}

func (c call) json() string { return string(encode.JSON(c.args)) }

// pieces splits the text, at words if it is slow.
func (a answer) pieces() []string {
	if a.words > 0 {
		return strings.SplitAfter(strings.TrimSuffix(a.text, " "), " ")
	}
	half := len(a.text) / 2
	for half > 0 && a.text[half]&0xC0 == 0x80 { // not within a character
		half--
	}
	if half == 0 {
		return []string{a.text}
	}
	return []string{a.text[:half], a.text[half:]}
}
