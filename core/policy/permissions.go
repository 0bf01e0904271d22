package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Pattern is one line of an agent's permissions: a tool, optionally with what it is called with.
//
//	Read                      every call of that tool
//	Write(src/**)             files below the workspace; absolute or ~/… for others
//	Read(*.md)                a name without a slash: in every folder of the workspace
//	Bash(git status*)         command lines; * is any text
//	WebFetch(domain:*.dev)    one host, or those below one
//	mcp__docs__*              tools by their names
//
// Write, Edit, MultiEdit and NotebookEdit stand for each other, because programs use them
// differently. Read stands for every tool that reads files; Grep, Glob and LS stand for themselves.
type Pattern struct {
	text string
	tool string // may hold *
	arg  string // the text in brackets, prepared
	kind argKind
}

// argKind says how the text in brackets is interpreted.
type argKind string

const (
	anyCall  argKind = ""        // no brackets
	shellArg argKind = "command" // Bash
	fileArg  argKind = "path"    // a glob
	hostArg  argKind = "host"    // WebFetch
)

const patternBytesMax = 4096 // the limit of a path

// String returns the pattern as written.
func (p Pattern) String() string { return p.text }

// ParsePattern parses one pattern of an agent's permissions. The error is one line that says what is wrong
// and how to correct it, phrased to follow the pattern's name.
func ParsePattern(text string) (Pattern, error) {
	shown := fmt.Sprintf("%q", cut(text))
	if err := checkText(text, "name a tool, such as Read or Bash(git status*)"); err != nil {
		return Pattern{}, err
	}
	tool, arg, bracketed := strings.Cut(text, "(")
	if tool == "" || strings.ContainsFunc(tool, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:/*", r)
	}) {
		return Pattern{},
			fmt.Errorf("%s names no tool: letters, digits, _ - . : / and * for any text, then (pattern) where the tool takes one", shown)
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

// checkText checks what all lines of permissions have in common.
func checkText(text, ifEmpty string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("is empty; %s", ifEmpty)
	case len(text) > patternBytesMax:
		return fmt.Errorf("is longer than %d bytes; no command and no path is", patternBytesMax)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%q holds control characters; write it on one line", cut(text))
	}
	return nil
}

// bracket prepares the text in brackets.
func (p *Pattern) bracket(shown string) error {
	if strings.TrimSpace(p.arg) == "" {
		return fmt.Errorf("%s names nothing between the brackets; write %s alone for every call of it", shown, cut(p.tool))
	}
	switch {
	case p.tool == "Bash":
		p.kind = shellArg
		if head, ok := strings.CutSuffix(p.arg, ":*"); ok { // other programs' spelling of "these words, and any after them"
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
		return fmt.Errorf("%s is not a glob; write a [ or { that is not closed as \\[ or \\{", shown)
	}
	return nil
}

// changesFiles and readsFiles list the tools that stand for each other.
func changesFiles(tool string) bool { return has("Write Edit MultiEdit NotebookEdit", tool) }
func readsFiles(tool string) bool   { return has("Read NotebookRead LS Glob Grep", tool) }

// names reports whether the pattern applies to a tool.
func (p Pattern) names(tool string) bool {
	switch {
	case tool == "":
		return p.tool == "*"
	case changesFiles(p.tool) && changesFiles(tool), p.tool == "Read" && readsFiles(tool):
		return true
	}
	return wild(p.tool, tool)
}

// wild reports whether a text matches a pattern in which * stands for any text and nothing else is special.
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

// The answers of permissions. The third one is empty: no pattern covers the call, or it was not fully
// understood; ask a person.
const (
	answerAllow = "allow"
	answerDeny  = "deny"
)

// Permissions are those of an agent: its bounds, and the answers to its program's questions.
type Permissions struct {
	Bounds      Rules // Within explains them; the zero value: none
	Allow, Deny []Pattern

	// Writable are the folders that the session's wall lets its program write, absolute, if the wall's trial before this
	// session held reading and writing. Then the call is not asked about if it only reads, or writes there. Nil: no such wall.
	Writable []string

	// Network says that the wall held the network, too. Then a shell command is not asked about either: what it writes, reads and
	// reaches is what the wall lets it. It counts only with Writable.
	Network bool
}

// Answer decides a call by an agent's permissions and names the deciding line: "allow" and `allow Read`,
// "deny" and `deny Bash(rm *)`, or nothing. It is for calls of a model, whatever Where.Model says. X10 is
// checked first, then the bounds, then denials, then allowances; a call that was not fully understood is
// never allowed by a pattern. If there is no answer, doubt is why only a person can decide whether the call
// keeps the bounds, or whether a pattern of Deny applies to it.
//
// paths are files that the question names besides the call's arguments, absolute; a call that changes files
// and names none is for a person. Where.Repo is the agent's workspace, from which relative patterns start.
func (b Permissions) Answer(call Call, paths []string, where Where, disk Disk) (verdict, rule, doubt string) {
	where.Model = true
	r := newReading(call, paths, where, disk)
	if why := r.protected(); why != "" {
		return answerDeny, DeniedProtected.Row() + ": " + why, ""
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
	if doubt = cmp.Or(bound.Doubt, r.mayBeDenied(b.Deny)); doubt != "" || slices.ContainsFunc(call.Unread, isArgument) {
		return "", "", doubt
	}
	allow := b.Allow
	if bound.Unclear { // a pattern that names only the tool was not written for this program
		allow = slices.DeleteFunc(slices.Clone(allow), func(p Pattern) bool { return p.kind == anyCall || strings.Trim(p.arg, "* ") == "" })
	}
	if rules := r.allowedBy(allow, b.Deny); len(rules) > 0 {
		return answerAllow, answerAllow + " " + strings.Join(rules, ", "), ""
	}
	if b.Writable != nil && r.walled(b.Writable, b.Network, b.Deny) {
		return answerAllow, RuleWall, ""
	}
	return "", "", ""
}

// Covers reports whether one of the patterns covers a call, or a call within it, in the way a denial
// does. It is false for a call that is denied as DeniedProtected: no pattern decides about those.
func Covers(patterns []Pattern, call Call, where Where, disk Disk) bool {
	where.Model = true
	r := newReading(call, nil, where, disk)
	return r.protected() == "" && slices.ContainsFunc(patterns, r.denies)
}

// reading is one call in the form for matching.
type reading struct {
	call    Call
	j       *judge
	known   bool    // the arguments were understood
	verdict Verdict // X10's, and a command's writes; of a call that was understood
	paths   []place // named besides the arguments
	files   []place // what the call would read or write with a file tool
	shell   *shell  // of Bash, and of a tool that runs a command; nil: it was not understood at all
	runs    bool    // it is not Bash, and takes a command
	host    string  // of WebFetch; empty: it was not understood
}

func newReading(call Call, paths []string, where Where, disk Disk) *reading {
	if text := strings.TrimSpace(string(call.Input)); text == "" || text == "null" {
		call.Input = json.RawMessage("{}") // it has no arguments, or does not show them
	}
	in, fault := readInput(call.Input)
	known := fault == "" && json.Valid(call.Input)
	r := &reading{call: call, known: known, j: newJudge(AgentRules(), false, call, where, disk)}
	for _, p := range paths {
		r.paths = append(r.paths, r.place(p))
	}
	switch {
	case changesFiles(call.Tool), readsFiles(call.Tool):
		r.files = r.places(in)
	case call.Tool == "Bash" && r.known:
		j := newJudge(AgentRules(), false, call, where, disk)
		v := j.verdict()
		if r.shell = j.shell; r.shell != nil {
			r.verdict = v
		}
		return r
	case runsCommand(call.Tool, in):
		if r.runs = true; known {
			j := newJudge(AgentRules(), false, call, where, disk)
			_ = j.shellTool() // a person decides about it
			r.shell = j.shell
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

// protected returns X10's denial of the call; empty: none. A call that names nothing is not denied for it; a
// person is asked.
func (r *reading) protected() string {
	tool := r.call.Tool
	if r.verdict.Code == DeniedProtected && !changesFiles(tool) {
		return r.verdict.Reason
	}
	if tool == "Bash" || readsFiles(tool) || has(harmlessTools, tool) {
		return ""
	}
	for _, f := range slices.Concat(r.files, r.paths) {
		if faultOf(f.abs) != "" {
			continue
		}
		if d := r.j.mayWrite(target{given: f.given, abs: f.abs, file: true}); d != nil && d.code == DeniedProtected {
			return r.j.words(d)
		}
	}
	return ""
}

// harmlessTools name files that they do not write.
const harmlessTools = "WebFetch WebSearch Task Agent TodoRead TodoWrite ListMcpResourcesTool ReadMcpResourceTool ToolSearch LSP BashOutput TaskOutput AskUserQuestion"

// denies reports whether a pattern of the deny list applies to the call, in any of its possible meanings.
func (r *reading) denies(p Pattern) bool {
	if r.call.Tool == "Bash" && p.kind == fileArg {
		return changesFiles(p.tool) && r.shell != nil && r.writes(p)
	}
	if p.kind == shellArg {
		return r.shell != nil && r.shell.denied(p)
	}
	if !p.names(r.call.Tool) && !p.mayName(r.call.Tool) {
		return false
	}
	switch p.kind {
	case fileArg:
		return slices.ContainsFunc(r.files, func(f place) bool { return f.fault == "" && r.covers(p, f, true) })
	case hostArg:
		return r.host != "" && p.takesHost(r.host)
	default:
		return true
	}
}

// allowedBy returns the patterns of the allow list that together cover the call; none: not all of it is
// covered.
func (r *reading) allowedBy(allow, deny []Pattern) []string {
	switch {
	case r.call.Tool == "Bash":
		return r.shellAllowed(allow, deny)
	case changesFiles(r.call.Tool), readsFiles(r.call.Tool):
		return r.filesAllowed(allow, deny)
	}
	if r.call.Tool == "WebFetch" && r.host == "" && slices.ContainsFunc(deny, func(p Pattern) bool { return p.kind == hostArg }) {
		return nil // it may be one of those
	}
	for _, p := range allow {
		if r.known && p.names(r.call.Tool) && (p.kind == anyCall || p.kind == hostArg && p.takesHost(r.host)) {
			return []string{p.text}
		}
	}
	return nil
}

// takesHost reports whether a host is the pattern's, or below it.
func (p Pattern) takesHost(host string) bool {
	if parent, ok := strings.CutPrefix(p.arg, "*"); ok {
		return strings.HasSuffix(host, parent) && len(host) > len(parent)
	}
	return host != "" && host == p.arg
}

// hostOf returns the host of a URL in lower case; empty if it is ambiguous: programs disagree about text
// before an @ or after a backslash.
func hostOf(address string) string {
	found := webAddress.FindStringSubmatch(address)
	if found == nil || !isHost(strings.TrimSuffix(found[1], ".")) {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(found[1], "."))
}

var webAddress = regexp.MustCompile(`^https?://([^/?#:]*)(?::[0-9]+)?(?:[/?#]|$)`)

func isHost(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" &&
		!strings.HasPrefix(name, ".") && !strings.Contains(name, "..")
}
