package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

func sessionStartCommand(a *app, path *string) *cobra.Command {
	var mode, host string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a dispatch",
		Long: `It makes the folder, reads the agent descriptions (.claude/agents of the project, then of the user,
and fairlead.yaml), and is in state MAIN. A folder that exists already is refused.

  orchestrator  an agent reports back to MAIN when it is done
  interactive   an agent may ask another one and gets its answer; then back to MAIN
  response      there is no MAIN: messages in the folder's inbox/ go to the agents that fit

--host says what does the work: fairlead (the daemon, with agents of fairlead.yaml), or none (people
or programs do it and report with the commands of this group). The default is fairlead if a daemon
runs and fairlead.yaml names dispatch.main or describes an agent, otherwise none.`,
		Example: `  fairlead dispatch start
  fairlead dispatch start --mode interactive --host none`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if host != "" && host != dispatchcli.HostNone && host != dispatchcli.HostFairlead {
				return cli.Usage(cmd, fmt.Errorf("there is no host %q; it is none or fairlead (Claude Code begins its own by /agent-state-machine)", host))
			}
			if !slices.Contains(dispatch.Modes(), dispatch.Mode(mode)) {
				return cli.Usage(cmd, fmt.Errorf("there is no mode %q; it is orchestrator, interactive or response", mode))
			}
			return dispatchcli.SessionStart(cmd.Context(), a.App, *path, dispatch.Mode(mode), host)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", string(dispatch.Orchestrator), "orchestrator, interactive or response")
	cmd.Flags().StringVar(&host, "host", "", "who does the work: none or fairlead")
	words := []string{
		"orchestrator\tagents report back to MAIN", "interactive\tagents may ask other agents", "response\tmessages of an inbox, no MAIN",
	}
	if err := errors.Join(
		cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)),
		cmd.RegisterFlagCompletionFunc("host", cobra.FixedCompletions([]string{dispatchcli.HostFairlead, dispatchcli.HostNone}, cobra.ShellCompDirectiveNoFileComp)),
	); err != nil {
		panic("fairlead: session start lacks a flag: " + err.Error())
	}
	return cmd
}
