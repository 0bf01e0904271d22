package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
)

func compactCommand(a *app) *cobra.Command {
	opts := daemon.CompactOptions{Older: cli.Days(7 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Compress old output and the old part of the journal",
		Long: `It compresses the output of sessions that ended before --older-than, and the changes of the journal
from before that. Nothing is lost: the hash chain stays, and search, the output in Mission Control,
transcripts, --at and the time slider show the same as before. Output becomes spool.gz in the
session's folder, which zcat reads, and changes stay in the journal's file.

It works with and without a daemon, and may be stopped at any time. While a daemon runs, the
journal's file keeps its size and uses the freed part for its next changes; without one, the file
becomes smaller.

` + "`team.disk`" + ` in fairlead.yaml is the disk that .fairlead should take. Near it, ` + "`fairlead up`" + `,
` + "`fairlead doctor`" + ` and a notice say so. --dry-run estimates the output from an eighth of it.`,
		Example: `  fairlead compact --dry-run
  fairlead compact --older-than 12h`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Compact(cmd.Context(), a.App, opts) },
	}
	cmd.Flags().Var(&opts.Older, "older-than", "only what ended so long ago, as 30d or 12h")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "say what would be freed, and change nothing")
	return cmd
}
