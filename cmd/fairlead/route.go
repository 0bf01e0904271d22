package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
)

func routeCommand(a *app, path *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route TEXT...",
		Short: "Show which agent's description fits an input, and why",
		Long: `It ranks the agents of the open dispatch; if none is open, the agents that a new dispatch would have.
It changes nothing. Words that an input and a description share count; rare words count more.
If no agent reaches the threshold, MAIN keeps the input. As TEXT - reads standard input.`,
		Example: `  fairlead dispatch route "optimize the SQL query"`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.Spoken(words)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			found, err := dispatchcli.SessionOrNew(a.App, *path)
			if err != nil {
				return err
			}
			orders, err := dispatchcli.Orders(a.App)
			if err != nil {
				return err
			}
			ranking := orders.RankDispatch(found.Session, text)
			return a.Show(ranking, func() error { return dispatchcli.PrintRanking(a.App, ranking, len(found.Session.Agents)) })
		},
	}
	oldPath(cmd, path)
	return cmd
}
