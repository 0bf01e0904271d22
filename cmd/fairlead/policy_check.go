package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/claudehook"
	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/controller/questions"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/sandbox"
)

func policyCommand(a *app, path *string) *cobra.Command {
	return noun(&cobra.Command{
		Use:     "policy",
		Short:   "Ask what an agent may do",
		Long:    "It asks the same rules that are enforced when an agent runs.",
		Example: `  fairlead dispatch policy check --tool Bash --input '{"command":"git push"}'`,
	}, policyCheckCommand(a, path))
}

func policyCheckCommand(a *app, path *string) *cobra.Command {
	var asked dispatchcli.PolicyAsked
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
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case asked.Tool == "":
				return cli.Usage(cmd, errors.New("--tool is missing: Bash, Write, Edit, Read, …"))
			case !dispatchcli.IsObject(asked.Input):
				return cli.Usage(cmd, errors.New(`--input is no JSON object; for Bash it is {"command":"git status"}`))
			case asked.Agent != "" && (cmd.Flags().Changed("state") || *path != ""):
				return cli.Usage(cmd, errors.New("--agent cannot be combined with --state or --path"))
			case asked.Agent != "":
				return a.agentCheck(cmd, asked)
			}
			asked.Session = *path
			return a.policyCheck(cmd, asked)
		},
	}
	cmd.Flags().StringVar(&asked.State, "state", dispatch.Main, "MAIN, or an agent's name")
	cmd.Flags().StringVar(&asked.Agent, "agent", "", "an agent of fairlead.yaml, by whose permissions it is answered")
	cmd.Flags().StringVar(&asked.Tool, "tool", "", "the tool's name")
	cmd.Flags().StringVar(&asked.Input, "input", "{}", "its arguments, a JSON object")
	oldPath(cmd, path)
	cmd.Flags().StringVar(&asked.Dir, "cwd", "", "the folder in which the call is made (default: the repository)")
	return cmd
}

func (a *app) policyCheck(cmd *cobra.Command, asked dispatchcli.PolicyAsked) error {
	found, err := dispatchcli.SessionOrNew(a.App, asked.Session)
	if err != nil {
		return err
	}
	is, folder := found.Session, found.Folder
	asked.State = dispatchcli.StateNamed(is, asked.State)
	main := asked.State == dispatch.Main || asked.State == dispatch.Desk
	if !main && folder != nil && !is.Knows(asked.State) {
		return cli.Usage(cmd, fmt.Errorf("the dispatch has no agent %q; `fairlead dispatch status --json` names them", cli.Line(asked.State, cli.StepWidth)))
	}
	call := policy.Call{Tool: asked.Tool, Input: json.RawMessage(asked.Input), Dir: asked.Dir}
	if _, why := sandbox.Supported(); why == "" { // Claude Code's hook then runs MAIN's commands in the sandbox
		home, _ := os.UserHomeDir() // none: hooks of the user are not found
		others := claudehook.Hook{Env: os.Getenv, Home: home}.OtherHooks(a.Dir)
		call.Confined = folder == nil || is.Host == dispatch.Claude && !folder.Unconfined() && len(others) == 0
	}
	answer := dispatchcli.Judged(a.App, found, asked.State, call)
	if err := a.Show(answer, func() error { return dispatchcli.PrintVerdict(a.App, answer, asked.State, len(is.Agents)) }); err != nil {
		return err
	}
	if answer.Decision == "deny" {
		return &cli.Coded{Code: cli.ExitRefused, Err: cli.ErrSaid}
	}
	return nil
}

// agentCheck says what an agent's program would be answered.
func (a *app) agentCheck(cmd *cobra.Command, asked dispatchcli.PolicyAsked) error {
	conf, err := a.Load()
	if err != nil {
		return err
	}
	agent, ok := conf.Agent(asked.Agent)
	if !ok {
		return cli.Usage(cmd, fmt.Errorf("fairlead.yaml has no agent %q", cli.Line(asked.Agent, cli.StepWidth)))
	}
	dir := asked.Dir
	if dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(agent.Workspace, dir)
	}
	var answer dispatchcli.PolicyAnswer
	call := policy.Call{Tool: asked.Tool, Input: json.RawMessage(asked.Input), Dir: dir}
	if answer.Decision, answer.Reason, err = questions.AnswerTo(&agent, call); err != nil {
		return err
	}
	err = a.Say(answer, "%s", cli.Plain(answer.Decision+": "+answer.Reason))
	switch {
	case err != nil:
		return err
	case answer.Decision == "allow":
		return nil
	case answer.Decision == "deny":
		return &cli.Coded{Code: cli.ExitRefused, Err: cli.ErrSaid}
	}
	return &cli.Coded{Code: cli.ExitWaits, Err: cli.ErrSaid}
}
