package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
)

const (
	usualMode = "workspace-write" // what an empty mode means: nobody can be asked, so a sandbox must hold

	serverName = "fairlead" // our tools there: mcp__fairlead__say

	// toolSeconds is how long one of our tools may take: one that asks a person takes long.
	toolSeconds = 1800
)

// modes are the sandboxes, and what holds the program in each, for people. What is denied does not
// appear among its lines: that is said, too.
var modes = map[string]string{
	"read-only":          "asks nobody: its commands read only, without a network; what its sandbox refuses it does not always report",
	usualMode:            "asks nobody: its commands write in the workspace (not in .git) and in temporary folders only, without a network; what its sandbox refuses it does not always report",
	"danger-full-access": "asks nothing: only what the system forbids",
}

func modeOf(mode string) string {
	if mode == "" {
		return usualMode
	}
	return mode
}

// enforced says what holds the program in a mode.
func enforced(mode string) string {
	if words := modes[modeOf(mode)]; words != "" {
		return words
	}
	return "what its own sandbox " + clean(mode) + " says"
}

// command is how codex is started for one prompt; thread is the conversation that it goes on with, or
// empty. `exec resume` takes no flag for the sandbox, so it is set as a configuration in both.
func command(part adapter.Part, thread string) adapter.Command {
	argv := append(slices.Clone(part.Command), "exec")
	if thread != "" {
		argv = append(argv, "resume")
	}
	argv = append(argv, "--json", "--skip-git-repo-check", "-c", set("sandbox_mode", modeOf(part.Mode)), "-c", set("approval_policy", "never"))
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

// tools is the configuration by which codex finds our tools, and the variables that go into its environment.
// The token is in these alone: the command line is read by every user of the machine. The
// commands that codex runs do not see it. Our tools need no approval, since nobody could give it, and
// they themselves say no where that is right.
func tools(m driver.MCP) (config, env []string) {
	const server = "mcp_servers." + serverName + "."
	switch {
	case m.Token == "" || m.URL == "":
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
	return config, []string{adapter.VariableMCPURL + "=" + m.URL, adapter.VariableMCPToken + "=" + m.Token}
}

// set is one configuration as the flag -c takes it: a value in TOML, whose texts and lists are written as in
// JSON.
func set(key string, value any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(fmt.Sprintf("codex: a configuration that is no JSON: %v", err))
	}
	return key + "=" + strings.TrimSpace(b.String())
}
