package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

// PolicyAsked is a tool call that somebody thinks of.
type PolicyAsked struct{ State, Agent, Tool, Input, Session, Dir string }

// IsObject says whether a text is one JSON object, whatever is in it.
func IsObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}

// PolicyAnswer is what `fairlead dispatch policy check --json` prints.
type PolicyAnswer struct {
	Decision   string `json:"decision"` // allow, deny or, of an agent, ask
	Reason     string `json:"reason"`
	DelegateTo string `json:"delegate_to"`
	Row        string `json:"row,omitempty"`
	Capability string `json:"capability,omitempty"`
	Session    string `json:"session,omitempty"` // by whose paths it was judged
}

// Narrowed holds an allowance against the bounds of whoever is in that state, where fairlead.yaml has
// such an agent: the daemon does, when it runs the session.
func Narrowed(a *cli.App, verdict policy.Verdict, is dispatch.Dispatch, folder *dispatchfolder.Folder, main bool, state string, call policy.Call) policy.Verdict {
	conf, err := a.MaybeConfig()
	if err != nil || conf == nil || folder != nil && is.Host != dispatch.Fairlead {
		return verdict
	}
	if main {
		state = is.Lead
	}
	agent, ok := conf.Agent(state)
	if !ok {
		return verdict
	}
	if call.Dir == "" {
		call.Dir = agent.Workspace
	}
	return dispatchfolder.Narrowed(verdict, agent.Permissions.Bounds(), is, folder, agent.Workspace, main, call, nil)
}

// StateNamed is the state that somebody means who writes it as transitions show it: in capitals.
func StateNamed(is dispatch.Dispatch, name string) string {
	if is.Knows(name) {
		return name
	}
	for _, d := range is.Agents {
		if dispatch.Display(d.Name) == name {
			return d.Name
		}
	}
	return name
}

// RepoOfSession is the repository that a session is about.
func RepoOfSession(a *cli.App, folder *dispatchfolder.Folder) string {
	if repo := repoOf(folder.Path()); repo != "" {
		return repo
	}
	return a.Dir
}

// DelegateTo is the agent that could do what is denied.
func DelegateTo(is dispatch.Dispatch, verdict policy.Verdict) string {
	return dispatchfolder.Best(is, verdict.Capability).Best
}

// PrintVerdict prints whether a state may do something, and why.
func PrintVerdict(a *cli.App, answer PolicyAnswer, state string, agents int) error {
	text := answer.Decision
	if answer.Row != "" && a.Verbose {
		text += " [" + answer.Row + "]"
	}
	if answer.Reason != "" {
		text += ": " + answer.Reason
	}
	fmt.Fprintln(a.Out, cli.Plain(text))
	if answer.Decision == "allow" || !slices.Contains([]string{dispatch.Main, dispatch.Desk}, state) {
		return nil
	}
	switch {
	case answer.DelegateTo != "":
		text = "delegate it to " + answer.DelegateTo
	case agents == 0:
		text = "nobody is described that it could be delegated to; describe an agent in .claude/agents"
	default:
		text = "no agent's description fits; one could be made in .claude/agents"
	}
	_, err := fmt.Fprintln(a.Out, cli.Plain(text))
	return err
}
