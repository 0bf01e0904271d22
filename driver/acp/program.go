package acp

import (
	"path/filepath"
	"strings"
)

// program is what is known of one program beyond what it says itself. Each row says where it is from.
type program struct {
	name     string   // as people call it
	commands []string // the names of its file
	with     string   // a word that its arguments hold, where the file's name says too little

	asking   string // its mode that asks; empty: it has none that is one
	asks     string // what holds it then, in one line for people
	variable string // an environment variable that makes it ask
	value    string

	seen string // run here, with which version; or where it is documented
}

// programs are the known ones. A program that is none of them is driven all the same: nothing is
// set, and that is said.
var programs = []program{
	{
		name: "OpenCode", commands: []string{"opencode"}, with: "acp",
		asks:     "asks before it edits, runs, fetches or leaves its folder, unless its own configuration gives an agent of its own other permissions",
		variable: "OPENCODE_PERMISSION", value: `{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask"}`,
		seen: "run here, 1.18.33: by default it writes and runs without asking; its modes (build, plan) are no permission modes",
	},
	{
		name: "Qwen Code", commands: []string{"qwen"}, asking: "default",
		asks: "mode default: asks before it writes and runs",
		seen: "run here, 0.15.10: modes plan, default, auto-edit, yolo; it names session/resume and does not know it",
	},
	{
		name: "Gemini CLI", commands: []string{"gemini"}, asking: "default",
		asks: "mode default: asks before it writes and runs",
		seen: "documented (its approval modes); not run here",
	},
	{
		name: "Claude Code by its ACP adapter", commands: []string{"claude-code-acp", "claude-agent-acp"}, asking: "default",
		asks: "mode default: asks where its own rules do not allow or deny",
		seen: "documented (permission modes default, acceptEdits, plan, bypassPermissions); not run here",
	},
	{
		name: "Codex by its ACP adapter", commands: []string{"codex-acp"}, asking: "read-only",
		asks: "mode read-only: asks before it writes and before commands that leave its sandbox",
		seen: "documented (modes read-only, auto, full-access); not run here",
	},
}

// knownProgram finds the row of a command. Programs that are started by way of another (node, npx,
// env) are found by any of their words.
func knownProgram(command []string) program {
	for _, p := range programs {
		for i, word := range command {
			base := strings.TrimSuffix(filepath.Base(word), ".js")
			for _, name := range p.commands {
				if base == name || i > 0 && strings.HasSuffix(word, "/"+name) {
					return p
				}
			}
		}
	}
	return program{}
}

// environment is what the program's environment lacks. ours says that it asks because of it: what
// the agent's own environment says already stands.
func (p program) environment(has []string) (add []string, ours bool) {
	if p.variable == "" {
		return nil, false
	}
	for _, kv := range has {
		if strings.HasPrefix(kv, p.variable+"=") {
			return nil, strings.TrimPrefix(kv, p.variable+"=") == p.value
		}
	}
	return []string{p.variable + "=" + p.value}, true
}
