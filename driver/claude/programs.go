package claude

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// program is what differs between the programs that speak this protocol.
type program struct {
	name   string
	args   []string          // before all others
	mode   string            // the flag for it
	allow  string            // the flag for tools that run without a question
	asks   string            // the mode that asks; what an empty one means
	modes  map[string]string // what holds the program in each, in words for people
	env    []string          // K=V
	trusts bool              // the tokens at an answer's end are right
	fills  bool              // it fills ${NAME} in the configuration of a server of tools, from its environment
}

// programs are the ones that are known. What is not found here by the name of its file is taken for
// Claude Code: it is what the others follow.
var programs = []program{
	{
		// Flags and modes: documentation of the CLI; --permission-prompt-tool stdio: what the SDK itself passes
		// where it has a callback for permissions.
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
			"dontAsk":           "asks nobody: what its own rules do not allow is denied",
			"auto":              "asks a model of its own, and us only where that is not sure",
			"bypassPermissions": "asks nothing: only what the system forbids",
		},
		env:    []string{"CLAUDE_CODE_STARTUP_FAILURE_RESULTS=1"},
		trusts: true, fills: true,
	},
	{
		// Measured with 0.15.10: the sum at an answer's end grows with the whole process and counts some
		// twice; ${NAME} stays as it is; an interrupt ends the process with 130 and no result.
		name: "qwen",
		args: []string{"--input-format", "stream-json", "--output-format", "stream-json", "--include-partial-messages"},
		mode: "--approval-mode", asks: "default", allow: "--allowed-tools",
		modes: map[string]string{
			"default":   "asks before it writes and runs, except for what its own rules allow",
			"plan":      "reads only: anything else is blocked",
			"auto-edit": "edits files without asking; asks before it runs",
			"yolo":      "asks nothing: only what the system forbids",
		},
		env: []string{"QWEN_CODE_NO_RELAUNCH=true"}, // its signals would miss the real process
	},
}

// known is the row for a command.
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

// enforced says what holds the program in a mode, in one line.
func (p program) enforced(mode string) string {
	if words := p.modes[mode]; words != "" {
		return words
	}
	if mode == "" {
		return "what its own settings say"
	}
	return "what its own mode " + clean(mode) + " says"
}

// modeOf is the mode that a part is to be played in.
func (p program) modeOf(part adapter.Part) string {
	if part.Mode == "" {
		return p.asks
	}
	return part.Mode
}

// command is how the program is started for a part.
func (p program) command(part adapter.Part) adapter.Command {
	argv := append(append([]string{}, part.Command...), p.args...)
	argv = append(argv, p.mode, p.modeOf(part))
	if part.Model != "" {
		argv = append(argv, "--model", part.Model)
	}
	if part.Resume != "" {
		argv = append(argv, "--resume="+part.Resume) // with the sign: else the id could be taken for a prompt
	}
	env := p.env
	if config, vars := p.tools(part.MCP); config != "" {
		argv = append(argv, p.allow, "mcp__"+serverName, "--mcp-config", config)
		env = append(append([]string{}, env...), vars...)
	}
	return adapter.Command{Argv: argv, Env: env}
}

// serverName is the name of our tools there: mcp__fairlead__say.
const serverName = "fairlead"

type server struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// tools is the configuration by which the program finds our tools, and the variables that go into its
// environment. The token is in the variables alone: the command line is read by every user of the
// machine. The bridge on standard input and output is taken where there is one, since it needs
// nothing filled in; without it, only a program that fills in headers can be told where the tools are.
// They run without a question: they are ours, and themselves say no where that is right.
func (p program) tools(m driver.MCP) (config string, vars []string) {
	var s server
	switch {
	case m.Token == "" || m.URL == "":
		return "", nil
	case len(m.Stdio) > 0:
		s = server{Command: m.Stdio[0], Args: append([]string{}, m.Stdio[1:]...)}
		if p.fills {
			s.Type = "stdio"
			s.Env = map[string]string{adapter.VariableMCPURL: "${" + adapter.VariableMCPURL + "}", adapter.VariableMCPToken: "${" + adapter.VariableMCPToken + "}"}
		}
	case p.fills:
		s = server{Type: "http", URL: m.URL, Headers: map[string]string{"Authorization": "Bearer ${" + adapter.VariableMCPToken + "}"}}
	default:
		return "", nil
	}
	b, err := json.Marshal(map[string]map[string]server{"mcpServers": {serverName: s}})
	if err != nil {
		panic("claude: a configuration that is no JSON: " + err.Error())
	}
	return string(b), []string{adapter.VariableMCPURL + "=" + m.URL, adapter.VariableMCPToken + "=" + m.Token}
}
