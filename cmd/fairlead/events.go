package main

import (
	"context"

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
	var agent string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened: each change in the journal, one per line",
		Long: `A line has the sequence number, the time, the rule, the entity, its state before and after, the
event, and the actor. --follow continues with new changes.`,
		Example: `  fairlead events --tail 20
  fairlead events --agent coder --follow
  fairlead events --json --after 1200`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			if agent != "" {
				entity = "control/" + agent
			}
			if follow {
				if client.Offline != nil {
					return client.Offline
				}
				return agents.Follow(ctx, a.App, client.Client, apiclient.EventsQuery{After: int64(after), Tail: tail, Entity: entity}) //nolint:gosec // no journal is that long
			}
			return agents.Events(ctx, a.App, client.Client, apiclient.JournalQuery{After: after, Tail: tail, Entity: entity})
		}),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "only what came after this sequence number")
	cmd.Flags().IntVar(&tail, "tail", 0, "begin with the newest so many")
	cmd.Flags().StringVar(&entity, "entity", "", "only this one, as in session/coder or team/team")
	cmd.Flags().StringVar(&agent, "agent", "", "only the control of this agent: short for --entity control/AGENT")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}
