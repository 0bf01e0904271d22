package acp

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver/adapter"
)

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
