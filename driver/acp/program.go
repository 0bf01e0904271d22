package acp

import (
	"path/filepath"
	"strings"
)

// program is what is known of one program beyond what it says itself. Each row says where it is from.
type program struct {
	name     string   // as people call it
	commands []string // the names of its file

	asking string     // its mode that asks; empty: it has none that is one
	asks   string     // what holds it then, in one line for people
	env    []variable // what makes it ask
	tools  []string   // arguments by which it uses the team's tools without asking: what they may do is judged there

	seen string // run here, with which version; or where it is documented
}

// variable is one of the environment.
type variable struct{ name, value string }

// What OpenCode is to ask for: all but looking around in its own folder and the team's tools. The last
// rule that fits a tool wins there. The keys edit and bash are said besides, because rules of
// the same name in a file of the project would stay beside a general one.
const (
	opencodeRules = `{"*":"ask","edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask","task":"ask",` +
		`"read":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"},"glob":"allow","grep":"allow","list":"allow",` +
		`"todowrite":"allow","todoread":"allow","fairlead_*":"allow"}`
	// After a denial the model is told and goes on: else the answer ends there, with the rest undone.
	opencodeConfig = `{"agent":{"build":{"permission":` + opencodeRules + `}},"experimental":{"continue_loop_on_deny":true}}`
)

// programs are the known ones. A program that is none of them is driven all the same: nothing is
// set, and that is said.
var programs = []program{
	{
		name: "OpenCode", commands: []string{"opencode"}, asking: "build",
		asks: "asks before it does anything but look around in its folder and use the team's tools",
		env:  []variable{{"OPENCODE_PERMISSION", opencodeRules}, {"OPENCODE_CONFIG_CONTENT", opencodeConfig}},
		seen: "run here, 1.18.33: by default it writes and runs without asking; its modes (build, plan) are its agents; " +
			"a configuration in the project beats the first variable and is beaten by the second; " +
			"after a denial it ends its answer, unless told to go on; " +
			"its usage is that of the last request of an answer, and what it costs a running total",
	},
	{
		name: "Qwen Code", commands: []string{"qwen"}, asking: "default",
		asks:  "mode default: asks before it writes and runs, unless its settings allow it; commands that only look are not asked for",
		tools: []string{"--allowed-tools", "mcp__" + serverName},
		seen: "run here, 0.15.10: modes plan, default, auto-edit, yolo; it names session/resume and does not know it; " +
			"its question for a tool of an MCP server does not say which tool; the model has to look for such tools (tool_search)",
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

// environment is what the program's environment lacks. ours says that it asks because of it: where
// the agent's own environment names one of the variables already, all of them are left to it.
func (p program) environment(has []string) (add []string, ours bool) {
	for _, v := range p.env {
		for _, kv := range has {
			if strings.HasPrefix(kv, v.name+"=") {
				return nil, false
			}
		}
		add = append(add, v.name+"="+v.value)
	}
	return add, len(add) > 0
}

// variables names what environment would set.
func (p program) variables() string {
	var names []string
	for _, v := range p.env {
		names = append(names, v.name)
	}
	return strings.Join(names, " or ")
}
