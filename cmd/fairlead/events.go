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
	var after uint64
	var tail int
	var entity string
	var follow bool
	var agent, since, until string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened: each change in the journal, one per line",
		Long: `A line has the sequence number, the time, the rule, the entity, its state before and after, the
event, and the actor. --follow continues with new changes.`,
		Example: `  fairlead events --tail 20
  fairlead events --agent coder --since 22:00 --until 07:00
  fairlead events --agent coder --follow
  fairlead events --json --after 1200`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			span, err := agents.SpanOf(agent, since, until, time.Now())
			if err != nil {
				return &cli.Coded{Code: cli.ExitUsage, Err: err}
			}
			if from := span.From; !from.IsZero() && after == 0 {
				if after, err = client.SeqAt(ctx, from); err != nil {
					return err
				}
			}
			if follow {
				if client.Offline != nil {
					return client.Offline
				}
				return agents.Follow(ctx, a.App, client.Client, span, apiclient.EventsQuery{After: int64(after), Tail: tail, Entity: entity}) //nolint:gosec // no journal is that long
			}
			return agents.Events(ctx, a.App, client.Client, span, apiclient.JournalQuery{After: after, Tail: tail, Entity: entity})
		}),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "only what came after this sequence number")
	cmd.Flags().IntVar(&tail, "tail", 0, "begin with the newest so many")
	cmd.Flags().StringVar(&entity, "entity", "", "only this one, as in session/coder or team/team")
	cmd.Flags().StringVar(&agent, "agent", "", "only what this agent did: its orders, sessions, questions and turns")
	cmd.Flags().StringVar(&since, "since", "", "only what came after: how long ago, as in 8h or 2d, or a time")
	cmd.Flags().StringVar(&until, "until", "", "only what came before")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}
