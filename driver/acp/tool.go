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

// toolCall is the state of one tool call. Programs send it in pieces (tool_call, updates, a
// question), and each piece may omit everything except the ID.
type toolCall struct {
	id     string
	title  string
	name   string // the tool's own name, if the program sends it
	called string // its first title if that is a single word: some programs send the tool's name there
	kind   string // read, edit, delete, move, search, execute, think, fetch, switch_mode, other
	status string // pending, in_progress, completed, failed
	input  fields // rawInput if it is an object
	paths  []string
	diffs  []diff
}

// diff is a file change in a call. The old content is missing if the file is new.
type diff struct {
	path     string
	old      string
	existed  bool
	now      string
	complete bool // the new content was given
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

// with merges another piece into a call. It keeps a first title that may be the tool's name.
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

const callPathsMax = 257 // limit for one call; one more than an event holds, so that the event is marked as incomplete

var identifier = adapter.Words(`^[A-Za-z][A-Za-z0-9_:-]{0,99}$`)

// tool returns the tool's name in Fairlead's vocabulary or, if it is unknown, the program's own
// name. server is the name of Fairlead's MCP server.
func (c toolCall) tool(server string) string {
	if word := ours(c.name, server); word != "" {
		return word
	}
	byKind, title := kindWords[c.kind], c.titleName()
	named := ours(title, server)
	if c.name != "" { // it has a name that is unknown to us; a title adds nothing
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

// titleName returns a title that may be the tool's name. Many programs send the model's description
// as the title, so it is accepted only if it fits the tool kind that the program gives.
func (c toolCall) titleName() string {
	if identifier().MatchString(c.title) && (c.called == "" || ours(c.called, serverName) == "") {
		return c.title
	}
	return c.called
}

const titleBytesMax = 100 // limit for a tool's name; a longer one is a sentence

// arguments returns the tool's arguments, with the names that Claude Code uses as far as they are
// known. Commands and paths are never taken from titles, because titles are shortened, and half a
// command is a different command. unsure lists arguments that were given under two names with
// different values: which one the program uses is unknown, so policies must not judge them.
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
			case string(first) != string(value) && same[0] != "file_path": // all files are listed in the paths anyway
				unsure = append(unsure, same[0])
			}
		}
	}
	if c.isPatch() { // other fields may hold several names in one text
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

// told returns the arguments for an event, and the names of those that policies must not judge.
func (c toolCall) told(tool, dir string) (args json.RawMessage, cut []string) {
	of, cut := c.arguments(tool)
	if tool == "Bash" && c.elsewhere(dir) && !slices.Contains(cut, "command") {
		cut = append(cut, "command")
	}
	return of.encoded(), cut
}

// encoded encodes the arguments as one object; empty if there are none.
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

// fill adds information from other parts of the call: the only file it concerns, and the new
// content.
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

// files returns the files that a call names, as the program spells them.
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
	if folder := c.input.text("parentDir"); len(all) > 1 { // the folder is named separately, for files in another folder
		all = slices.DeleteFunc(all, func(path string) bool { return path == folder })
	}
	return all
}

// absolute returns a call's files as absolute paths. It returns none for commands: programs send the
// folder in which the command runs, and the files it touches are unknown.
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

// elsewhere reports whether a command runs in a folder other than the session's. Its words mean
// something else there, so policies must not judge it by them.
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

// resolved resolves symbolic links in a folder, as far as the path exists.
func resolved(dir string) string {
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		return to
	}
	return filepath.Clean(dir)
}

// commandLine returns a command as one line for a shell, also if it is sent as a list of words.
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

// what describes the call in one line for people.
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

const whatBytesMax = 400 // limit of the line; the full text is in the arguments

// whole reports whether the call's name and arguments are known, so that it can be reported.
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
