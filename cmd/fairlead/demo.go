package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/demo"
)

func demoCommand(a *app) *cobra.Command {
	var opts demo.DemoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try Fairlead with scripted agents in a scratch repository",
		Long: `It makes a scratch git repository, starts Mission Control, and runs scripted agents that do real
work there: they write files, run tests and commit. Two do three tasks, each in a folder of its own:
one task comes back with a comment, one with a conflict, and two then wait for you. Three agents work
side by side, and one of those fails at times. Two talk in a channel, review each other's work, and
answer you. One leads a crew of eight. A workflow writes notes, runs tests, and then waits for your approval in the inbox.
It needs git, and no account, key or network.

--headless with --for runs it for a while without a page, then stops and prints what happened; with
--json as one line.`,
		Example: `  fairlead demo
  fairlead demo --headless --for 20s --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Headless && opts.Length == 0 {
				opts.Length = 20 * time.Second
			}
			return demo.Demo(cmd.Context(), a.App, opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Headless, "headless", false, "no page and no browser")
	cmd.Flags().DurationVar(&opts.Length, "for", 0, "stop after this time (default: with Ctrl-C; headless 20s)")
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "leave the scratch repository behind")
	cmd.Flags().StringVar(&opts.Listen, "listen", "127.0.0.1:0", "address to serve on")
	return cmd
}
