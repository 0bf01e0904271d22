package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
)

func upCommand(a *app) *cobra.Command {
	var opts daemon.UpOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the daemon: adopt running sessions and start agents",
		Long: `It starts Fairlead on this workspace, in the foreground. It locks the workspace, adopts every
session that outlived the last daemon, reads what was written into the agents' files meanwhile, and
only then starts agents.

When it is ready it prints one line on standard output: ready, and the address of Mission Control.
The address holds no secret. On a terminal with a display it opens the page and signs the browser
in; elsewhere ` + "`fairlead open`" + ` does. Ctrl-C, SIGTERM or ` + "`fairlead down`" + ` end it: sessions finish first, and a second
signal ends them. If it is killed in any other way, the agents keep working and the next
` + "`fairlead up`" + ` adopts them.

It prints on standard error what it adopts and what it will do. --plan prints that and does nothing:
no change is journaled, no file written, no process touched. Each agent has a line (adopt, start,
leave at rest, withdraw, ask), and below it the evidence: + agrees with the journal, ! contradicts
it. If a daemon runs already, it says so.`,
		Example: `  fairlead up
  fairlead up --detach --no-browser
  fairlead up --plan`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Plan && opts.Detach {
				return cli.Usage(cmd, errors.New("--plan starts nothing that could be left in the background with --detach; take one of the two"))
			}
			if opts.Plan {
				return daemon.Plan(cmd.Context(), a.App)
			}
			if opts.Detach {
				return daemon.UpDetached(cmd.Context(), a.App, opts)
			}
			return daemon.Up(cmd.Context(), a.App, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Listen, "listen", "", "address to serve on (default: listen in fairlead.yaml; port 0 picks one)")
	cmd.Flags().BoolVar(&opts.Detach, "detach", false, "return when it serves, and go on in the background")
	cmd.Flags().BoolVar(&opts.NoBrowser, "no-browser", false, "do not open Mission Control in a browser")
	cmd.Flags().BoolVarP(&opts.Verbose, "verbose", "v", false, "log what is found and done")
	cmd.Flags().BoolVar(&opts.Plan, "plan", false, "say what would be found again and done, and do nothing")
	return cmd
}
