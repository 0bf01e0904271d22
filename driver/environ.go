package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The environment variables that give an agent access to its team's tools.
const (
	VariableMCPURL   = "FAIRLEAD_MCP_URL"
	VariableMCPToken = "FAIRLEAD_MCP_TOKEN" //nolint:gosec // a name, and no secret
	VariableMCPStdio = "FAIRLEAD_MCP_STDIO"
)

// Environment returns the complete environment of an agent's process: this process's own, then what
// the agent's configuration adds, then the variables below. Later values win. Fairlead's own
// variables and those that a service manager sets for the daemon are not passed on.
//
//	FAIRLEAD_AGENT         its name
//	FAIRLEAD_SESSION       the session's id, as in coder-17
//	FAIRLEAD_SESSION_KIND  session, cleanup, foreign, turn or lead
//	FAIRLEAD_ATTEMPT       which try this is, from 1
//	FAIRLEAD_MODEL         the model the agent should use, where one is configured
//	FAIRLEAD_CHANNEL       of a turn: the channel
//	FAIRLEAD_TURN          of a turn: its number; missing where the answer needs no turn
//	FAIRLEAD_MCP_URL       where its team's tools are, where it is offered them
//	FAIRLEAD_MCP_TOKEN     what it shows there: a secret of this session
//	FAIRLEAD_MCP_STDIO     the same tools for programs that start theirs: a command, a JSON list
//
// A process that receives several turns sees only the first of them here.
func Environment(a Agent, s Session) []string {
	vars := make(map[string]string)
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && !ours(name) {
			vars[name] = value
		}
	}
	for _, kv := range a.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			vars[name] = value
		}
	}
	vars["PWD"] = a.Workspace // a shell uses PWD if it is correct, and keeps its spelling
	vars["FAIRLEAD_AGENT"] = a.Name
	vars["FAIRLEAD_SESSION"] = s.ID
	vars["FAIRLEAD_SESSION_KIND"] = string(s.Kind)
	vars["FAIRLEAD_ATTEMPT"] = strconv.Itoa(s.Attempt)
	if a.Model != "" {
		vars["FAIRLEAD_MODEL"] = a.Model
	}
	if s.Channel != "" {
		vars["FAIRLEAD_CHANNEL"] = s.Channel
		if s.Turn != 0 {
			vars["FAIRLEAD_TURN"] = strconv.FormatUint(s.Turn, 10)
		}
	}
	if a.MCP.URL != "" {
		vars[VariableMCPURL], vars[VariableMCPToken] = a.MCP.URL, a.MCP.Token
	}
	if len(a.MCP.Stdio) > 0 {
		command, err := json.Marshal(a.MCP.Stdio)
		if err != nil {
			panic("driver: texts that are no JSON: " + err.Error())
		}
		vars[VariableMCPStdio] = string(command)
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// ours reports whether a variable is meant for the daemon and not for its children.
func ours(name string) bool {
	return strings.HasPrefix(name, "FAIRLEAD_") ||
		slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "OLDPWD"}, name)
}

// CheckWorkspace returns an error for an unusable workspace. The folder need not exist yet: it is
// created when the agent is started.
func CheckWorkspace(a Agent) error {
	switch info, err := os.Stat(a.Workspace); {
	case a.Workspace == "":
		return fmt.Errorf("agent %s has no workspace; give it a folder", a.Name)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the workspace of agent %s: %w", a.Name, err)
	case !info.IsDir():
		return fmt.Errorf("the workspace %s of agent %s is not a folder; move the file away, or correct `workspace`", a.Workspace, a.Name)
	}
	return nil
}
