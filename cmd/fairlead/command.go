package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
)

func orderCommand(a *app, verb string) *cobra.Command {
	var opts agents.Ordered
	var all bool
	about := agents.Commands[verb]
	cmd := &cobra.Command{
		Use:   verb + " AGENT...",
		Short: about.Short,
		Long: about.Long + `

The command returns when the order is on disk. With --wait it returns when the order has taken effect:
a started agent runs, a stopped one has stopped, a single session is over. Exit code 1 means that the
session failed.`,
		Example:           "  fairlead " + verb + " coder --wait\n  fairlead " + verb + " --all",
		ValidArgsFunction: a.completeAgents,
		Args: func(cmd *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return cli.Usage(cmd, errors.New("name one or more agents, or pass --all"))
			}
			return nil
		},
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			if all {
				var err error
				if names, err = agents.Everybody(ctx, client); err != nil {
					return err
				}
			}
			return agents.Command(ctx, a.App, client, verb, names, opts)
		}),
	}
	if verb == "stop" {
		cmd.Flags().BoolVar(&opts.Now, "now", false, "end the running session; a second call ends it without its grace period")
	}
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "return when the order has taken effect")
	cmd.Flags().BoolVar(&all, "all", false, "all agents of the team")
	cmd.Flags().StringVar(&opts.Note, "note", "", "the reason, kept in agent_state.json")
	return cmd
}

func holdCommand(a *app) *cobra.Command {
	return switchCommand(a, "hold", "Start no new sessions; running ones finish",
		"The hold applies to the whole team and survives a restart. `fairlead unhold` ends it.",
		"the team is held: no session starts until `fairlead unhold`", (*apiclient.Client).Hold)
}

func unholdCommand(a *app) *cobra.Command {
	return switchCommand(a, "unhold", "End the hold: agents start again",
		"Agents whose desired state asks for a session start it now.",
		"the hold is lifted", (*apiclient.Client).Unhold)
}

func switchCommand(a *app, verb, short, long, said string, give func(*apiclient.Client, context.Context, string) (api.Held, error)) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    long,
		Example: "  fairlead " + verb + ` --note "release freeze"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			answer, err := give(client, ctx, note)
			if err != nil {
				return err
			}
			return a.Say(answer, "%s", said)
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}
