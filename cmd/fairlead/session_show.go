package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
)

func sessionStatusCommand(a *app, path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of a dispatch, and its conversations",
		Long: `It shows which agent is in charge, the tasks, the waiting requests, the last denied tool calls, and
each conversation with its files.`,
		Example: `  fairlead dispatch status
  fairlead dispatch status --path 20260801_1015 --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchcli.Session(a.App, *path)
			if err != nil {
				return err
			}
			conversations, err := found.Folder.Conversations()
			if err != nil {
				return err
			}
			status := dispatchcli.SessionStatusOf(found, conversations)
			if status.Denials, err = dispatchcli.DenialsOf(found); err != nil {
				return err
			}
			return a.Show(status, func() error { return dispatchcli.PrintSession(a.App, status) })
		},
	}
}

func sessionListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the dispatches of the repository, the open ones first",
		Long:    "The newest come first.",
		Example: "  fairlead dispatch list",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchfolder.List(a.Dir)
			if err != nil {
				return err
			}
			list := make([]dispatchcli.SessionListed, 0, len(found))
			for _, f := range slices.Backward(found) {
				list = append(list, dispatchcli.SessionListedOf(f))
			}
			slices.SortStableFunc(list, func(a, b dispatchcli.SessionListed) int {
				switch {
				case a.Open == b.Open:
					return 0
				case a.Open:
					return -1
				default:
					return 1
				}
			})
			return a.Show(map[string]any{"sessions": list}, func() error { return dispatchcli.PrintSessions(a.App, list) })
		},
	}
}
