package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
)

func pruneCommand(a *app) *cobra.Command {
	var opts runs.PruneOptions
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Archive old runs: by age, by number, or both",
		Long: `It moves the folders of completed runs from .agents/runs to .agents/archive/runs. --older-than
selects runs that have not changed for that long, --keep all but that many of the newest; with
both flags a run must match both. Nothing is deleted without --delete. Failed and cancelled runs
stay in place without --all. A run that is not over is never moved.
` + "`fairlead run resume RUN`" + ` brings an archived run back.`,
		Example: `  fairlead run prune --older-than 30d --dry-run
  fairlead run prune --keep 20`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Older == 0 && !cmd.Flags().Changed("keep") {
				return cli.Usage(cmd, errors.New("which runs? Give --older-than 30d, --keep 20, or both"))
			}
			if opts.Keep < 0 {
				return cli.Usage(cmd, errors.New("--keep is less than nothing"))
			}
			return runs.Prune(cmd.Context(), a.App, opts)
		},
	}
	cmd.Flags().Var(&opts.Older, "older-than", "only runs that have not changed for so long, as 30d or 12h")
	cmd.Flags().IntVar(&opts.Keep, "keep", 0, "leave the newest so many where they are")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&opts.Delete, "delete", false, "delete instead of archiving: there is no way back")
	cmd.Flags().BoolVar(&opts.All, "all", false, "also runs that have failed or were cancelled")
	return cmd
}
