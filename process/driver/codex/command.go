package codex

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

const (
	openMode  = "danger-full-access"
	usualMode = "workspace-write" // the default: codex cannot ask anyone, so a sandbox must restrict it

	// toolSeconds is the time limit for one of Fairlead's tools: one that asks a person takes long.
	toolSeconds = 1800
)

// modes are the sandboxes with a description of their restrictions. codex does not report denied
// actions in its output, and the description says so.
var modes = map[string]string{
	"read-only": "asks no questions: its commands can only read, without network; it does not always report what its sandbox denies",
	usualMode:   "asks no questions: its commands can only write in the workspace (not in .git) and in temporary folders, without network; it does not always report what its sandbox denies",
	openMode:    "asks nothing: only what the system forbids",
}

func modeOf(mode string) string {
	if mode == "" {
		return usualMode
	}
	return mode
}

// effective is the mode with which codex is started: its own sandbox does not work inside a wall.
func effective(part adapter.Part) string {
	if part.Walled {
		return openMode
	}
	return modeOf(part.Mode)
}

// enforced describes the restrictions of a mode.
func enforced(mode string, walled bool) string {
	if walled {
		return "asks nothing, and its own sandbox is off, because it does not work inside Fairlead's wall: the wall alone holds it"
	}
	if words := modes[modeOf(mode)]; words != "" {
		return words
	}
	return "what its own sandbox " + adapter.OneLine(mode) + " says"
}

// command describes how codex is started for one prompt; thread is the conversation to resume, or
// empty. `exec resume` has no flag for the sandbox, so it is set as a configuration value in both
// cases.
func command(part adapter.Part, thread string, images []string) adapter.Command {
	argv := append(slices.Clone(part.Command), "exec")
	if thread != "" {
		argv = append(argv, "resume")
	}
	for _, path := range images {
		if thread == "" && !strings.Contains(path, ",") { // a comma would divide it; the prompt has the path
			argv = append(argv, "--image", path)
		}
	}
	argv = append(argv, "--json", "--skip-git-repo-check", "-c", set("sandbox_mode", effective(part)), "-c",
		set("approval_policy", "never"))
	if part.Model != "" {
		argv = append(argv, "--model", part.Model)
	}
	config, env := tools(part.MCP)
	for _, c := range config {
		argv = append(argv, "-c", c)
	}
	if thread != "" {
		argv = append(argv, thread)
	}
	return adapter.Command{Argv: append(argv, "-"), Env: env}
}

// tools returns the configuration through which codex finds Fairlead's tools, and the variables for
// its environment. The token is only in the variables, because every user of the machine can read
// the command line. Commands that codex runs do not see it. The tools need no approval: codex could
// not ask for it, and Fairlead itself checks each call.
func tools(m driver.MCP) (config, env []string) {
	const server = "mcp_servers." + adapter.ServerName + "."
	switch {
	case m.Token == "" && len(m.Stdio) == 0:
		return nil, nil
	case strings.HasPrefix(m.URL, "http"):
		config = []string{set(server+"url", m.URL), set(server+"bearer_token_env_var", adapter.VariableMCPToken)}
	case len(m.Stdio) > 0:
		config = []string{
			set(server+"command", m.Stdio[0]), set(server+"args", slices.Concat([]string{}, m.Stdio[1:])),
			set(server+"env_vars", []string{adapter.VariableMCPURL, adapter.VariableMCPToken}),
		}
	default:
		return nil, nil
	}
	config = append(
		config, set(server+"default_tools_approval_mode", "approve"), set(server+"tool_timeout_sec", toolSeconds),
		set("shell_environment_policy.set."+adapter.VariableMCPToken, ""),
	)
	return config, adapter.VariablesOf(m)
}

// set formats one configuration value for the flag -c: TOML, in which strings and lists are written
// as in JSON.
func set(key string, value any) string { return key + "=" + string(encode.JSON(value)) }
