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

// PolicyAsked is a tool call to check.
type PolicyAsked struct{ State, Agent, Tool, Input, Session, Dir string }

// IsObject reports whether a text is one JSON object.
func IsObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}

// PolicyAnswer is what `fairlead dispatch policy check --json` prints.
type PolicyAnswer struct {
	Decision   string `json:"decision"` // allow, deny or, for an agent, ask
	Reason     string `json:"reason"`
	DelegateTo string `json:"delegate_to"`
	Row        string `json:"row,omitempty"`
	Capability string `json:"capability,omitempty"`
	Session    string `json:"session,omitempty"` // the session whose paths apply
}

// Narrowed limits an allowed call to the bounds of the agent in that state, if fairlead.yaml has
// one: the daemon does the same if it runs the session.
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

// StateNamed returns the state for a name in any case: transitions show names in capitals.
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

// RepoOfSession returns the repository of a session.
func RepoOfSession(a *cli.App, folder *dispatchfolder.Folder) string {
	if repo := repoOf(folder.Path()); repo != "" {
		return repo
	}
	return a.Dir
}

// DelegateTo returns the agent that could do what is denied.
func DelegateTo(is dispatch.Dispatch, verdict policy.Verdict) string {
	return dispatchfolder.Best(is, verdict.Capability).Best
}

// PrintVerdict prints whether a state may make a call, and why.
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
		text = "no agent is described, so it cannot be delegated; describe one in .claude/agents"
	default:
		text = "no agent's description fits; one could be made in .claude/agents"
	}
	_, err := fmt.Fprintln(a.Out, cli.Plain(text))
	return err
}
