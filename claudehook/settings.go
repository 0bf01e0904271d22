package claudehook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// settingsBytesMax is the largest settings file that is edited: a larger one is none.
const settingsBytesMax = 4 << 20

// mark ends every command that install writes. It is a comment of the shell; by it the command is
// found again, wherever the user has moved it and whatever stands around it.
const mark = " # fairlead install claude"

// secondsMax is how long a hook may take, in seconds. The program lets a call through that takes
// longer, so this is more than everything that a hook waits for itself (hookWait).
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

// member is an event with its groups, as an object's part: their order is ours.
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

// hooksOf are all that install writes.
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

// Program is what a hook starts.
type Program struct {
	Path string   // absolute
	Args []string // before the event's name: none for fairlead-hook, "hook" for fairlead
}

// command is what the program's shell runs for an event. Where a wrong answer would let something
// through, whatever goes wrong blocks (|| exit 2). Where the program is gone no session can be told
// from none, so that everything is blocked as long as any session is open for this user, and nothing
// when none is: settings may be shared with people who have no such program.
//
// The text is the same in every place. The program runs two of one text once, and else each input
// would be taken twice where hooks are installed for the project and for the user.
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
	words := "fairlead could not decide on this, so it is blocked. Where " + p.Path + " is gone, put it back, or take the hooks that end in" + mark + " out of .claude/settings.json, in this project or in your home folder"
	return run + ` || { [ -x ` + file + ` ] || ls "${XDG_STATE_HOME:-$HOME/.local/state}"/fairlead/sessions/* >/dev/null 2>&1 || exit 0; echo ` + quote(words) + ` >&2; false; } || exit 2` + mark
}

// isCommandOfOurs says whether a shell's command is one that command makes, for whichever program.
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

// quote makes one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// AddHooks puts our hooks into the text of a settings file. A nil text is a file that is not there.
// What stands in it stays, to the byte. Added twice is added once.
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
	text, err := removeFrom(text)
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

// RemoveHooks takes our hooks out of the text of a settings file, wherever they stand by now. nil
// says that nothing is left of a file that was made for them.
func RemoveHooks(text []byte) ([]byte, error) { return removeFrom(text) }

// HasHooks says whether a settings file has any of our hooks.
func HasHooks(text []byte) (bool, error) {
	ours, err := oursIn(text)
	return len(ours) > 0, err
}

// otherHooks says whether a settings file has hooks of ours that ask another program.
func otherHooks(text []byte, p Program) bool {
	found, err := oursIn(text)
	return err == nil && len(found) > 0 && !slices.EqualFunc(found, hooksOf(p), sameMember)
}

// silenced says whether a settings file switches all hooks off.
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

// settingsOf reads a settings file as far as hooks go. hooks.kind 0: it has none.
func settingsOf(text []byte) (root, hooks node, err error) {
	if len(text) > settingsBytesMax {
		return root, hooks, fmt.Errorf("it has more than %d bytes", settingsBytesMax)
	}
	body := text[bom(text):]
	if len(bytes.TrimSpace(body)) == 0 {
		return root, hooks, errors.New("it is empty, which is no JSON; delete it, or write {} into it")
	}
	if root, err = parse(body); err != nil {
		return root, hooks, err
	}
	if root.kind != '{' {
		return root, hooks, errors.New("it is no JSON object")
	}
	if err := once(root, "the settings"); err != nil {
		return root, hooks, err
	}
	hooks, at := root.member("hooks")
	switch {
	case at < 0:
		return root, hooks, nil
	case hooks.kind != '{':
		return root, hooks, errors.New(`its "hooks" is no object`)
	}
	if err := once(hooks, `"hooks"`); err != nil {
		return root, hooks, err
	}
	for _, event := range hooks.items {
		if event.value.kind != '[' {
			return root, hooks, fmt.Errorf("its hooks for %q are no list", event.key)
		}
	}
	return root, hooks, nil
}

// once refuses an object with a key twice: which of the two counts, programs disagree about.
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

// ours says whether a handler is one that install wrote.
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

// spot is where a handler stands: in hooks, the event's list, the group, its own list.
type spot struct{ event, group, handler int }

// spots finds our handlers.
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

// oursIn are our hooks as they stand in a file, with what the user made of them.
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
			g = group{} // changed by somebody: not what install wrote
		}
		all = append(all, member{hooks.items[at.event].key, g})
	}
	return all, nil
}

// removeFrom takes one handler after the other, and with the last of a list what install put around it.
func removeFrom(text []byte) ([]byte, error) {
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

// removeAt takes one handler. gone: nothing is left of the whole file.
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
