package main

import (
	"github.com/spf13/cobra"
)

// dispatchCommand groups the commands about a dispatch.
func dispatchCommand(a *app) *cobra.Command {
	var path string
	cmd := noun(&cobra.Command{
		Use:   "dispatch",
		Short: "Send requests to the agents whose descriptions fit, through a coordinator",
		Long: `A dispatch is a folder, by default in .claude/agent-state-machine. Its coordinator (MAIN) changes no
code. Each input starts a conversation with a folder of its own, and goes to the agent whose
description fits best. All state is in the folder, so these commands work without a daemon too; if
a daemon runs, agents of fairlead.yaml do the work.

The commands act on the open dispatch that was started last; --path names another one.`,
		Example: `  fairlead dispatch start
  fairlead dispatch input "write a hello world in Python" --wait
  fairlead dispatch status`,
	}, sessionStartCommand(a, &path), sessionInputCommand(a, &path), sessionDelegateCommand(a, &path), sessionDoneCommand(a, &path), sessionRespondCommand(a, &path),
		sessionStatusCommand(a, &path), sessionListCommand(a), sessionEndCommand(a, &path), sessionLogCommand(a, &path), routeCommand(a, &path), policyCommand(a, &path))
	cmd.PersistentFlags().StringVar(&path, "path", "", "the dispatch `folder`, or its name (default: the open one that was started last)")
	return cmd
}

// oldPath adds --session, which some commands had in place of --path.
func oldPath(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "session", "", "the dispatch folder, or its name")
	if err := cmd.Flags().MarkHidden("session"); err != nil {
		panic("fairlead: " + err.Error())
	}
}
