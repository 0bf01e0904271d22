package claude

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// program describes the differences between programs that speak this protocol.
type program struct {
	name   string
	args   []string          // before all other arguments
	mode   string            // the flag for the mode
	allow  string            // the flag for tools that need no permission
	asks   string            // the mode that asks for permission; the default
	modes  map[string]string // restrictions of each mode, in words for people
	alone  []string          // arguments that deny it subagents
	lax    []string          // modes in which a subagent may do no more than the agent without a question; alone is for all others
	env    []string          // K=V
	steers bool              // it shows its model a message that is sent during an answer before the next request, and reports that
	trusts bool              // the token count at an answer's end is correct
	fills  bool              // it replaces ${NAME} in the configuration of a tool server from its environment
}

// programs are the known programs. A program with an unknown file name is treated as Claude Code,
// which the others imitate.
var programs = []program{
	{
		// Flags and modes: documentation of the CLI; --permission-prompt-tool stdio: what the SDK passes if
		// it has a callback for permissions.
		name: "claude",
		args: []string{
			"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
			"--include-partial-messages", "--permission-prompt-tool", "stdio",
		},
		mode: "--permission-mode", asks: "default", allow: "--allowedTools",
		modes: map[string]string{
			"default":           "asks before it writes and runs, except for what its own rules allow",
			"manual":            "asks before it writes and runs, except for what its own rules allow",
			"acceptEdits":       "edits files in its workspace without asking; asks before it runs",
			"plan":              "reads only; asks before anything else",
			"dontAsk":           "asks no questions: what its own rules do not allow is denied",
			"auto":              "asks a model of its own, and Fairlead only if that is unsure",
			"bypassPermissions": "asks nothing: only what the system forbids",
		},
		env: []string{"CLAUDE_CODE_STARTUP_FAILURE_RESULTS=1"},
		// steers: tried with 2.1.330; command_lifecycle says when a message is taken.
		steers: true, trusts: true, fills: true,
	},
	{
		// Measured with 0.15.10: the total at an answer's end accumulates over the process and counts some
		// tokens twice; ${NAME} is not replaced; a message that is sent during an answer waits for its end; an
		// interrupt ends the process with code 130 and no result; in the modes default and plan a subagent
		// writes without a question, and one from a file of the project runs commands too if that file says so.
		name: "qwen",
		args: []string{"--input-format", "stream-json", "--output-format", "stream-json", "--include-partial-messages"},
		mode: "--approval-mode", asks: "default", allow: "--allowed-tools",
		modes: map[string]string{
			"default":   "asks before it writes and runs, except for what its own rules allow",
			"plan":      "reads only: anything else is blocked",
			"auto-edit": "edits files without asking; asks before it runs",
			"yolo":      "asks nothing: only what the system forbids",
		},
		alone: []string{"--exclude-tools", "agent"}, lax: []string{"auto-edit", "yolo"},
		env: []string{"QWEN_CODE_NO_RELAUNCH=true"}, // without it, signals would reach a wrapper process only
	},
}

// known returns the row for a command.
func known(command []string) program {
	for _, word := range command[:min(len(command), 2)] { // node /usr/lib/…/qwen.js
		base := strings.TrimSuffix(filepath.Base(word), filepath.Ext(word))
		for _, p := range programs {
			if base == p.name || strings.HasPrefix(base, p.name+"-") {
				return p
			}
		}
	}
	return programs[0]
}

// enforced describes the restrictions of a mode, in one line.
func (p program) enforced(mode string) string {
	if words := p.modes[mode]; words != "" {
		return words
	}
	if mode == "" {
		return "what its own settings say"
	}
	return "what its own mode " + adapter.OneLine(mode) + " says"
}

// modeOf is the mode of a session.
func (p program) modeOf(part adapter.Part) string {
	if part.Mode == "" {
		return p.asks
	}
	return part.Mode
}

// command describes how the program is started for a session.
func (p program) command(part adapter.Part) adapter.Command {
	argv := append(append([]string{}, part.Command...), p.args...)
	argv = append(argv, p.mode, p.modeOf(part))
	if !slices.Contains(p.lax, p.modeOf(part)) {
		argv = append(argv, p.alone...)
	}
	if part.Model != "" {
		argv = append(argv, "--model", part.Model)
	}
	if part.Resume != "" {
		argv = append(argv, "--resume="+part.Resume) // with an equals sign: otherwise the ID could be taken for a prompt
	}
	env := p.env
	if config, vars := p.tools(part.MCP); config != "" {
		argv = append(argv, p.allow, "mcp__"+adapter.ServerName, "--mcp-config", config)
		env = append(append([]string{}, env...), vars...)
	}
	return adapter.Command{Argv: argv, Env: env}
}

type server struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// tools returns the configuration through which the program finds Fairlead's tools, and the
// variables for its environment. The token is only in the variables, because every user of the
// machine can read the command line. The stdio bridge is preferred if there is one, because its
// configuration needs no replacements; without it, only programs that replace variables in headers
// can use the tools. The tools need no permission from the program: Fairlead itself checks each
// call.
func (p program) tools(m driver.MCP) (config string, vars []string) {
	var s server
	switch {
	case m.Token == "" && len(m.Stdio) == 0:
		return "", nil
	case len(m.Stdio) > 0:
		s = server{Command: m.Stdio[0], Args: append([]string{}, m.Stdio[1:]...)}
		if p.fills {
			s.Type = "stdio"
			s.Env = map[string]string{}
			if m.Token != "" {
				s.Env[adapter.VariableMCPToken] = "${" + adapter.VariableMCPToken + "}"
			}
			if m.URL != "" {
				s.Env[adapter.VariableMCPURL] = "${" + adapter.VariableMCPURL + "}"
			}
		}
	case p.fills && m.URL != "":
		s = server{Type: "http", URL: m.URL, Headers: map[string]string{"Authorization": "Bearer ${" + adapter.VariableMCPToken + "}"}}
	default:
		return "", nil
	}
	return string(encode.JSON(map[string]map[string]server{"mcpServers": {adapter.ServerName: s}})), adapter.VariablesOf(m)
}
