package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
)

func downCommand(a *app) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the daemon; sessions finish first",
		Long: `It asks the daemon to stop and waits until it has ended. Running sessions finish, and no new session
starts. Each agent_state.json then says pause; the desired states are kept for the next
` + "`fairlead up`" + `. --now ends the sessions with all their processes; a conversation that this cuts off
continues with the next ` + "`fairlead up`" + ` (` + "`resume`" + ` in fairlead.yaml). Ctrl-C ends only the waiting.`,
		Example: `  fairlead down
  fairlead down --now`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Down(cmd.Context(), a.App, now) },
	}
	cmd.Flags().BoolVar(&now, "now", false, "end sessions instead of letting them finish")
	return cmd
}

func reloadCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Load fairlead.yaml again in the running daemon",
		Long: `It makes the daemon load fairlead.yaml again, prints what changed, and returns when the daemon serves
with it. If the file has faults, it prints them with their lines, and the daemon keeps its
configuration. Running sessions continue with the settings that they started with.`,
		Example: `  fairlead reload
  fairlead reload --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Reload(cmd.Context(), a.App) },
	}
}
