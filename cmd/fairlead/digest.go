package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
)

func digestCommand(a *app) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "digest",
		Short: "Say in a few lines what happened since you looked last",
		Long: `What failed, what finished, what was asked and answered, and what it cost: the same lines as "Since
you looked" in Mission Control. Without --since it begins where everything was marked as seen there, or a day
ago. It prints twelve lines, and up to a hundred with --verbose.`,
		Example: `  fairlead digest --since 8h
  fairlead digest --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			from, _, err := cli.SpanOf(since, "", time.Now())
			if err != nil {
				return &cli.Coded{Code: cli.ExitUsage, Err: err}
			}
			d, err := client.Digest(ctx, from)
			switch {
			case err != nil:
				return err
			case a.JSON:
				return a.PrintJSON(d)
			}
			return agents.PrintDigest(a.App, d)
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "since then: how long ago, as in 8h or 2d, a time as in 22:00, or yesterday, last-night")
	return cmd
}
