package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
)

func eventsCommand(a *app) *cobra.Command {
	var query apiclient.JournalQuery
	var follow bool
	var since, until string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened: each change in the journal, one per line",
		Long: `A line has the number of the change, its time, and in words what happened to which agent, run, channel or
question, and who did it. --verbose adds the rule, the states and the event. --follow continues with new
changes. A word such as yesterday is its beginning for --since and its end for --until; last-night is from
18:00 to 08:00.`,
		Example: `  fairlead events --tail 20
  fairlead events --agent coder --since last-night
  fairlead events --agent coder --since 22:00 --until 07:00
  fairlead events --agent coder --follow
  fairlead events --json --after 1200`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			var err error
			if query.Since, query.Until, err = cli.SpanOf(since, until, time.Now()); err != nil {
				return &cli.Coded{Code: cli.ExitUsage, Err: err}
			}
			if follow && client.Offline != nil {
				return client.Offline
			}
			return agents.Events(ctx, a.App, client.Client, query, follow)
		}),
	}
	cmd.Flags().Uint64Var(&query.After, "after", 0, "only what came after this sequence number")
	cmd.Flags().IntVar(&query.Tail, "tail", 0, "begin with the newest so many, at most 1000")
	cmd.Flags().StringVar(&query.Entity, "entity", "", "only this one, as in session/coder or team/team")
	cmd.Flags().StringVar(&query.Agent, "agent", "", "only what this agent did: its orders, sessions, questions and turns")
	cmd.Flags().StringVar(&since, "since", "", "only what came after: how long ago, as in 8h or 2d, a time as in 22:00, or today, yesterday, last-night")
	cmd.Flags().StringVar(&until, "until", "", "only what came before")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}
