package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Pattern is one line of a rulebook: a tool, or a tool and what it is called with.
//
//	Read                      every call of that tool
//	Write(src/**)             files below the workspace; absolute or ~/… for others
//	Read(*.md)                a name without a slash: in every folder of the workspace
//	Bash(git status*)         command lines; * is any text
//	WebFetch(domain:*.dev)    one host, or those below one
//	mcp__docs__*              tools by their names
//
// Write, Edit, MultiEdit and NotebookEdit stand for each other: programs do not agree which of
// them a change is. Read stands for every tool that reads files, Grep, Glob and LS for themselves.
type Pattern struct {
	text string
	tool string // may hold *
	arg  string // what stands in brackets, made ready
	kind argKind
}

// argKind says how what stands in brackets is read.
type argKind string

const (
	anyCall  argKind = ""        // no brackets
	shellArg argKind = "command" // Bash
	fileArg  argKind = "path"    // a glob
	hostArg  argKind = "host"    // WebFetch
)

const patternBytesMax = 4096 // as long as a path may be

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// ParsePattern reads one pattern of an agent's permissions. The error says in one line what is
// wrong with it and what would be right, and begins so that the pattern's name may stand before it.
func ParsePattern(text string) (Pattern, error) {
	shown := fmt.Sprintf("%q", cut(text))
	switch {
	case text == "":
		return Pattern{}, fmt.Errorf("is empty; name a tool, such as Read or Bash(git status*)")
	case len(text) > patternBytesMax:
		return Pattern{}, fmt.Errorf("is longer than %d bytes; no command and no path is", patternBytesMax)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return Pattern{}, fmt.Errorf("%s holds control characters; write it on one line", shown)
	}
	tool, arg, bracketed := strings.Cut(text, "(")
	if tool == "" || strings.ContainsFunc(tool, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:/*", r)
	}) {
		return Pattern{}, fmt.Errorf("%s names no tool: letters, digits, _ - . : / and * for any text, then (pattern) where the tool takes one", shown)
	}
	p := Pattern{text: text, tool: tool}
	if !bracketed {
		return p, nil
	}
	var closed bool
	if p.arg, closed = strings.CutSuffix(arg, ")"); !closed {
		return Pattern{}, fmt.Errorf("%s has no closing bracket at its end; write TOOL or TOOL(pattern)", shown)
	}
	if err := p.bracket(shown); err != nil {
		return Pattern{}, err
	}
	return p, nil
}

// bracket makes what stands in brackets ready.
func (p *Pattern) bracket(shown string) error {
	if strings.TrimSpace(p.arg) == "" {
		return fmt.Errorf("%s names nothing between the brackets; write %s alone for every call of it", shown, cut(p.tool))
	}
	switch {
	case p.tool == "Bash":
		p.kind = shellArg
		if head, ok := strings.CutSuffix(p.arg, ":*"); ok { // how other programs spell "these words, and any after them"
			p.arg = head + " *"
		}
	case changesFiles(p.tool), readsFiles(p.tool):
		return p.fileBracket(shown)
	case p.tool == "WebFetch":
		p.kind = hostArg
		host, ok := strings.CutPrefix(p.arg, "domain:")
		bare := strings.TrimPrefix(host, "*.")
		if !ok || !isHost(bare) || strings.Contains(bare, "*") {
			return fmt.Errorf("%s names no host; write WebFetch(domain:example.com), or domain:*.example.com for those below it", shown)
		}
		p.arg = strings.ToLower(host)
	default:
		return fmt.Errorf("%s: %s takes no brackets; only Bash, WebFetch, and the tools that read and write files do", shown, cut(p.tool))
	}
	return nil
}

func (p *Pattern) fileBracket(shown string) error {
	p.kind = fileArg
	p.arg = strings.TrimPrefix(p.arg, "./")
	if strings.HasSuffix(p.arg, "/") {
		p.arg += "**"
	}
	for component := range strings.SplitSeq(p.arg, "/") {
		if component == ".." {
			return fmt.Errorf("%s leads out by ..; name what is outside of the workspace absolutely, or by ~/", shown)
		}
	}
	if p.arg == "" || !doublestar.ValidatePattern(p.arg) {
		return fmt.Errorf("%s is no glob; a [ or { that is not closed is written \\[ or \\{", shown)
	}
	return nil
}

// changesFiles and readsFiles know the families of tools that stand for each other.
func changesFiles(tool string) bool { return has("Write Edit MultiEdit NotebookEdit", tool) }
func readsFiles(tool string) bool   { return has("Read NotebookRead LS Glob Grep", tool) }

// names says whether the pattern speaks of a tool.
func (p Pattern) names(tool string) bool {
	switch {
	case tool == "":
		return p.tool == "*"
	case changesFiles(p.tool) && changesFiles(tool), p.tool == "Read" && readsFiles(tool):
		return true
	}
	return wild(p.tool, tool)
}

// wild says whether a text is what a pattern spells in which * stands for any text and nothing
// else means anything.
func wild(pattern, text string) bool {
	star, from := -1, 0
	i, j := 0, 0
	for j < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
		case i < len(pattern) && pattern[i] == text[j]:
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// The answers of a rulebook. The third one is empty: nothing covers the call, or it could not be
// read to its last word; ask a person.
const (
	answerAllow = "allow"
	answerDeny  = "deny"
)

// Book is all that an agent's permissions say: what it may do at all, and what its program is
// answered when it asks.
type Book struct {
	Bounds      Rules // Within says how they are read; the zero value: none
	Allow, Deny []Pattern
}

// Answer says what becomes of a call by an agent's permissions, and by which line of them:
// "allow" and `allow Read`, "deny" and `deny Bash(rm *)`, or nothing. It is asked for calls of a
// model, whatever where says. X10 comes before all else, then what is out of bounds, a denial before
// an allowance, and what could not be read to the last word is never allowed by a pattern. doubt, where
// nothing is said, is why nobody but a person can tell whether the call keeps to the bounds.
//
// paths are files that the question names besides the call's own arguments, absolute; a call
// that changes files and names none is for a person. Where.Repo is the agent's workspace, from
// which relative patterns start.
func (b Book) Answer(call Call, paths []string, where Where, disk Disk) (verdict, rule, doubt string) {
	where.Model = true
	r := newReading(call, paths, where, disk)
	if why := r.protected(); why != "" {
		return answerDeny, rowAll + ": " + why, ""
	}
	var bound Bound
	if !b.Bounds.silent() {
		bound = r.within(b.Bounds)
	}
	if bound.Denied != "" {
		return answerDeny, "bounds: " + bound.Denied, ""
	}
	for _, p := range b.Deny {
		if r.denies(p) {
			return answerDeny, answerDeny + " " + p.text, ""
		}
	}
	if bound.Doubt != "" {
		return "", "", bound.Doubt
	}
	allow := b.Allow
	if bound.Unclear { // whoever wrote down a tool alone did not think of this program
		allow = slices.DeleteFunc(slices.Clone(allow), func(p Pattern) bool { return p.kind == anyCall })
	}
	if rules := r.allowedBy(allow, b.Deny); len(rules) > 0 {
		return answerAllow, answerAllow + " " + strings.Join(rules, ", "), ""
	}
	return "", "", ""
}

// Answer is Book.Answer of an agent without bounds.
func Answer(allow, deny []Pattern, call Call, paths []string, where Where, disk Disk) (verdict, rule string) {
	verdict, rule, _ = Book{Allow: allow, Deny: deny}.Answer(call, paths, where, disk)
	return verdict, rule
}

// reading is one call that is held against a rulebook.
type reading struct {
	call    Call
	j       *judge
	known   bool    // the arguments could be read
	verdict Verdict // X10's, and what a command writes; of a call that could be read
	paths   []place // what the question names besides
	files   []place // what the call would read or write, by a file tool
	shell   *lines  // of Bash; nil: it could not be read at all
	from    string  // the folder that the call was made in; its arguments may take it elsewhere
	host    string  // of WebFetch; empty: it could not be read
}

func newReading(call Call, paths []string, where Where, disk Disk) *reading {
	if text := strings.TrimSpace(string(call.Input)); text == "" || text == "null" {
		call.Input = json.RawMessage("{}") // it takes no arguments, or does not say them
	}
	in, fault := readInput(call.Input)
	known := fault == "" && json.Valid(call.Input)
	r := &reading{call: call, from: call.Dir, known: known, j: newJudge(AgentRules(), false, call, where, disk)}
	for _, p := range paths {
		r.paths = append(r.paths, r.place(p))
	}
	switch {
	case changesFiles(call.Tool), readsFiles(call.Tool):
		r.files = r.places(in)
	case call.Tool == "Bash" && r.known:
		if r.shell = r.readShell(in); r.shell == nil {
			return r
		}
	case call.Tool == "WebFetch" && r.known:
		address, _ := in.text("url")
		r.host = hostOf(address)
	}
	if r.known {
		r.verdict = newJudge(AgentRules(), false, call, where, disk).verdict()
	}
	return r
}

// protected is what X10 says against the call; empty: nothing. A call that names nothing is not
// denied for it: a person is asked, who sees what it is.
func (r *reading) protected() string {
	tool := r.call.Tool
	if r.verdict.Row == rowAll && !changesFiles(tool) {
		return r.verdict.Reason
	}
	if tool == "Bash" || readsFiles(tool) || has(harmlessTools, tool) {
		return ""
	}
	for _, f := range slices.Concat(r.files, r.paths) {
		if faultOf(f.abs) != "" {
			continue
		}
		if d := r.j.mayWrite(target{given: f.given, abs: f.abs, file: true}); d != nil && d.row == rowAll {
			return r.j.words(d)
		}
	}
	return ""
}

// harmlessTools name files that they do not write.
const harmlessTools = "WebFetch WebSearch Task Agent TodoRead TodoWrite ListMcpResourcesTool ReadMcpResourceTool ToolSearch LSP BashOutput TaskOutput AskUserQuestion"

// denies says whether a pattern of the second list speaks of the call, in any of the ways in
// which the call may be meant.
func (r *reading) denies(p Pattern) bool {
	if r.call.Tool == "Bash" && p.kind == fileArg {
		return changesFiles(p.tool) && r.shell != nil && r.shell.writes(r, p)
	}
	if !p.names(r.call.Tool) {
		return false
	}
	switch p.kind {
	case shellArg:
		return r.shell != nil && r.shell.denied(p)
	case fileArg:
		for _, f := range r.files {
			if f.fault == "" && r.covers(p, f, true) {
				return true
			}
		}
		return false
	case hostArg:
		return r.host != "" && p.takesHost(r.host)
	default:
		return true
	}
}

// allowedBy is which patterns of the first list cover the call together; none: not all of it is
// covered.
func (r *reading) allowedBy(allow, deny []Pattern) []string {
	switch {
	case r.call.Tool == "Bash":
		return r.shellAllowed(allow, deny)
	case changesFiles(r.call.Tool), readsFiles(r.call.Tool):
		return r.filesAllowed(allow, deny)
	}
	if r.call.Tool == "WebFetch" && r.host == "" && slices.ContainsFunc(deny, func(p Pattern) bool { return p.kind == hostArg }) {
		return nil // perhaps it is one of those
	}
	for _, p := range allow {
		if r.known && p.names(r.call.Tool) && (p.kind == anyCall || p.kind == hostArg && p.takesHost(r.host)) {
			return []string{p.text}
		}
	}
	return nil
}

// takesHost says whether a host is the pattern's, or below it.
func (p Pattern) takesHost(host string) bool {
	if parent, ok := strings.CutPrefix(p.arg, "*"); ok {
		return strings.HasSuffix(host, parent) && len(host) > len(parent)
	}
	return host != "" && host == p.arg
}

// hostOf is the host of an address, in lower case; empty where there is a doubt about it: programs
// do not agree on what stands before an @ or behind a backslash.
func hostOf(address string) string {
	rest, ok := strings.CutPrefix(address, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(address, "http://"); !ok {
			return ""
		}
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	host, port, with := strings.Cut(rest, ":")
	if with && (port == "" || strings.Trim(port, "0123456789") != "") {
		return ""
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !isHost(host) {
		return ""
	}
	return host
}

func isHost(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" && !strings.HasPrefix(name, ".") && !strings.Contains(name, "..")
}
