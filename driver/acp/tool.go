package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// toolCall is what a program says of one call of a tool. It says it in pieces (tool_call, then
// updates, then a question), each of which may lack anything but the id.
type toolCall struct {
	id     string
	title  string
	name   string // the tool's own name, where the program gives one
	called string // its first title, where that is one word: some programs begin with the tool's name
	kind   string // read, edit, delete, move, search, execute, think, fetch, switch_mode, other
	status string // pending, in_progress, completed, failed
	input  fields // rawInput, where it is an object
	paths  []string
	diffs  []diff
}

// diff is a change that a call is about. What was there before may be missing: the file is new.
type diff struct {
	path     string
	old      string
	existed  bool
	now      string
	complete bool // now was given
}

func readToolCall(of fields) toolCall {
	c := toolCall{
		id: of.text("toolCallId"), title: of.text("title"), kind: of.text("kind"), status: of.text("status"),
		input: of.object("rawInput"),
	}
	meta := of.object("_meta")
	c.name = cmp.Or(of.text("name"), meta.text("toolName"), meta.object("claudeCode").text("toolName"))
	for _, raw := range of.list("locations") {
		if path := objectOf(raw).text("path"); path != "" {
			c.paths = append(c.paths, path)
		}
	}
	for _, raw := range of.list("content") {
		part := objectOf(raw)
		if path := part.text("path"); part.text("type") == "diff" && path != "" {
			_, existed := part["oldText"]
			_, complete := part["newText"]
			existed = existed && !isNull(part["oldText"]) && part.text("oldText") != ""
			c.diffs = append(c.diffs, diff{path, part.text("oldText"), existed, part.text("newText"), complete})
		}
	}
	return c
}

// with is a call after one more piece of it came. A first title that may name the tool is kept.
func (c toolCall) with(more toolCall) toolCall {
	c.id, c.kind, c.status = cmp.Or(c.id, more.id), cmp.Or(more.kind, c.kind), cmp.Or(more.status, c.status)
	c.name = cmp.Or(more.name, c.name)
	if c.called == "" && identifier().MatchString(c.title) {
		c.called = c.title
	}
	c.title = cmp.Or(more.title, c.title)
	if len(more.input) > 0 {
		input := maps.Clone(c.input)
		if input == nil {
			input = fields{}
		}
		maps.Copy(input, more.input)
		c.input = input
	}
	if len(more.diffs) > 0 {
		c.diffs = more.diffs
	}
	for _, path := range more.paths {
		if !slices.Contains(c.paths, path) && len(c.paths) < callPathsMax {
			c.paths = append(slices.Clip(c.paths), path)
		}
	}
	return c
}

const callPathsMax = 257 // of one call; one more than an event takes, so that it says that some are missing

var identifier = adapter.Words(`^[A-Za-z][A-Za-z0-9_:-]{0,99}$`)

// tool is the call's tool in our words, or, where none fits, in the program's own. server is
// what our own MCP server is called.
func (c toolCall) tool(server string) string {
	if word := ours(c.name, server); word != "" {
		return word
	}
	byKind, title := kindWords[c.kind], c.titleName()
	named := ours(title, server)
	if c.name != "" { // it has one, and that is not ours: a title says no more
		title, named = "", ""
	}
	if byKind == "Edit" && (named == "Write" || len(c.diffs) == 1 && !c.diffs[0].existed && c.diffs[0].complete && c.kind == "edit") {
		byKind = "Write"
	}
	if named != "" && (byKind == named || slices.Contains(titleSays[c.kind], named) || c.kind == "" || c.kind == "other") {
		return named
	}
	own := clip(oneLine(c.name), titleBytesMax)
	switch {
	case own != "":
	case c.kind == "search":
		own = "Grep"
	case named == "":
		own = title
	}
	return cmp.Or(byKind, own, clip(oneLine(c.kind), titleBytesMax), "other")
}

// titleName is a title that may be the tool's name. Many programs put there what the model says of the
// call, so it is believed only where it fits the class that the program gives.
func (c toolCall) titleName() string {
	if identifier().MatchString(c.title) && (c.called == "" || ours(c.called, serverName) == "") {
		return c.title
	}
	return c.called
}

const titleBytesMax = 100 // of a tool's name; a longer one is a sentence

// arguments are what the tool is called with, spelled as Claude Code spells it as far as that is known.
// A command or a path is taken from no title: titles are shortened, and half a command is another one.
// unsure names those that were given in two spellings with two values: which of them the program
// goes by is not known, and nobody is to judge by one of them.
func (c toolCall) arguments(tool string) (args fields, unsure []string) {
	args = make(fields, len(c.input)+2)
	maps.Copy(args, c.input)
	for _, same := range spellings[tool] {
		var first json.RawMessage
		for _, name := range same {
			value, ok := c.input[name]
			switch {
			case !ok || isNull(value):
			case first == nil:
				first = value
				delete(args, name)
				args[same[0]] = value
			case string(first) != string(value) && same[0] != "file_path": // all files are among the paths
				unsure = append(unsure, same[0])
			}
		}
	}
	if c.isPatch() { // what it says besides may be several names in one text
		maps.DeleteFunc(args, func(name string, _ json.RawMessage) bool { return slices.Contains(fileSpellings, name) })
	}
	if tool == "Bash" {
		if command, ok := commandLine(args["command"]); ok {
			args["command"] = quoted(command)
		}
	}
	c.fill(tool, args)
	return args, slices.Compact(unsure)
}

// told is the arguments as an event has them, and which of them nobody may judge by.
func (c toolCall) told(tool, dir string) (args json.RawMessage, cut []string) {
	of, cut := c.arguments(tool)
	if tool == "Bash" && c.elsewhere(dir) && !slices.Contains(cut, "command") {
		cut = append(cut, "command")
	}
	return of.encoded(), cut
}

// encoded is the arguments as one object; none where there are none.
func (f fields) encoded() json.RawMessage {
	if len(f) == 0 {
		return nil
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic("acp: arguments that are no JSON: " + err.Error())
	}
	return b
}

// fill adds what a call says elsewhere: the one file it is about, and what becomes of it.
func (c toolCall) fill(tool string, args fields) {
	if !slices.Contains([]string{"Write", "Edit", "Read"}, tool) {
		return
	}
	if files := c.files(); args["file_path"] == nil && len(files) == 1 {
		args["file_path"] = quoted(files[0])
	}
	if len(c.diffs) != 1 || !c.diffs[0].complete {
		return
	}
	put := func(name, value string) {
		if args[name] == nil {
			args[name] = quoted(value)
		}
	}
	switch d := c.diffs[0]; tool {
	case "Write":
		put("content", d.now)
	case "Edit":
		put("old_string", d.old)
		put("new_string", d.now)
	}
}

// files are the files that a call says it is about, as the program spells them.
func (c toolCall) files() []string {
	var all []string
	add := func(path string) {
		if path != "" && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	for _, name := range fileSpellings {
		if path := c.input.text(name); !c.isPatch() || filepath.IsAbs(path) {
			add(path)
		}
	}
	for _, d := range c.diffs {
		add(d.path)
	}
	for _, path := range c.patched() {
		add(path)
	}
	for _, path := range c.paths {
		add(path)
	}
	slices.Sort(all)
	if folder := c.input.text("parentDir"); len(all) > 1 { // said besides, of a file that lies elsewhere
		all = slices.DeleteFunc(all, func(path string) bool { return path == folder })
	}
	return all
}

// absolute are a call's files, absolute. Of a command they are left away: programs give the folder
// that it runs in, and which files it touches nobody knows.
func (c toolCall) absolute(tool, dir string) []string {
	if tool == "Bash" {
		return nil
	}
	var all []string
	for _, path := range c.files() {
		if path = strings.TrimPrefix(path, "file://"); !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if path = filepath.Clean(path); !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// elsewhere says whether a command runs in another folder than the session's: what its words mean is
// another thing then, and nobody is to judge it by them.
func (c toolCall) elsewhere(dir string) bool {
	for _, name := range []string{"cwd", "workdir", "directory", "dir", "working_directory"} {
		at := c.input.text(name)
		if at == "" {
			continue
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		if filepath.Clean(at) != filepath.Clean(dir) && resolved(at) != resolved(dir) {
			return true
		}
	}
	return false
}

// resolved is a folder without links, as far as it is there.
func resolved(dir string) string {
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		return to
	}
	return filepath.Clean(dir)
}

// commandLine is a command as one line for a shell, also where it comes as a list of words.
func commandLine(raw json.RawMessage) (string, bool) {
	var line string
	if json.Unmarshal(raw, &line) == nil && len(raw) > 0 {
		return line, true
	}
	var words []string
	if json.Unmarshal(raw, &words) != nil || len(words) == 0 {
		return "", false
	}
	if len(words) == 3 && slices.Contains([]string{"-c", "-lc"}, words[1]) && slices.Contains([]string{"sh", "bash", "zsh"}, filepath.Base(words[0])) {
		return words[2], true
	}
	for i, word := range words {
		if word == "" || !plainWord().MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " "), true
}

var plainWord = adapter.Words(`^[A-Za-z0-9_@%+=:,./-]+$`)

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic("acp: a text that is no JSON: " + err.Error())
	}
	return b
}

// what is the call in one line for people.
func (c toolCall) what(tool, dir string) string {
	of, _ := c.arguments(tool)
	var text string
	switch tool {
	case "Bash":
		text = of.text("command")
	case "Write", "Edit", "Read":
		if files := c.absolute(tool, dir); len(files) > 0 {
			for i, file := range files {
				if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
					files[i] = rel
				}
			}
			text = strings.Join(files, ", ")
		}
	case "WebFetch":
		text = of.text("url")
	case "WebSearch":
		text = of.text("query")
	case "Glob", "Grep":
		text = of.text("pattern")
	}
	return clip(oneLine(cmp.Or(text, c.title, tool)), whatBytesMax)
}

const whatBytesMax = 400 // a line for people; the whole of it is among the arguments

// whole says whether what matters about a call is known, so that it can be told.
func (c toolCall) whole(tool string) bool {
	of, _ := c.arguments(tool)
	switch tool {
	case "Bash":
		return of["command"] != nil
	case "Write", "Edit", "Read":
		return of["file_path"] != nil || len(c.files()) > 0
	}
	return len(of) > 0
}
