package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/controller/questions"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

func (a *app) policyVerb(path *string) *cobra.Command {
	return noun(&cobra.Command{
		Use:     "policy",
		Short:   "Ask what an agent may do",
		Long:    "It asks the same rules that are enforced when an agent runs.",
		Example: `  fairlead dispatch policy check --tool Bash --input '{"command":"git push"}'`,
	}, a.policyCheckVerb(path))
}

// policyAsked is a tool call that somebody thinks of.
type policyAsked struct{ state, agent, tool, input, session, dir string }

func (a *app) policyCheckVerb(path *string) *cobra.Command {
	var asked policyAsked
	cmd := &cobra.Command{
		Use:   "check --tool TOOL --input JSON",
		Short: "Print whether a tool call would be allowed; nothing is run",
		Long: `It uses the same rules as the hooks, the drivers and the sandbox. --state is MAIN or an agent.
--tool and --input are the tool and its arguments as the agent program names them:
Bash {"command":…}, Write {"file_path":…,"content":…}, Edit, NotebookEdit, mcp__… .

It applies the rules of the open dispatch, or of the one that --path names, including its output
folder and the paths that its input named. If no dispatch is open, only the rules of the state
apply, not those about where files belong.

With --agent it applies the permissions of an agent in fairlead.yaml: its bounds (such as can_write)
and its patterns (allow, deny). It then ignores dispatches and saved answers. If no rule matches,
a person would be asked.

Exit codes: 0 allowed, 3 denied, 4 a person would be asked.`,
		Example: `  fairlead dispatch policy check --state MAIN --tool Write --input '{"file_path":"a.go","content":""}'
  fairlead dispatch policy check --agent coder --tool Bash --input '{"command":"git push"}'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case asked.tool == "":
				return usage(cmd, errors.New("--tool is missing: Bash, Write, Edit, Read, …"))
			case !isObject(asked.input):
				return usage(cmd, errors.New(`--input is no JSON object; for Bash it is {"command":"git status"}`))
			case asked.agent != "" && (cmd.Flags().Changed("state") || *path != ""):
				return usage(cmd, errors.New("--agent cannot be combined with --state or --path"))
			case asked.agent != "":
				return a.agentCheck(cmd, asked)
			}
			asked.session = *path
			return a.policyCheck(cmd, asked)
		},
	}
	cmd.Flags().StringVar(&asked.state, "state", dispatch.Main, "MAIN, or an agent's name")
	cmd.Flags().StringVar(&asked.agent, "agent", "", "an agent of fairlead.yaml, by whose permissions it is answered")
	cmd.Flags().StringVar(&asked.tool, "tool", "", "the tool's name")
	cmd.Flags().StringVar(&asked.input, "input", "{}", "its arguments, a JSON object")
	oldPath(cmd, path)
	cmd.Flags().StringVar(&asked.dir, "cwd", "", "the folder in which the call is made (default: the repository)")
	return cmd
}

// isObject says whether a text is one JSON object, whatever is in it.
func isObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}

// policyAnswer is what `fairlead dispatch policy check --json` prints.
type policyAnswer struct {
	Decision   string `json:"decision"` // allow, deny or, of an agent, ask
	Reason     string `json:"reason"`
	DelegateTo string `json:"delegate_to"`
	Row        string `json:"row,omitempty"`
	Capability string `json:"capability,omitempty"`
	Session    string `json:"session,omitempty"` // by whose paths it was judged
}

func (a *app) policyCheck(cmd *cobra.Command, asked policyAsked) error {
	is, folder, err := a.sessionOrNew(asked.session)
	if err != nil {
		return err
	}
	asked.state = stateNamed(is, asked.state)
	main := asked.state == dispatch.Main || asked.state == dispatch.Desk
	if !main && folder != nil && !is.Knows(asked.state) {
		return usage(cmd, fmt.Errorf("the dispatch has no agent %q; `fairlead dispatch status --json` names them", line(asked.state, stepWidth)))
	}
	call := policy.Call{Tool: asked.tool, Input: json.RawMessage(asked.input), Dir: asked.dir}
	repo := a.dir
	if folder != nil {
		repo = a.repoOfSession(folder)
	}
	verdict := policy.Verdict{Allow: true, Reason: "the session is closed, and nothing is enforced any more"}
	if is.Phase != dispatch.Closed {
		verdict = dispatchfolder.JudgeAs(is, folder, repo, main, call)
		if verdict.Allow {
			verdict = a.narrowed(verdict, is, folder, main, asked.state, call)
		}
	}
	answer := policyAnswer{Decision: "allow", Reason: verdict.Reason, Row: verdict.Row, Capability: verdict.Capability}
	if folder != nil {
		answer.Session = folder.Path()
	}
	if !verdict.Allow {
		answer.Decision = "deny"
		if main {
			answer.DelegateTo = delegateTo(is, verdict)
		}
	}
	if a.json {
		if err := a.printJSON(answer); err != nil {
			return err
		}
	} else if err := a.printVerdict(answer, asked.state, len(is.Agents)); err != nil {
		return err
	}
	if !verdict.Allow {
		return &coded{exitRefused, errSaid}
	}
	return nil
}

// narrowed holds an allowance against the bounds of whoever is in that state, where fairlead.yaml has
// such an agent: the daemon does, when it runs the session.
func (a *app) narrowed(verdict policy.Verdict, is dispatch.Dispatch, folder *dispatchfolder.Folder, main bool, state string, call policy.Call) policy.Verdict {
	conf, err := a.maybeConfig()
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

// agentCheck says what an agent's program would be answered.
func (a *app) agentCheck(cmd *cobra.Command, asked policyAsked) error {
	conf, err := a.load()
	if err != nil {
		return err
	}
	agent, ok := conf.Agent(asked.agent)
	if !ok {
		return usage(cmd, fmt.Errorf("fairlead.yaml has no agent %q", line(asked.agent, stepWidth)))
	}
	dir := asked.dir
	if dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(agent.Workspace, dir)
	}
	var answer policyAnswer
	call := policy.Call{Tool: asked.tool, Input: json.RawMessage(asked.input), Dir: dir}
	if answer.Decision, answer.Reason, err = questions.AnswerTo(&agent, call); err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(answer)
	} else {
		_, err = fmt.Fprintln(a.out, plain(answer.Decision+": "+answer.Reason))
	}
	switch {
	case err != nil:
		return err
	case answer.Decision == "allow":
		return nil
	case answer.Decision == "deny":
		return &coded{exitRefused, errSaid}
	}
	return &coded{exitWaits, errSaid}
}

// stateNamed is the state that somebody means who writes it as transitions show it: in capitals.
func stateNamed(is dispatch.Dispatch, name string) string {
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

// repoOfSession is the repository that a session is about.
func (a *app) repoOfSession(folder *dispatchfolder.Folder) string {
	if repo := repoOf(folder.Path()); repo != "" {
		return repo
	}
	return a.dir
}

// delegateTo is the agent that could do what is denied.
func delegateTo(is dispatch.Dispatch, verdict policy.Verdict) string {
	return dispatchfolder.Best(is, verdict.Capability).Best
}

func (a *app) printVerdict(answer policyAnswer, state string, agents int) error {
	text := answer.Decision
	if answer.Row != "" && a.verbose {
		text += " [" + answer.Row + "]"
	}
	if answer.Reason != "" {
		text += ": " + answer.Reason
	}
	fmt.Fprintln(a.out, plain(text))
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
	_, err := fmt.Fprintln(a.out, plain(text))
	return err
}
