package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// program is what is known about one program beyond its own announcements. Each row names its
// source.
type program struct {
	name     string   // common name of the program
	commands []string // names of its executable

	asking string                                    // mode in which it asks for permission; empty: none is known
	asks   string                                    // description of that mode, in one line for people
	env    []variable                                // makes it ask for permission
	titled bool                                      // the title of a command is the whole command
	trusts func(dir string, argv, env []string) bool // false: it ignores the team's tools there; nil: it has no such rule
	// arguments that make it use the team's tools without asking: Fairlead checks those calls itself
	tools []string

	alone []string // arguments that deny it subagents
	lax   []string // modes in which a subagent may do no more than the agent without a question; alone is for all others

	seen string // version that was tested here, or "documented"
}

// variable is one environment variable.
type variable struct{ name, value string }

// opencodeRules makes OpenCode ask for everything except reading in its own folder and the team's
// tools. The last rule that matches a tool wins. The keys edit and bash are set in addition, because
// rules of the same name in a project file would override a general one.
//
// OpenCode sends no question for a call of a subagent, and waits for the answer without end. Therefore
// opencodeChild denies its subagents what the rules above ask for, and no other subagent may be
// started: its rules are not known. The pattern "?*" beside "*" has the effect that the tool is offered,
// and a call of it is answered with the sentence that a rule prevents it.
const (
	opencodeRules = `{"*":"ask","edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask",` +
		`"task":{"*":"deny","general":"ask","explore":"ask"},` +
		`"read":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"},"glob":"allow","grep":"allow","list":"allow",` +
		`"todowrite":"allow","todoread":"allow","fairlead_*":"allow"}`
	opencodeChild = `{"*":"deny","edit":{"*":"deny","?*":"deny"},"bash":{"*":"deny","?*":"deny"},` +
		`"webfetch":"deny","websearch":"deny","external_directory":"deny","task":"deny",` +
		`"read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"glob":"allow","grep":"allow","list":"allow",` +
		`"fairlead_*":"allow"}`
	// After a denial, the model is notified and continues. Otherwise the answer ends there, with the rest
	// undone.
	opencodeConfig = `{"agent":{"build":{"permission":` + opencodeRules + `},"general":{"permission":` + opencodeChild + `},` +
		`"explore":{"permission":` + opencodeChild + `}},"experimental":{"continue_loop_on_deny":true}}`
)

// programs are the known programs. An unknown program is driven too: nothing is set, and the session
// says so.
var programs = []program{
	{
		name: "OpenCode", commands: []string{"opencode"}, asking: "build",
		asks: "asks before it does anything except read in its folder and use the team's tools; its subagents only read",
		env:  []variable{{"OPENCODE_PERMISSION", opencodeRules}, {"OPENCODE_CONFIG_CONTENT", opencodeConfig}},
		seen: "run here, 1.18.33: by default it writes and runs without asking; its modes (build, plan) are its agents; " +
			"a configuration in the project beats the first variable and is beaten by the second; " +
			"after a denial it ends its answer, unless told to go on; it sends no question for a call of a subagent and waits; " +
			"its usage is that of the last request of an answer, and what it costs a running total",
	},
	{
		name: "Qwen Code", commands: []string{"qwen"}, asking: "default",
		asks:  "mode default: asks before it writes and runs, unless its settings allow it; commands that only look are not asked for",
		tools: []string{"--allowed-tools", "mcp__" + adapter.ServerName},
		alone: []string{"--exclude-tools", "agent"}, lax: []string{"auto-edit", "yolo"},
		seen: "run here, 0.15.10: modes plan, default, auto-edit, yolo; it names session/resume and does not know it; " +
			"its question for a tool of an MCP server does not say which tool; the model has to look for such tools (tool_search); " +
			"in the modes default and plan a subagent writes without a question, and one from a file of the project runs commands too if that file says so",
	},
	{
		name: "Gemini CLI", commands: []string{"gemini"}, asking: "default", titled: true, trusts: geminiTrusts,
		asks: "mode default: asks before it writes and runs",
		seen: "run here, 0.61.0: modes default, autoEdit, yolo, plan; it sends no arguments of calls, and the whole command as the title; " +
			"a tool of an MCP server is NAME (SERVER MCP Server), with its arguments as text; tokens are in _meta.quota; " +
			"no MCP server is connected in a folder that it does not trust",
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

// knownProgram finds the row of a command. Programs that are started by another one (node, npx, env)
// are recognized by any word of the command.
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

// environment returns the variables that must be added to the program's environment. ours reports
// whether the program asks because of them. If the agent's own environment sets one of the
// variables, all of them are left to it.
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

// arguments returns the arguments that are added to the program's command.
func (p program) arguments(mode string, servers bool) (add []string) {
	if servers {
		add = append(add, p.tools...)
	}
	if !slices.ContainsFunc(p.lax, func(lax string) bool { return strings.EqualFold(lax, mode) }) {
		add = append(add, p.alone...)
	}
	return add
}

// variables names the variables that environment would set.
func (p program) variables() string {
	var names []string
	for _, v := range p.env {
		names = append(names, v.name)
	}
	return strings.Join(names, " or ")
}

// trustBytesMax limits a settings file that is read; a person's has a few kB.
const trustBytesMax = 1 << 20

// geminiTrusts reports whether Gemini CLI trusts a folder. Where it does not, it connects to no MCP
// server, and says so nowhere. The rules are those of its version 0.61.0: it looks at its variables, its flag and the
// setting that turns trust off; of its rules for folders, the one with the longest path counts. A file that cannot be read
// trusts nothing. argv is its command.
func geminiTrusts(dir string, argv, env []string) bool {
	value := func(name string) (last string) {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				last = v
			}
		}
		return last
	}
	own := value("GEMINI_CLI_TRUST_WORKSPACE")
	home := filepath.Join("/", value("HOME"), ".gemini")
	switch {
	case slices.Contains(argv, "--skip-trust"):
		return true
	case value("GEMINI_RESTRICTED_MODE") == "true", own == "false":
		return false
	case own == "true":
		return true
	}
	for _, file := range []string{"/etc/gemini-cli/settings.json", filepath.Join(home, "settings.json")} {
		if trust := readSettings(file).object("security").object("folderTrust"); string(trust["enabled"]) == "false" {
			return true
		}
	}
	file := value("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
	if file == "" {
		file = filepath.Join(home, "trustedFolders.json")
	}
	longest, trusted := -1, false
	for folder, raw := range readSettings(file) {
		var level string
		_ = json.Unmarshal(raw, &level) // other types are no level
		from := folder
		if level == "TRUST_PARENT" {
			from = filepath.Dir(folder)
		}
		if rel, err := filepath.Rel(resolved(from), resolved(dir)); err == nil && filepath.IsLocal(rel) && len(folder) > longest {
			longest, trusted = len(folder), strings.HasPrefix(level, "TRUST_")
		}
	}
	return trusted
}

// readSettings reads a JSON file; nil if it is not one.
func readSettings(file string) fields {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > trustBytesMax {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return objectOf(text)
}

// toolsIgnored returns why the program does not connect to the team's tools in a folder, and what to
// do; empty: it connects, or nothing is known.
func (p program) toolsIgnored(dir string, argv, env []string) string {
	if p.trusts == nil || p.trusts(dir, argv, env) {
		return ""
	}
	return p.name + " does not trust the folder " + dir +
		", and does not connect to the team's tools there; start it there once by hand and trust the folder, " +
		`or put GEMINI_CLI_TRUST_WORKSPACE: "true" into the agent's env: it then also loads settings, hooks and servers of the folder`
}
