package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// toolCall is the state of one tool call. Programs send it in pieces (tool_call, updates, a
// question), and each piece may omit everything except the ID.
type toolCall struct {
	id        string
	title     string
	name      string          // the tool's own name, if the program sends it
	called    string          // its first title if that is a single word: some programs send the tool's name there
	kind      string          // read, edit, delete, move, search, execute, think, fetch, switch_mode, other
	status    string          // pending, in_progress, completed, failed
	input     fields          // rawInput if it is an object
	plain     json.RawMessage // rawInput if it is not an object
	explained string          // its first content that is text; some programs put the arguments there
	paths     []string
	diffs     []diff
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
	if c.input == nil && of.has("rawInput") {
		c.plain = of["rawInput"]
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
		if part.text("type") == "content" && c.explained == "" {
			c.explained = part.object("content").text("text")
		}
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
	if c.called == "" && identifier.MatchString(c.title) {
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
	if more.plain != nil {
		c.plain = more.plain
	}
	c.explained = cmp.Or(c.explained, more.explained)
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

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_:-]{0,99}$`)

// tool returns the tool's name in Fairlead's vocabulary or, if it is unknown, the program's own
// name.
func (c toolCall) tool() string {
	if word := ours(c.name); word != "" {
		return word
	}
	if word := c.byServer(); word != "" {
		return word
	}
	byKind, title := kindWords[c.kind], c.titleName()
	named := ours(title)
	if c.name != "" { // it has an unknown name; a title adds nothing
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

// byServer returns the name of an MCP tool that the program names as "NAME (SERVER MCP Server)" in
// the title; empty: it does not. Gemini CLI replaces this title by an argument called command, so a
// call with such an argument is not known by its title.
func (c toolCall) byServer() string {
	if c.name != "" || c.kind != "" && c.kind != "other" {
		return ""
	}
	found := serverTitle.FindStringSubmatch(c.title)
	if found == nil || c.input.has("command") || c.given().has("command") || c.given() == nil && strings.Contains(c.explained, "command") {
		return ""
	}
	return clip("mcp__"+found[2]+"__"+found[1], titleBytesMax)
}

var serverTitle = regexp.MustCompile(`^([A-Za-z0-9_.:-]+) \(([A-Za-z0-9_.:-]+) MCP Server\)$`)

// given returns the arguments that the call's text holds, as Gemini CLI sends those of MCP tools.
func (c toolCall) given() fields { return objectOf(json.RawMessage(c.explained)) }

// result describes what a call has printed and changed. parts is the content of the call at its end,
// and of is its last piece.
func result(tool string, parts []json.RawMessage, of fields) string {
	var all []string
	for _, raw := range parts {
		switch part := objectOf(raw); part.text("type") {
		case "diff":
			all = append(all, speech.Diff(part.text("path"), part.text("oldText"), part.text("newText")))
		case "terminal":
			all = append(all, "[terminal "+oneLine(part.text("terminalId"))+"]")
		case "content":
			if tool != "Edit" && tool != "Write" { // a sentence about the diff
				all = append(all, contentText(part["content"]))
			}
		}
	}
	if len(all) == 0 && tool == "Bash" {
		out, printed := of.object("rawOutput"), ""
		_ = json.Unmarshal(of["rawOutput"], &printed) // other types are not the output
		for _, name := range []string{"output", "formatted_output", "aggregated_output", "stdout", "stderr"} {
			printed = cmp.Or(printed, out.text(name))
		}
		all = append(all, printed)
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n")
}

// named reports whether the tool's name says what the call does, so that patterns can be compared
// with it.
func (c toolCall) named(tool string) bool {
	return c.name != "" || tool != c.kind && tool != "other"
}

// titleName returns a title that may be the tool's name. Many programs send the model's description
// as the title, so it is accepted only if it fits the tool kind that the program gives.
func (c toolCall) titleName() string {
	if identifier.MatchString(c.title) && (c.called == "" || ours(c.called) == "") {
		return c.title
	}
	return c.called
}

const titleBytesMax = 100 // limit for a tool's name; a longer one is a sentence

// arguments returns the tool's arguments, with the names that Claude Code uses as far as they are
// known. unsure lists arguments that were given under two names with
// different values: which one the program uses is unknown, so policies must not judge them.
func (c toolCall) arguments(tool string) (args fields, unsure []string) {
	args = make(fields, len(c.input)+2)
	if maps.Copy(args, c.input); c.byServer() != "" && len(c.input) == 0 {
		maps.Copy(args, c.given())
		if c.explained != "" && c.given() == nil && !isTeamTool(tool) { // the team's tools are judged where they are called
			unsure = append(unsure, "args")
		}
	}
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
		if command, sure, ok := c.command(args); ok {
			if args["command"] = encode.JSON(command); !sure {
				unsure = append(unsure, "command")
			}
			delete(args, "commands")
		}
	}
	c.fill(tool, args)
	return args, slices.Compact(unsure)
}

// command returns the command line of a call, which programs give as text, as a list of words, as a
// list of lines, or as the only argument. sure is false if the program names several different ones.
func (c toolCall) command(args fields) (command string, sure, ok bool) {
	command, ok = commandLine(args["command"])
	lines, one, listed := commandLines(args["commands"])
	switch {
	case !ok && listed:
		return lines, one, true
	case !ok:
		command, ok = commandLine(c.plain)
		return command, true, ok
	}
	return command, !listed || one && lines == command, true
}

// commandLines returns a list of command lines as one text. one is false if the list could also be
// the words of one command.
func commandLines(raw json.RawMessage) (text string, one, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return "", false, false
	}
	lines := make([]string, len(list))
	for i, raw := range list {
		if lines[i], ok = commandLine(commandIn(raw)); !ok {
			return "", false, false
		}
	}
	return strings.Join(lines, "\n"), len(list) == 1 || strings.ContainsAny(strings.TrimSpace(lines[0]), " \t"), true
}

// commandIn returns an entry of a list of commands: the command of an object, or the entry itself.
func commandIn(raw json.RawMessage) json.RawMessage {
	if of := objectOf(raw); of != nil {
		return of["command"]
	}
	return raw
}

// eventArguments returns the arguments for an event, and the names of those that policies must not
// judge. A title is taken as the command if there is no other. It may be shortened, and half a
// command is a different command, so only patterns that deny are compared with it. titled says that
// the program is known to give the whole command as the title.
func (c toolCall) eventArguments(tool, dir string, titled bool) (args json.RawMessage, cut []string) {
	of, cut := c.arguments(tool)
	if tool == "Bash" && of["command"] == nil && c.title != "" {
		if of["command"] = encode.JSON(strings.Trim(strings.TrimSpace(c.title), "`")); !titled || !c.explainsFolder(dir) {
			cut = append(cut, "command")
		}
	}
	if tool == "Bash" && c.inOtherFolder(dir) && !slices.Contains(cut, "command") {
		cut = append(cut, "command")
	}
	if !c.named(tool) {
		cut = append(cut, "tool")
	}
	if c.unreadPatch() {
		cut = append(cut, "paths")
	}
	return of.encoded(), cut
}

// explainsFolder reports whether the call's content says that its command runs in the session's folder,
// as Gemini CLI writes it.
func (c toolCall) explainsFolder(dir string) bool {
	at, found := strings.CutPrefix(c.explained, "[current working directory ")
	here := strings.HasPrefix(at, dir+"]") || strings.HasPrefix(at, resolved(dir)+"]")
	return found && here && !strings.HasSuffix(at, "[background]")
}

// encoded encodes the arguments as one object; empty if there are none.
func (f fields) encoded() json.RawMessage {
	if len(f) == 0 {
		return nil
	}
	return encode.JSON(f)
}

// fill adds information from other parts of the call: the only file it concerns, and the new
// content.
func (c toolCall) fill(tool string, args fields) {
	if !slices.Contains([]string{"Write", "Edit", "Read"}, tool) {
		return
	}
	if files := c.files(); args["file_path"] == nil && len(files) == 1 {
		args["file_path"] = encode.JSON(files[0])
	}
	if len(c.diffs) != 1 || !c.diffs[0].complete {
		return
	}
	put := func(name, value string) {
		if args[name] == nil {
			args[name] = encode.JSON(value)
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

// inOtherFolder reports whether a command runs in a folder other than the session's. Its words mean
// something else there, so policies must not judge it by them.
func (c toolCall) inOtherFolder(dir string) bool {
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
	if len(words) == 3 && slices.Contains([]string{"-c", "-lc"}, words[1]) &&
		slices.Contains([]string{"sh", "bash", "zsh"}, filepath.Base(words[0])) {
		return words[2], true
	}
	for i, word := range words {
		if word == "" || !plainWord.MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " "), true
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// what describes the call in one line for people.
func (c toolCall) what(tool, dir string) string {
	of, _ := c.arguments(tool)
	var text string
	switch tool {
	case "Bash":
		text = strings.ReplaceAll(strings.TrimSpace(of.text("command")), "\n", " ⏎ ")
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
	if text == "" && c.title != "" && c.explained != c.title && tool != "Bash" {
		text = strings.TrimSuffix(c.title+": "+c.explained, ": ") // such as the text of a question
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

// teamTools are the tools of Fairlead's MCP server. Programs join the server's name and the tool's
// name with a separator. Another server whose name begins like ours must not be mistaken for it.
var teamTools = []string{"turn_complete", "pass", "wait", "say", "report_step", "set_status", "ask_human", "who_is_here"}

// isTeamTool reports whether a tool, in Fairlead's vocabulary, is one of the team's.
func isTeamTool(tool string) bool {
	name, ok := strings.CutPrefix(tool, "mcp__"+adapter.ServerName+"__")
	return ok && slices.Contains(teamTools, name)
}

// toolWords maps the programs' tool names (lower case, without separators) to Claude Code's names,
// in which the patterns of fairlead.yaml are written.
var toolWords = map[string]string{
	"write": "Write", "writefile": "Write", "createfile": "Write", "writetextfile": "Write",
	"edit": "Edit", "editfile": "Edit", "replace": "Edit", "applypatch": "Edit", "patch": "Edit", "strreplace": "Edit",
	"multiedit": "Edit", "strreplacebasededittool": "Edit", "strreplaceeditor": "Edit", "notebookedit": "NotebookEdit",
	"bash": "Bash", "shell": "Bash", "runshellcommand": "Bash", "execcommand": "Bash", "localshell": "Bash", "runcommand": "Bash",
	"read": "Read", "readfile": "Read", "readmanyfiles": "Read", "view": "Read", "readtextfile": "Read",
	"glob": "Glob", "list": "Glob", "ls": "Glob", "listdirectory": "Glob", "findfiles": "Glob",
	"grep": "Grep", "grepsearch": "Grep", "searchfilecontent": "Grep", "ripgrep": "Grep",
	"webfetch": "WebFetch", "websearch": "WebSearch", "googlewebsearch": "WebSearch",
}

// kindWords maps a program's tool kinds to tools; it is used if the name is unknown. Deleting and
// moving count as file changes.
var kindWords = map[string]string{
	"execute": "Bash", "edit": "Edit", "delete": "Edit", "move": "Edit", "read": "Read", "fetch": "WebFetch",
}

// titleSays lists, for kinds that cover several tools, those that a title may name.
var titleSays = map[string][]string{
	"read": {"Glob", "Grep"}, "search": {"Glob", "Grep"}, "fetch": {"WebSearch"},
}

// ours returns a tool's name in Fairlead's vocabulary; empty if it is unknown.
func ours(name string) string {
	if strings.HasPrefix(name, "mcp__") && !strings.HasPrefix(name, "mcp__acp__") {
		return clip(oneLine(name), titleBytesMax)
	}
	name = strings.TrimPrefix(name, "mcp__acp__") // an adapter's replacements for the built-in tools
	for _, sep := range []string{"__", "_", "-", ":", "."} {
		if rest, ok := strings.CutPrefix(name, adapter.ServerName+sep); ok && slices.Contains(teamTools, rest) {
			return "mcp__" + adapter.ServerName + "__" + rest
		}
	}
	return toolWords[strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))]
}

// spellings are argument names with the same meaning, Claude Code's name first.
var spellings = map[string][][]string{
	"Write":    {fileSpellings, {"content", "contents", "file_text", "text"}},
	"Edit":     {fileSpellings, {"old_string", "oldString", "old_str", "oldText"}, {"new_string", "newString", "new_str", "newText"}},
	"Read":     {fileSpellings},
	"Bash":     {{"command", "cmd", "script"}},
	"Glob":     {{"path", "dir_path", "dirPath", "directory"}, {"pattern"}},
	"Grep":     {{"path", "dir_path", "dirPath", "directory"}, {"pattern", "regex", "query"}},
	"WebFetch": {{"url", "uri"}},
}

var fileSpellings = []string{"file_path", "filePath", "filepath", "absolute_path", "absolutePath", "path", "file"}
