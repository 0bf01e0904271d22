package claude

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// names maps other programs' tool names to Claude Code's.
var names = map[string]string{
	"run_shell_command":   "Bash",
	"write_file":          "Write",
	"edit":                "Edit",
	"replace":             "Edit",
	"read_file":           "Read",
	"read_many_files":     "Read",
	"list_directory":      "LS",
	"glob":                "Glob",
	"grep_search":         "Grep",
	"search_file_content": "Grep",
	"web_fetch":           "WebFetch",
	"web_search":          "WebSearch",
	"google_web_search":   "WebSearch",
	"todo_write":          "TodoWrite",
	"ask_user_question":   askTool,
	"exit_plan_mode":      "ExitPlanMode",
	"agent":               "Task",
	"task":                "Task",
	"skill":               "Skill",
	"monitor":             "Monitor",
	"notebook_edit":       "NotebookEdit",
}

// aliases maps other programs' argument names to Claude Code's.
var aliases = map[string]string{"absolute_path": "file_path", "filePath": "file_path", "dir_path": "path"}

// pathArgs are arguments that name files or folders. The first one present describes the call best.
var pathArgs = []string{"file_path", "notebook_path", "path"}

// essential lists arguments by how well they describe a call; the first one present is shown.
var essential = []string{
	"command", "file_path", "notebook_path", "pattern", "url", "query", "path", "description", "prompt", "text",
	"skill",
}

// call is a tool with its arguments, in Claude Code's vocabulary.
type call struct {
	Tool string
	Args json.RawMessage // a JSON object, or nil
	Cut  []string        // arguments given twice with different values: which one counts is unknown

	fields map[string]json.RawMessage
}

// ourCall translates a call.
func ourCall(name string, input json.RawMessage) call {
	c := call{Tool: name}
	if ours := names[name]; ours != "" {
		c.Tool = ours
	}
	if json.Unmarshal(input, &c.fields) != nil || c.fields == nil {
		return c
	}
	c.Args = input
	renamed := false
	for _, theirs := range slices.Sorted(maps.Keys(aliases)) {
		ours := aliases[theirs]
		value, there := c.fields[theirs]
		other, taken := c.fields[ours]
		switch {
		case there && !taken:
			delete(c.fields, theirs)
			c.fields[ours] = value
			renamed = true
		case there && !bytes.Equal(value, other):
			c.Cut = append(c.Cut, ours)
		}
	}
	if renamed {
		c.Args = encode.JSON(c.fields)
	}
	return c
}

// text returns one argument if it is a string.
func (c call) text(name string) string {
	var s string
	if json.Unmarshal(c.fields[name], &s) != nil {
		return ""
	}
	return s
}

// what describes the call in one line.
func (c call) what() string {
	for _, name := range essential {
		if s := adapter.OneLine(c.text(name)); s != "" {
			return clip.Text(s, adapter.WhatBytesMax)
		}
	}
	if asked := asks(c.fields["questions"]); len(asked) > 0 {
		return adapter.Clipped(asked[0].Question, adapter.WhatBytesMax)
	}
	return ""
}

// diff describes the change that a call makes to a file; empty: none.
func (c call) diff() string {
	const sideBytesMax = 8 << 10 // more is not shown
	side := func(name string) string { return clip.Text(c.text(name), sideBytesMax) }
	switch c.Tool {
	case "Write":
		return speech.Diff(c.text("file_path"), "", side("content"))
	case "Edit":
		return speech.Diff(c.text("file_path"), side("old_string"), side("new_string"))
	case "MultiEdit":
		var edits []struct {
			Old string `json:"old_string"`
			New string `json:"new_string"`
		}
		if json.Unmarshal(c.fields["edits"], &edits) != nil {
			return ""
		}
		var all []string
		for _, e := range edits {
			all = append(all, speech.Diff(c.text("file_path"), e.Old, e.New))
		}
		return clip.Text(strings.Join(all, "\n"), sideBytesMax)
	}
	return ""
}

// paths returns the absolute paths of the files that the call names; relative ones are resolved
// against dir.
func (c call) paths(dir, more string) (paths []string) {
	for _, p := range append(c.pathTexts(), more) {
		if p == "" || strings.ContainsRune(p, 0) {
			continue
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if p = filepath.Clean(p); filepath.IsAbs(p) && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}

func (c call) pathTexts() (texts []string) {
	for _, name := range append(slices.Clone(pathArgs), slices.Sorted(maps.Keys(aliases))...) {
		if s := c.text(name); s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}
