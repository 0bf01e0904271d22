package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// The environment variables that give an agent access to its team's tools.
const (
	VariableMCPURL   = "FAIRLEAD_MCP_URL"
	VariableMCPToken = "FAIRLEAD_MCP_TOKEN" //nolint:gosec // a name, and no secret
	VariableMCPStdio = "FAIRLEAD_MCP_STDIO"
)

// inherited are the variables of Fairlead's own environment that every agent gets. The others may be secrets of
// other agents or programs. A name that ends with * is a prefix.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "TZ", "TMPDIR", "XDG_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
}

// Needing is a Driver whose programs get further variables of Fairlead's own environment: names, or
// prefixes that end with *. The agent's command and its configured variables determine them.
type Needing interface{ Needs(a Agent) []string }

// Needs returns the further variables that an agent's driver asks for.
func Needs(d Driver, a Agent) []string {
	if needing, ok := d.(Needing); ok {
		return needing.Needs(a)
	}
	return nil
}

// Variable returns the value that an agent's process gets for a variable, if its driver asks for it: the configured
// one, or the one of Fairlead's own environment.
func (a Agent) Variable(name string) (string, bool) {
	for _, kv := range slices.Backward(a.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return os.LookupEnv(name)
}

// matches reports whether a variable is in a list of names and prefixes.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, is := strings.CutSuffix(entry, "*")
		return name == entry || is && strings.HasPrefix(name, prefix)
	})
}

// Environment returns the complete environment of an agent's process: the variables of this
// process's own environment that every agent gets and that needs names, then the variables of the
// agent's configuration, then the variables below. Later values win.
//
//	FAIRLEAD_AGENT         its name
//	FAIRLEAD_SESSION       the session's id, such as coder-17
//	FAIRLEAD_SESSION_KIND  session, cleanup, foreign, turn or lead
//	FAIRLEAD_ATTEMPT       the number of the attempt, from 1
//	FAIRLEAD_MODEL         the model that the agent should use, if one is configured
//	FAIRLEAD_CHANNEL       of a turn: the channel
//	FAIRLEAD_TURN          of a turn: its number; missing if the answer needs no turn
//	FAIRLEAD_MCP_URL       the address of the team's tools, if they are offered
//	FAIRLEAD_MCP_TOKEN     the token for them: a secret of this session
//	FAIRLEAD_MCP_STDIO     the same tools for programs that start their own server: a command as a JSON list
//
// A process that receives several turns sees only the first of them here.
func Environment(a Agent, s Session, needs ...string) []string {
	vars := make(map[string]string)
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && (matches(inherited, name) || matches(needs, name)) {
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
		command := encode.JSON(a.MCP.Stdio)
		vars[VariableMCPStdio] = string(command)
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
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
