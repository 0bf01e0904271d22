package acp

import (
	"slices"
	"strings"
)

// teamTools are those of our own MCP server. Programs call them by the server's name and theirs with
// something between; another server whose name begins like ours must not pass for it.
var teamTools = []string{"turn_complete", "pass", "wait", "say", "report_step", "set_status", "ask_human", "who_is_here"}

// toolWords are the programs' names of tools, without case and separators, in our words: those of
// Claude Code, which the patterns of fairlead.yaml are written in.
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

// kindWords are what a program's own classes of tools mean, where it gives no name that is known. To
// delete and to move are changes of files.
var kindWords = map[string]string{
	"execute": "Bash", "edit": "Edit", "delete": "Edit", "move": "Edit", "read": "Read", "fetch": "WebFetch",
}

// titleSays are the tools that a title is believed to name in a class that has several.
var titleSays = map[string][]string{
	"read": {"Glob", "Grep"}, "search": {"Glob", "Grep"}, "fetch": {"WebSearch"},
}

// ours is a program's name of a tool in our words; empty where it is none of those we know.
func ours(name, server string) string {
	if strings.HasPrefix(name, "mcp__") && !strings.HasPrefix(name, "mcp__acp__") {
		return clip(oneLine(name), titleBytesMax)
	}
	name = strings.TrimPrefix(name, "mcp__acp__") // an adapter's own tools, which stand for the plain ones
	for _, sep := range []string{"__", "_", "-", ":", "."} {
		if rest, ok := strings.CutPrefix(name, server+sep); ok && slices.Contains(teamTools, rest) {
			return "mcp__" + server + "__" + rest
		}
	}
	return toolWords[strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))]
}

// spellings are the names of arguments that mean the same, the one of Claude Code first.
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
