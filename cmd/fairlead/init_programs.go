package main

import (
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/config"
)

// agentProgram is an agent program that doctor looks for and init offers.
type agentProgram struct {
	name    string   // of the agent that init writes, and the word for --agent
	title   string   // as people call it
	file    string   // in the PATH
	driver  string   // the word in fairlead.yaml; empty: nobody here speaks its language
	command []string // in fairlead.yaml; nil: the driver finds the program itself
	page    string   // below doc/agents
	ran     bool     // we have driven it ourselves; else what stands here is from its documentation
	hint    string   // of a program without a driver: what to do with it
	does    string   // the description that init writes
}

// agentPrograms are the known ones, those that we have driven first.
var agentPrograms = []agentProgram{
	{name: "opencode", title: "OpenCode", file: "opencode", driver: config.DriverACP, command: []string{"opencode", "acp"}, page: "opencode.md", ran: true, does: "Writes and changes code"},
	{name: "qwen", title: "Qwen Code", file: "qwen", driver: config.DriverACP, command: []string{"qwen", "--acp"}, page: "qwen.md", ran: true, does: "Writes and changes code"},
	{name: "claude", title: "Claude Code", file: "claude", driver: config.DriverClaude, command: []string{"claude"}, page: "claude-code.md", does: "Writes and changes code"},
	{name: "codex", title: "Codex", file: "codex", driver: config.DriverCodex, command: []string{"codex"}, page: "codex.md", ran: true, does: "Writes and changes code"},
	{name: "gemini", title: "Gemini CLI", file: "gemini", driver: config.DriverACP, command: []string{"gemini", "--acp"}, page: "gemini.md", does: "Writes and changes code"},
	{name: "goose", title: "goose", file: "goose", driver: config.DriverACP, command: []string{"goose", "acp"}, page: "other-acp.md", does: "Writes and changes code"},
	{name: "copilot", title: "Copilot CLI", file: "copilot", driver: config.DriverACP, command: []string{"copilot", "--acp", "--stdio"}, page: "other-acp.md", does: "Writes and changes code"},
	{name: "cursor", title: "Cursor CLI", file: "cursor-agent", driver: config.DriverACP, command: []string{"cursor-agent", "acp"}, page: "other-acp.md", does: "Writes and changes code"},
	{name: "kimi", title: "Kimi CLI", file: "kimi", driver: config.DriverACP, command: []string{"kimi", "acp"}, page: "other-acp.md", does: "Writes and changes code"},
	{name: "claude-acp", title: "Claude Code by its ACP adapter", file: "claude-agent-acp", driver: config.DriverACP, command: []string{"claude-agent-acp"}, page: "other-acp.md", does: "Writes and changes code"},
	{name: "codex-acp", title: "Codex by its ACP adapter", file: "codex-acp", driver: config.DriverACP, command: []string{"codex-acp"}, page: "other-acp.md", does: "Writes and changes code"},
	{name: "amp", title: "Amp", file: "amp", page: "other-acp.md", hint: "it speaks no language that is spoken here; an adapter that speaks the Agent Client Protocol for it works with driver acp"},
	{name: "aider", title: "Aider", file: "aider", page: "other-acp.md", hint: "run it with driver exec, as `command: [aider, --yes-always, --message-file, TASK.md]`: it asks nothing then"},
	{name: "crush", title: "Crush", file: "crush", page: "other-acp.md", hint: "run it with driver exec, as `command: [crush, run, …]`: it asks nothing then"},
}

// foundProgram is a program of the list that stands in the PATH.
type foundProgram struct {
	agentProgram
	path string
}

// findPrograms looks for the known programs in the PATH, in the order of the list. It starts nothing.
func findPrograms(path string) []foundProgram {
	var found []foundProgram
	for _, p := range agentPrograms {
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) { // "." in PATH is how the wrong program gets found
				continue
			}
			full := filepath.Join(dir, p.file)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				found = append(found, foundProgram{p, full})
				break
			}
		}
	}
	return found
}
