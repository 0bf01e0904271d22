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

// VariableWall is set for a process that is inside a wall (package sandbox). What makes the wall sets it, because only the
// host of a session knows whether there is one.
const VariableWall = "FAIRLEAD_WALL"

// inherited are the variables of Fairlead's own environment that every agent gets. The others may be secrets of
// other agents or programs. A name that ends with * is a prefix.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "TZ", "TMPDIR", "XDG_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
}

// Needing is a Driver whose programs get further variables of Fairlead's own environment: names, or
// prefixes that end with *. FLAG?NAME is NAME if the process has the variable FLAG, other than 0 and false. The agent's
// command determines them.
type Needing interface{ Needs(a Agent) []string }

// Needs returns the further variables that an agent's driver asks for, without conditions.
func Needs(d Driver, a Agent) []string {
	needing, ok := d.(Needing)
	if !ok {
		return nil
	}
	return due(needing.Needs(a), variables(a.Env), os.Environ())
}

// due returns the names of those entries of a list whose condition is met.
func due(list []string, vars map[string]string, environ []string) (names []string) {
	for _, entry := range list {
		flag, name, conditional := strings.Cut(entry, "?")
		if !conditional {
			names = append(names, entry)
			continue
		}
		value, set := vars[flag]
		if !set {
			value, set = lookUp(environ, flag)
		}
		if set && value != "0" && value != "false" {
			names = append(names, name)
		}
	}
	return names
}

func lookUp(environ []string, name string) (value string, set bool) {
	name += "="
	for _, kv := range environ {
		if value, set = strings.CutPrefix(kv, name); set {
			return value, true
		}
	}
	return "", false
}

// variables are the valid entries of an environment; later ones win.
func variables(env []string) map[string]string {
	vars := make(map[string]string)
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return vars
}

// inherit adds the variables of an environment that a list names and that are not there yet.
func inherit(vars map[string]string, environ, list []string) {
	list = due(list, vars, environ)
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if _, has := vars[name]; ok && !has && matches(list, name) {
			vars[name] = value
		}
	}
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
//	FAIRLEAD_MCP_URL       the address of the team's tools, if they are offered on this machine
//	FAIRLEAD_MCP_TOKEN     the token for them: a secret of this session; missing in a view, which has a socket of its own
//	FAIRLEAD_MCP_STDIO     the same tools for programs that start their own server: a command as a JSON list
//
// A process that receives several turns sees only the first of them here.
func Environment(a Agent, s Session, needs ...string) []string {
	vars := variables(a.Env)
	if list := slices.Concat(inherited, needs); a.OtherHost != "" {
		deferred(vars, list)
	} else {
		inherit(vars, os.Environ(), list)
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
		vars[VariableMCPURL] = a.MCP.URL
	}
	if a.MCP.Token != "" {
		vars[VariableMCPToken] = a.MCP.Token
	}
	if len(a.MCP.Stdio) > 0 {
		command := encode.JSON(a.MCP.Stdio)
		vars[VariableMCPStdio] = string(command)
	}
	return sorted(vars)
}

// sorted returns variables as an environment.
func sorted(vars map[string]string) []string {
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
	case a.OtherHost != "":
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the workspace of agent %s: %w", a.Name, err)
	case !info.IsDir():
		return fmt.Errorf("the workspace %s of agent %s is not a folder; move the file away, or correct `workspace`", a.Workspace, a.Name)
	}
	return nil
}
