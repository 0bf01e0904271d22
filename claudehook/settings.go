package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// settingsBytesMax is the largest settings file that is edited.
const settingsBytesMax = 4 << 20

// mark ends every command that install writes. It is a shell comment, by which the command is recognised
// wherever the user moved it.
const mark = " # fairlead install claude"

// secondsMax is a hook's time limit, in seconds. The program lets a call through after its limit, so this is
// more than a hook's own waits (hookWait).
const secondsMax = 30

// group is one entry of an event in a settings file.
type group struct {
	Matcher *string   `json:"matcher,omitempty"`
	Hooks   []handler `json:"hooks"`
}

type handler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// member is an event with its groups; a slice keeps their order.
type events []member

type member struct {
	event string
	group group
}

func (e events) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, m := range e {
		out.WriteString([]string{",", "{"}[boolInt(i == 0)])
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		fmt.Fprintf(&out, "%q:", m.event)
		if err := enc.Encode([]group{m.group}); err != nil {
			return nil, fmt.Errorf("write %s: %w", m.event, err)
		}
	}
	out.WriteString("}")
	return out.Bytes(), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hooksOf returns all hooks that install writes.
func hooksOf(p Program) (all events) {
	every := "*"
	for _, name := range Names() {
		g := group{Hooks: []handler{{Type: "command", Command: p.command(name), Timeout: secondsMax}}}
		if name == PreToolUse || name == PostToolUse {
			g.Matcher = &every
		}
		all = append(all, member{name, g})
	}
	return all
}

// Program is the program that a hook starts.
type Program struct {
	Path string   // absolute
	Args []string // before the event's name: none for fairlead-hook, "hook" for fairlead
}

// command is the shell command for an event. Where a wrong answer would let a call through, every failure
// blocks (|| exit 2). If the program is missing, everything is blocked while this user has any open dispatch,
// because it cannot be known which calls belong to one; without one, nothing is blocked, because settings may
// be shared with people who do not have the program.
//
// The text is the same everywhere. The program runs equal texts once; otherwise each input would be recorded
// twice where hooks are installed for the project and for the user.
func (p Program) command(event string) string {
	file := quote(p.Path)
	run := file
	for _, arg := range p.Args {
		run += " " + arg
	}
	run += " " + event
	if event != PreToolUse && event != UserPromptSubmit {
		return "[ ! -x " + file + " ] || " + run + mark
	}
	words := "fairlead could not decide on this, so it is blocked. If " + p.Path + " is missing, put it back, or remove the hooks that end in" + mark + " from .claude/settings.json, in this project or in your home folder"
	return run + ` || { [ -x ` + file + ` ] || ls "${XDG_STATE_HOME:-$HOME/.local/state}"/fairlead/sessions/* >/dev/null 2>&1 || exit 0; echo ` + quote(words) + ` >&2; false; } || exit 2` + mark
}

// isCommandOfOurs reports whether a shell command is one that command returns, for any program.
func isCommandOfOurs(line string) bool {
	body, ours := strings.CutSuffix(line, mark)
	if !ours {
		return false
	}
	run, _, blocks := strings.Cut(body, " || { [ -x ")
	if !blocks {
		_, run, _ = strings.Cut(body, " || ")
	}
	at := strings.LastIndexByte(run, '\'')
	if at < 0 {
		return false
	}
	words := strings.Fields(run[at+1:])
	if len(words) == 0 {
		return false
	}
	event, args := words[len(words)-1], words[:len(words)-1]
	file := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(run[:at+1], "'"), "'"), `'\''`, "'")
	if !slices.Contains(Names(), event) || len(args) > 1 || len(args) == 1 && args[0] != "hook" {
		return false
	}
	return line == Program{Path: file, Args: args}.command(event)
}

// quote quotes a word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// AddHooks adds Fairlead's hooks to the text of a settings file; nil means that there is no file. Everything else
// stays, byte for byte. Adding twice has no further effect.
func AddHooks(text []byte, p Program) ([]byte, error) {
	wanted := hooksOf(p)
	if text == nil {
		return []byte(render("", struct {
			Hooks events `json:"hooks"`
		}{wanted}, "\n", "", "  ") + "\n"), nil
	}
	if ours, err := oursIn(text); err != nil {
		return nil, err
	} else if slices.EqualFunc(ours, wanted, sameMember) {
		return text, nil
	}
	text, err := RemoveHooks(text)
	if err != nil {
		return nil, err
	}
	if text == nil {
		return AddHooks(nil, p)
	}
	for i, m := range wanted {
		root, hooks, err := settingsOf(text)
		if err != nil {
			return nil, err
		}
		body := text[bom(text):]
		s := styleOf(body, root)
		switch list, at := hooks.member(m.event); {
		case hooks.kind == 0:
			body = put(body, root, "hooks", wanted[i:], s, 1)
			return append(slices.Clone(text[:bom(text)]), body...), nil
		case at < 0:
			body = put(body, hooks, m.event, []group{m.group}, s, 2)
		default:
			body = put(body, list, "", m.group, s, 3)
		}
		text = append(slices.Clone(text[:bom(text)]), body...)
	}
	return text, nil
}

func sameMember(a, b member) bool {
	return a.event == b.event && (a.group.Matcher == nil) == (b.group.Matcher == nil) &&
		(a.group.Matcher == nil || *a.group.Matcher == *b.group.Matcher) && slices.Equal(a.group.Hooks, b.group.Hooks)
}

// HasHooks reports whether a settings file has any of Fairlead's hooks.
func HasHooks(text []byte) (bool, error) {
	ours, err := oursIn(text)
	return len(ours) > 0, err
}

// otherHooks reports whether a settings file has hooks of Fairlead that call another program.
func otherHooks(text []byte, p Program) bool {
	found, err := oursIn(text)
	return err == nil && len(found) > 0 && !slices.EqualFunc(found, hooksOf(p), sameMember)
}

// silenced reports whether a settings file disables all hooks.
func silenced(text []byte) bool {
	var is struct {
		Off any `json:"disableAllHooks"`
	}
	return json.Unmarshal(text[bom(text):], &is) == nil && is.Off == true
}

func bom(text []byte) int {
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return 3
	}
	return 0
}

// settingsOf parses the hooks of a settings file. hooks.kind 0: there are none.
func settingsOf(text []byte) (root, hooks node, err error) {
	if len(text) > settingsBytesMax {
		return root, hooks, fmt.Errorf("it has more than %d bytes", settingsBytesMax)
	}
	body := text[bom(text):]
	if len(bytes.TrimSpace(body)) == 0 {
		return root, hooks, errors.New("it is empty, which is not JSON; delete it, or write {} into it")
	}
	if root, err = parse(body); err != nil {
		return root, hooks, err
	}
	if root.kind != '{' {
		return root, hooks, errors.New("it is not a JSON object")
	}
	if err := once(root, "the settings"); err != nil {
		return root, hooks, err
	}
	hooks, at := root.member("hooks")
	switch {
	case at < 0:
		return root, hooks, nil
	case hooks.kind != '{':
		return root, hooks, errors.New(`its "hooks" is not an object`)
	}
	if err := once(hooks, `"hooks"`); err != nil {
		return root, hooks, err
	}
	for _, event := range hooks.items {
		if event.value.kind != '[' {
			return root, hooks, fmt.Errorf("its hooks for %q are not a list", event.key)
		}
	}
	return root, hooks, nil
}

// once refuses an object with a duplicate key, because programs disagree about which one counts.
func once(n node, what string) error {
	seen := map[string]bool{}
	for _, it := range n.items {
		if seen[it.key] {
			return fmt.Errorf("%s has %q twice; keep one", what, it.key)
		}
		seen[it.key] = true
	}
	return nil
}

// ours reports whether install wrote a handler.
func ours(text []byte, n node) bool {
	var h struct {
		Command any `json:"command"`
	}
	if n.kind != '{' || json.Unmarshal(text[n.start:n.end], &h) != nil {
		return false
	}
	command, is := h.Command.(string)
	return is && strings.HasSuffix(command, mark)
}

// spot is a handler's position: in hooks, the event's list, the group, its own list.
type spot struct{ event, group, handler int }

// spots finds Fairlead's handlers.
func spots(body []byte, hooks node) (found []spot) {
	for e, event := range hooks.items {
		for g, grp := range event.value.items {
			list, at := grp.value.member("hooks")
			if grp.value.kind != '{' || at < 0 || list.kind != '[' {
				continue
			}
			for h, one := range list.items {
				if ours(body, one.value) {
					found = append(found, spot{e, g, h})
				}
			}
		}
	}
	return found
}

// oursIn returns Fairlead's hooks as they are in a file, with the user's changes.
func oursIn(text []byte) (all events, err error) {
	_, hooks, err := settingsOf(text)
	if err != nil {
		return nil, err
	}
	body := text[bom(text):]
	for _, at := range spots(body, hooks) {
		grp := hooks.items[at.event].value.items[at.group].value
		var g group
		if err := json.Unmarshal(body[grp.start:grp.end], &g); err != nil {
			g = group{} // the user changed it
		}
		all = append(all, member{hooks.items[at.event].key, g})
	}
	return all, nil
}

// RemoveHooks removes Fairlead's hooks from the text of a settings file, wherever they are now. nil means that
// nothing is left of a file that was created for them.
// It removes one handler after the other, and with the last of a list what install put around it.
func RemoveHooks(text []byte) ([]byte, error) {
	for {
		root, hooks, err := settingsOf(text)
		if err != nil {
			return nil, err
		}
		head, body := text[:bom(text)], text[bom(text):]
		found := spots(body, hooks)
		if len(found) == 0 {
			return text, nil
		}
		body, gone := removeAt(body, root, hooks, found[0])
		if gone {
			return nil, nil
		}
		text = append(slices.Clone(head), body...)
	}
}

// removeAt removes one handler. gone means that nothing is left of the whole file.
func removeAt(body []byte, root, hooks node, at spot) (left []byte, gone bool) {
	list := hooks.items[at.event].value
	grp := list.items[at.group].value
	handlers, _ := grp.member("hooks")
	if len(handlers.items) > 1 {
		left, _ = take(body, handlers, at.handler)
		return left, false
	}
	left, hollow := take(body, list, at.group)
	if !hollow {
		return left, false
	}
	left, hollow = take(body, hooks, at.event)
	if !hollow {
		return left, false
	}
	_, i := root.member("hooks")
	return take(body, root, i)
}

// jsonDepthMax bounds the nesting of a settings file.
const jsonDepthMax = 200

// node is one value of a JSON text, by its position.
type node struct {
	kind       byte // {, [, or anything else for a plain value
	start, end int
	items      []item // of an object or array, in order
}

// item is a member of an object, or an element of an array.
type item struct {
	key   string // of a member
	start int    // of the key, or of the element
	value node
}

func (n node) member(key string) (node, int) {
	for i, it := range n.items {
		if it.key == key {
			return it.value, i
		}
	}
	return node{}, -1
}

// parse reads a text that encoding/json found to be valid.
func parse(text []byte) (node, error) {
	if !json.Valid(text) {
		return node{}, invalid(text)
	}
	p := &parser{text: text}
	return p.value(0)
}

// invalid returns where a text is not JSON.
func invalid(text []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return errors.New("it is not JSON")
	}
	line := 1 + bytes.Count(text[:min(int(at.Offset), len(text))], []byte("\n"))
	return fmt.Errorf("it is not JSON, at line %d: %w (JSON has no comments and no comma after the last item)", line, at)
}

type parser struct {
	text []byte
	at   int
}

func (p *parser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// value reads one value of a valid text.
func (p *parser) value(depth int) (node, error) {
	if depth > jsonDepthMax {
		return node{}, fmt.Errorf("it is nested deeper than %d levels", jsonDepthMax)
	}
	p.blank()
	n := node{kind: p.text[p.at], start: p.at}
	switch n.kind {
	case '{', '[':
		p.at++
		for {
			p.blank()
			switch p.text[p.at] {
			case '}', ']':
				p.at++
				n.end = p.at
				return n, nil
			case ',':
				p.at++
				continue
			}
			it, err := p.item(n.kind == '{', depth)
			if err != nil {
				return node{}, err
			}
			n.items = append(n.items, it)
		}
	case '"':
		p.quoted()
	default:
		for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
			p.at++
		}
	}
	n.end = p.at
	return n, nil
}

func (p *parser) item(member bool, depth int) (it item, err error) {
	it.start = p.at
	if member {
		p.quoted()
		if err := json.Unmarshal(p.text[it.start:p.at], &it.key); err != nil {
			return it, fmt.Errorf("read a key: %w", err)
		}
		p.blank()
		p.at++ // the colon
	}
	it.value, err = p.value(depth + 1)
	return it, err
}

func (p *parser) quoted() {
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
}

// style is a text's layout.
type style struct {
	line string // line end
	unit string // one level of indentation
}

func styleOf(text []byte, root node) style {
	s := style{line: "\n", unit: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		s.line = "\r\n"
	}
	if len(root.items) > 0 {
		before := string(text[root.start+1 : root.items[0].start])
		if i := strings.LastIndexByte(before, '\n'); i >= 0 && len(before[i+1:]) <= 16 {
			s.unit = before[i+1:]
		}
	}
	return s
}

// put adds an item at the end of an object or array. key is empty for an element; deep is the indentation
// level if the container shows none.
//
// If the container was empty, an empty line follows the item, so that take can distinguish a container that
// existed before from one that put created.
func put(text []byte, into node, key string, value any, s style, deep int) []byte {
	indent := strings.Repeat(s.unit, deep)
	if n := len(into.items); n > 0 {
		last := into.items[n-1]
		from := into.start + 1
		if n > 1 {
			from = into.items[n-2].value.end
		}
		gap := strings.TrimLeft(string(text[from:last.start]), ", \t")
		if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
			indent = gap[i+1:]
			indent = indent[:len(indent)-len(strings.TrimLeft(indent, " \t"))] // a comma may be at the beginning of a line
			return splice(text, last.value.end, last.value.end, ","+s.line+indent+render(key, value, s.line, indent, s.unit))
		}
		return splice(text, last.value.end, last.value.end, ", "+render(key, value, "", "", "")) // everything on one line
	}
	return splice(text, into.start+1, into.start+1, s.line+indent+render(key, value, s.line, indent, s.unit)+s.line+s.line)
}

// render formats a value. An empty line end means one line.
func render(key string, value any, line, indent, unit string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if line != "" {
		enc.SetIndent(indent, unit)
	}
	if err := enc.Encode(value); err != nil {
		panic("claude: settings do not encode as JSON: " + err.Error())
	}
	text := strings.TrimSpace(out.String())
	if line != "" && line != "\n" {
		text = strings.ReplaceAll(text, "\n", line)
	}
	if key == "" {
		return text
	}
	return string(encode.JSON(key)) + ": " + text
}

// take removes an item. hollow means that a container which put created is empty now, so that it should be
// removed too.
func take(text []byte, from node, i int) (left []byte, hollow bool) {
	it := from.items[i]
	switch {
	case len(from.items) == 1:
		rest := text[it.value.end:]
		for _, line := range []string{"\r\n", "\n"} {
			if bytes.HasPrefix(rest, []byte(line+line)) { // the container was empty before
				return splice(text, from.start+1, it.value.end+2*len(line), ""), false
			}
		}
		return text, true
	case i > 0:
		return splice(text, from.items[i-1].value.end, it.value.end, ""), false
	default:
		return splice(text, it.start, from.items[1].start, ""), false
	}
}

func splice(text []byte, from, to int, with string) []byte {
	out := make([]byte, 0, len(text)+len(with))
	out = append(out, text[:from]...)
	out = append(out, with...)
	return append(out, text[to:]...)
}
