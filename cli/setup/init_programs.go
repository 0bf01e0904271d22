package setup

import (
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/config"
)

// AgentProgram is an agent program that doctor looks for and init offers.
type AgentProgram struct {
	Name    string   // of the agent that init writes, and the word for --agent
	Title   string   // as people call it
	File    string   // in the PATH
	Driver  string   // the word in fairlead.yaml; empty: no driver supports it
	Command []string // in fairlead.yaml; nil: the driver finds the program itself
	Page    string   // below doc/agents
	Ran     bool     // Fairlead's developers have run it; otherwise the facts are from its documentation
	Hint    string   // of a program without a driver: what to do with it
	does    string   // the description that init writes
}

// AgentPrograms are the known programs, those that Fairlead's developers have run first.
var AgentPrograms = []AgentProgram{
	{Name: "opencode", Title: "OpenCode", File: "opencode", Driver: config.DriverACP, Command: []string{"opencode", "acp"}, Page: "opencode.md", Ran: true, does: "Writes and changes code"},
	{Name: "qwen", Title: "Qwen Code", File: "qwen", Driver: config.DriverACP, Command: []string{"qwen", "--acp"}, Page: "qwen.md", Ran: true, does: "Writes and changes code"},
	{Name: "claude", Title: "Claude Code", File: "claude", Driver: config.DriverClaude, Command: []string{"claude"}, Page: "claude-code.md", does: "Writes and changes code"},
	{Name: "codex", Title: "Codex", File: "codex", Driver: config.DriverCodex, Command: []string{"codex"}, Page: "codex.md", Ran: true, does: "Writes and changes code"},
	{Name: "gemini", Title: "Gemini CLI", File: "gemini", Driver: config.DriverACP, Command: []string{"gemini", "--acp"}, Page: "gemini.md", Ran: true, does: "Writes and changes code"},
	{Name: "goose", Title: "goose", File: "goose", Driver: config.DriverACP, Command: []string{"goose", "acp"}, Page: "other-acp.md", does: "Writes and changes code"},
	{Name: "copilot", Title: "Copilot CLI", File: "copilot", Driver: config.DriverACP, Command: []string{"copilot", "--acp", "--stdio"}, Page: "other-acp.md", does: "Writes and changes code"},
	{Name: "cursor", Title: "Cursor CLI", File: "cursor-agent", Driver: config.DriverACP, Command: []string{"cursor-agent", "acp"}, Page: "other-acp.md", does: "Writes and changes code"},
	{Name: "kimi", Title: "Kimi CLI", File: "kimi", Driver: config.DriverACP, Command: []string{"kimi", "acp"}, Page: "other-acp.md", does: "Writes and changes code"},
	{Name: "claude-acp", Title: "Claude Code by its ACP adapter", File: "claude-agent-acp", Driver: config.DriverACP, Command: []string{"claude-agent-acp"}, Page: "other-acp.md", does: "Writes and changes code"},
	{Name: "codex-acp", Title: "Codex by its ACP adapter", File: "codex-acp", Driver: config.DriverACP, Command: []string{"codex-acp"}, Page: "other-acp.md", does: "Writes and changes code"},
	{Name: "amp", Title: "Amp", File: "amp", Page: "other-acp.md", Hint: "no driver supports its protocol; an adapter that speaks the Agent Client Protocol for it works with driver acp"},
	{Name: "aider", Title: "Aider", File: "aider", Page: "other-acp.md", Hint: "run it with driver exec, as `command: [aider, --yes-always, --message-file, TASK.md]`: it asks nothing then"},
	{Name: "crush", Title: "Crush", File: "crush", Page: "other-acp.md", Hint: "run it with driver exec, as `command: [crush, run, …]`: it asks nothing then"},
}

// FoundProgram is a known program that is in the PATH.
type FoundProgram struct {
	AgentProgram
	Path string
}

// FindPrograms looks for the known programs in the PATH, in the order of the list. It starts nothing.
func FindPrograms(path string) []FoundProgram {
	var found []FoundProgram
	for _, p := range AgentPrograms {
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) { // a relative PATH entry such as "." could find the wrong program
				continue
			}
			full := filepath.Join(dir, p.File)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				found = append(found, FoundProgram{p, full})
				break
			}
		}
	}
	return found
}
