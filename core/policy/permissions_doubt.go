package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"
)

// unnamed is the entry of Call.Unread for a call whose tool has no name.
const unnamed = "tool"

func isArgument(name string) bool { return name != unnamed }

// mayBeDenied returns why it cannot be decided whether a pattern of the deny list applies to the call; empty:
// none does. No pattern allows such a call, and it is for a person.
func (r *reading) mayBeDenied(deny []Pattern) string {
	if len(deny) == 0 {
		return ""
	}
	if r.call.Tool == "" || r.call.Tool == "other" || slices.Contains(r.call.Unread, unnamed) {
		return "the program does not name the tool"
	}
	of := func(kind argKind, applies func(Pattern) bool) bool {
		return slices.ContainsFunc(deny, func(p Pattern) bool { return p.kind == kind && (applies == nil || applies(p)) })
	}
	switch tool := r.call.Tool; {
	case tool == "Bash", r.runs:
		if of(shellArg, nil) || of(fileArg, nil) {
			return r.commandMayBeDenied(deny)
		}
	case changesFiles(tool), readsFiles(tool):
		if !of(fileArg, func(p Pattern) bool { return p.names(tool) }) {
			return ""
		}
		if len(r.call.Unread) > 0 {
			return "its " + strings.Join(r.call.Unread, ", ") + " cannot be read completely"
		}
		if len(r.files) == 0 {
			return "it does not name its files"
		}
		for _, f := range r.files {
			switch {
			case f.fault != "":
				return f.fault
			case r.doubtful(f, deny):
				return "what " + cut(f.given) + " stands for or contains is not known"
			}
		}
	case tool == "WebFetch":
		if of(hostArg, nil) && r.host == "" {
			return "the host of its address is not known"
		}
	case !has(harmlessTools, tool):
		if of(anyCall, func(p Pattern) bool { return p.mayBeOfServer(tool) }) {
			return "it may be a tool of the server that a pattern names: the program does not say whose tool it is"
		}
	}
	return ""
}

func (r *reading) commandMayBeDenied(deny []Pattern) string {
	l := r.shell
	switch {
	case l == nil || !r.known || slices.ContainsFunc(r.call.Unread, func(name string) bool { return has("command args", name) }):
		return "its command cannot be read completely"
	case l.hidden != "":
		return l.hidden
	case r.hidesDenied(deny):
		return "a denied command or file may be among its words"
	}
	var files []string
	for _, p := range deny {
		switch {
		case p.kind == shellArg && slices.ContainsFunc(l.commands, func(c command) bool { return p.mayTake(c.words) }):
			return "a word of its command is only known when it runs"
		case p.kind == fileArg && changesFiles(p.tool):
			files = append(files, p.arg)
		}
	}
	if len(files) == 0 {
		return ""
	}
	b := r.commandWithin(Rules{CannotWrite: files})
	return oneLine(cmp.Or(b.Denied, b.Doubt))
}

// mayTake reports whether the pattern may match a command some of whose words are only known when it runs.
func (p Pattern) mayTake(words []value) bool {
	program, _, _ := strings.Cut(p.arg, " ")
	name := words[0]
	return p.kind == shellArg && slices.ContainsFunc(words, func(w value) bool { return !w.static() }) &&
		(!name.static() || wild(program, strings.ToLower(path.Base(name.text))))
}

// commandKeys are the arguments with which programs give a command line to a tool.
const commandKeys = "command cmd commands"

// runsCommand reports whether a tool that is not known takes a command, so that patterns for Bash deny it too.
func runsCommand(tool string, in input) bool {
	return tool != "Bash" && !has(harmlessTools, tool) &&
		slices.ContainsFunc(in.keys, func(key string) bool { return has(commandKeys, key) })
}

// mayName reports whether a tool is the pattern's although the program spells the name in another way:
// docs_search or "search (docs MCP Server)" for mcp__docs__search.
func (p Pattern) mayName(tool string) bool {
	of, found := strings.CutPrefix(p.tool, "mcp__")
	if !found {
		return false
	}
	if name, server, ok := strings.Cut(strings.TrimSuffix(tool, " MCP Server)"), " ("); ok {
		tool = server + " " + name
	}
	return wild(foldName(of), foldName(strings.TrimPrefix(tool, "mcp__")))
}

// mayBeOfServer reports whether a tool's name without a server may mean a tool of the pattern. A pattern
// for all tools of a server says nothing of a name alone.
func (p Pattern) mayBeOfServer(tool string) bool {
	of, found := strings.CutPrefix(p.tool, "mcp__")
	if _, bare, ok := strings.Cut(of, "__"); found && ok && strings.Trim(bare, "*") != "" && !strings.HasPrefix(tool, "mcp__") {
		return wild(foldName(bare), foldName(tool))
	}
	return false
}

// foldName spells a tool's name in one way: in lower case, with one underscore between its parts.
func foldName(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if c != '*' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			if c = '_'; strings.HasSuffix(b.String(), "_") {
				continue
			}
		}
		b.WriteRune(c)
	}
	return b.String()
}
