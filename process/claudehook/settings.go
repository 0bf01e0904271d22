package claudehook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
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

// events are the groups that install writes, one for each event; a slice keeps their order.
type events []member

type member struct {
	event string
	group group
}

func (e events) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, m := range e {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:%s", m.event, encode.JSON([]group{m.group}))
	}
	return append(out, '}'), nil
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
	words := "fairlead could not decide on this, so it is blocked. If " + p.Path +
		" is missing, put it back, or remove the hooks that end in" + mark +
		" from .claude/settings.json, in this project or in your home folder"
	return run + ` || { [ -x ` + file +
		` ] || ls "${XDG_STATE_HOME:-$HOME/.local/state}"/fairlead/sessions/* >/dev/null 2>&1 || exit 0; echo ` + quote(words) +
		` >&2; false; } || exit 2` + mark
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
		return []byte(render(struct {
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
	s, err := settingsOf(text)
	if err != nil {
		return nil, err
	}
	hooks := s.hooks()
	if hooks == nil {
		s.put(&s.root, "hooks", wanted, 1)
		return s.pack(), nil
	}
	for _, m := range wanted {
		if list := find(*hooks.value, m.event); list != nil {
			s.put(list.value, "", m.group, 3)
		} else {
			s.put(hooks.value, m.event, []group{m.group}, 2)
		}
	}
	return s.pack(), nil
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

// oursIn returns Fairlead's hooks as they are in a file, with the user's changes.
func oursIn(text []byte) (events, error) {
	s, err := settingsOf(text)
	return s.ours(), err
}

// RemoveHooks removes Fairlead's hooks from the text of a settings file, wherever they are now. nil means that
// nothing is left of a file that was created for them.
func RemoveHooks(text []byte) ([]byte, error) {
	s, err := settingsOf(text)
	if err != nil {
		return nil, err
	}
	if s.remove() {
		return nil, nil
	}
	return s.pack(), nil
}

// silenced reports whether a settings file disables all hooks.
func silenced(text []byte) bool {
	var is struct {
		Off any `json:"disableAllHooks"`
	}
	return json.Unmarshal(text[bom(text):], &is) == nil && is.Off == true
}

// bom is the length of the byte order mark before a text.
func bom(text []byte) int { return len(text) - len(file.Unmarked(text)) }

// settings is the text of a settings file as a tree that keeps every byte.
type settings struct {
	mark []byte // the byte order mark
	root hujson.Value
	line string // line end
	unit string // one level of indentation
}

// settingsOf parses a settings file. The program reads no comments, so they are refused.
func settingsOf(text []byte) (s settings, err error) {
	if len(text) > settingsBytesMax {
		return s, fmt.Errorf("it has more than %d bytes", settingsBytesMax)
	}
	body := text[bom(text):]
	if len(bytes.TrimSpace(body)) == 0 {
		return s, errors.New("it is empty, which is not JSON; delete it, or write {} into it")
	}
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		return s, invalid(body, err)
	}
	s = settings{mark: text[:bom(text)], line: "\n", unit: "  "}
	if s.root, err = hujson.Parse(body); err != nil {
		return s, fmt.Errorf("read it: %w", err)
	}
	if s.root.Value.Kind() != '{' {
		return s, errors.New("it is not a JSON object")
	}
	if err := once(s.root, "the settings"); err != nil {
		return s, err
	}
	if bytes.Contains(body, []byte("\r\n")) {
		s.line = "\r\n"
	}
	if all := entries(s.root); len(all) > 0 {
		before := string(*all[0].before)
		if i := strings.LastIndexByte(before, '\n'); i >= 0 && len(before[i+1:]) <= 16 {
			s.unit = before[i+1:]
		}
	}
	hooks := s.hooks()
	switch {
	case hooks == nil:
		return s, nil
	case hooks.value.Value.Kind() != '{':
		return s, errors.New(`its "hooks" is not an object`)
	}
	if err := once(*hooks.value, `"hooks"`); err != nil {
		return s, err
	}
	for _, event := range entries(*hooks.value) {
		if event.value.Value.Kind() != '[' {
			return s, fmt.Errorf("its hooks for %q are not a list", event.key)
		}
	}
	return s, nil
}

// invalid says where a text is not JSON.
func invalid(text []byte, err error) error {
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return errors.New("it is not JSON")
	}
	line := 1 + bytes.Count(text[:min(int(at.Offset), len(text))], []byte("\n"))
	return fmt.Errorf("it is not JSON, at line %d: %w (JSON has no comments and no comma after the last item)", line, at)
}

// once refuses an object with a duplicate key, because programs disagree about which one counts.
func once(object hujson.Value, what string) error {
	seen := map[string]bool{}
	for _, it := range entries(object) {
		if seen[it.key] {
			return fmt.Errorf("%s has %q twice; keep one", what, it.key)
		}
		seen[it.key] = true
	}
	return nil
}

func (s *settings) pack() []byte { return append(slices.Clone(s.mark), s.root.Pack()...) }

// hooks is the member with all hooks, or nil.
func (s *settings) hooks() *entry { return find(s.root, "hooks") }

// ours returns Fairlead's hooks with the groups around them.
func (s *settings) ours() (all events) {
	hooks := s.hooks()
	if hooks == nil {
		return nil
	}
	for _, event := range entries(*hooks.value) {
		for _, g := range entries(*event.value) {
			for _, h := range handlers(g) {
				if !ours(h) {
					continue
				}
				var is group
				if err := json.Unmarshal(g.value.Pack(), &is); err != nil {
					is = group{} // the user changed it
				}
				all = append(all, member{event.key, is})
			}
		}
	}
	return all
}

// remove removes Fairlead's hooks, and with the last one of a list what put made around it. gone means that nothing is left of
// the whole file.
func (s *settings) remove() (gone bool) {
	hooks := s.hooks()
	if hooks == nil {
		return false
	}
	for e, event := range slices.Backward(entries(*hooks.value)) {
		for g, grp := range slices.Backward(entries(*event.value)) {
			all := handlers(grp)
			left := len(all)
			for h, one := range slices.Backward(all) {
				switch {
				case !ours(one):
				case left > 1:
					take(find(*grp.value, "hooks").value, h)
					left--
				case take(event.value, g) && take(hooks.value, e):
					gone = take(&s.root, find(s.root, "hooks").at)
				}
			}
		}
	}
	return gone
}

// handlers are the handlers of a group, if it is one.
func handlers(group entry) []entry {
	if list := find(*group.value, "hooks"); list != nil && list.value.Value.Kind() == '[' {
		return entries(*list.value)
	}
	return nil
}

// ours reports whether install wrote a handler.
func ours(handler entry) bool {
	var h struct {
		Command any `json:"command"`
	}
	if json.Unmarshal(handler.value.Pack(), &h) != nil {
		return false
	}
	command, is := h.Command.(string)
	return is && strings.HasSuffix(command, mark)
}

// entry is a member of an object or an element of an array.
type entry struct {
	at     int
	key    string        // of a member
	before *hujson.Extra // what stands between the comma and it
	value  *hujson.Value
}

func entries(of hujson.Value) (all []entry) {
	switch of := of.Value.(type) {
	case *hujson.Object:
		for i := range of.Members {
			m := &of.Members[i]
			all = append(all, entry{i, m.Name.Value.(hujson.Literal).String(), &m.Name.BeforeExtra, &m.Value})
		}
	case *hujson.Array:
		for i := range of.Elements {
			e := &of.Elements[i]
			all = append(all, entry{i, "", &e.BeforeExtra, e})
		}
	}
	return all
}

// find returns the first member with a key, or nil.
func find(object hujson.Value, key string) *entry {
	for _, it := range entries(object) {
		if it.key == key {
			return &it
		}
	}
	return nil
}

// end is what stands before the closing bracket of an object or array.
func end(of *hujson.Value) *hujson.Extra {
	if object, is := of.Value.(*hujson.Object); is {
		return &object.AfterExtra
	}
	return &of.Value.(*hujson.Array).AfterExtra
}

// put adds an item at the end of an object or array. key is empty for an element; deep is the indentation
// level if the container shows none.
//
// If the container was empty, an empty line follows the item, so that take can distinguish a container that
// existed before from one that put created.
func (s *settings) put(into *hujson.Value, key string, value any, deep int) {
	line, indent, unit := s.line, strings.Repeat(s.unit, deep), s.unit
	all := entries(*into)
	if n := len(all); n > 0 {
		gap := string(*all[n-1].before)
		if n > 1 {
			gap = string(all[n-2].value.AfterExtra) + "," + gap
		}
		if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
			indent = gap[i+1:]
			indent = indent[:len(indent)-len(strings.TrimLeft(indent, " \t"))] // a comma may be at the beginning of a line
		} else {
			line, indent, unit = "", "", "" // everything on one line
		}
	} else {
		*end(into) = hujson.Extra(line + line + string(*end(into)))
	}
	it, err := hujson.Parse([]byte(render(value, line, indent, unit)))
	if err != nil {
		panic("claude: settings do not encode as JSON: " + err.Error())
	}
	before := hujson.Extra(cmp.Or(line+indent, " "))
	switch into := into.Value.(type) {
	case *hujson.Object:
		it.BeforeExtra = hujson.Extra(" ")
		into.Members = append(into.Members,
			hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(key)}, Value: it})
	case *hujson.Array:
		it.BeforeExtra = before
		into.Elements = append(into.Elements, it)
	}
}

// render formats a value; on one line where there is no indentation.
func render(value any, line, indent, unit string) string {
	if indent+unit == "" {
		return string(encode.JSON(value))
	}
	var out bytes.Buffer
	if err := json.Indent(&out, encode.JSON(value), indent, unit); err != nil {
		panic("claude: settings do not encode as JSON: " + err.Error())
	}
	return strings.ReplaceAll(out.String(), "\n", line)
}

// take removes an item. hollow means that a container which put created would be empty then, so that it should be
// removed instead.
func take(from *hujson.Value, i int) (hollow bool) {
	switch all := entries(*from); {
	case len(all) == 1:
		rest := *end(from)
		for _, line := range []string{"\r\n", "\n"} {
			if left, was := bytes.CutPrefix(rest, []byte(line+line)); was { // the container was empty before
				*end(from) = left
				drop(from, i)
				return false
			}
		}
		return true
	case i > 0:
		all[i-1].value.AfterExtra = all[i].value.AfterExtra
	default:
		*all[1].before = *all[0].before
	}
	drop(from, i)
	return false
}

func drop(from *hujson.Value, i int) {
	switch from := from.Value.(type) {
	case *hujson.Object:
		from.Members = slices.Delete(from.Members, i, i+1)
	case *hujson.Array:
		from.Elements = slices.Delete(from.Elements, i, i+1)
	}
}
