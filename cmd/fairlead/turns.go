package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
)

func grantCommand(a *app) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "grant CHANNEL AGENT",
		Short: "Give an agent the turn in a channel",
		Long: `The agent must be in the channel. If another agent has the turn the command is refused; with --now
that turn ends, and what its agent says afterwards is kept and marked as late. The rotation does not
change; it continues after this agent.`,
		Example:           "  fairlead channel grant reviews coder --now",
		Args:              cli.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeChannelAgent(true),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.Channels.Grant(ctx, words[0], words[1], now)
			return channels.Ordered(a.App, done, err)
		}),
	}
	cmd.Flags().BoolVar(&now, "now", false, "also if another agent has the turn: that turn ends")
	return cmd
}

func skipCommand(a *app) *cobra.Command {
	var which uint64
	cmd := &cobra.Command{
		Use:   "skip CHANNEL",
		Short: "End the current turn: the next agent in the rotation gets it",
		Long: `The agent keeps its place in the rotation. What it says afterwards is kept and marked as late. --turn
ends only that turn; if it is over already, no other agent loses a turn.`,
		Example:           "  fairlead channel skip reviews",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeChannel,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.Channels.Skip(ctx, words[0], which)
			return channels.Ordered(a.App, done, err)
		}),
	}
	cmd.Flags().Uint64Var(&which, "turn", 0, "only the turn of this number (default: whichever is under way)")
	return cmd
}

func overrideCommand(a *app) *cobra.Command {
	var resume, end bool
	cmd := &cobra.Command{
		Use:   "override CHANNEL --resume|--end",
		Short: "Resume or end a turn whose agent waits for something",
		Long: `--resume continues the turn with the time that it had left. --end ends it, and the next agent in the
rotation gets the turn.`,
		Example: "  fairlead channel override reviews --resume",
		Args: func(cmd *cobra.Command, words []string) error {
			if resume == end {
				return cli.Usage(cmd, errors.New("choose what happens to the turn: --resume or --end"))
			}
			return cli.Args(cobra.ExactArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeChannel,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.Channels.Override(ctx, words[0], resume)
			return channels.Ordered(a.App, done, err)
		}),
	}
	cmd.Flags().BoolVar(&resume, "resume", false, "the turn goes on")
	cmd.Flags().BoolVar(&end, "end", false, "the turn ends")
	return cmd
}

func assignCommand(a *app) *cobra.Command {
	return memberCommand(a, "assign", "Add an agent to a channel, at the end of its rotation",
		`The agent stays in the channel, also after restarts and whatever fairlead.yaml says, until
`+"`fairlead channel remove`"+`. An agent that is not connected joins the rotation when it connects.`,
		apiclient.Channels.Assign)
}

func removeCommand(a *app) *cobra.Command {
	return memberCommand(a, "remove", "Remove an agent from a channel",
		`A turn that it has there ends. Its places in other channels stay. A restart does not add it again;
`+"`fairlead channel assign`"+` does.`,
		apiclient.Channels.Unassign)
}

func memberCommand(a *app, verb, short, long string, give func(apiclient.Channels, context.Context, string, string) (api.ChannelOrdered, error)) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " CHANNEL AGENT",
		Short:             short,
		Long:              long,
		Example:           "  fairlead channel " + verb + " reviews coder",
		Args:              cli.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeChannelAgent(true),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := give(client.Channels, ctx, words[0], words[1])
			return channels.Ordered(a.App, done, err)
		}),
	}
}

func disableCommand(a *app) *cobra.Command {
	return ableCommand(a, "disable", "Take agents out of all channels until they are enabled again",
		`The agent leaves every rotation, and a turn that it has ends. Its sessions outside of channels continue;
`+"`fairlead stop`"+` stops those.`,
		"takes no part in channels until it is enabled", apiclient.Channels.Disable)
}

func enableCommand(a *app) *cobra.Command {
	return ableCommand(a, "enable", "Let agents take part in channels again",
		`It undoes `+"`fairlead channel disable`"+`. It does not put the agent back into a rotation; `+"`fairlead channel assign`"+`
does.`,
		"takes part in channels again", apiclient.Channels.Enable)
}

func ableCommand(a *app, verb, short, long, told string, give func(apiclient.Channels, context.Context, string) (api.Commanded, error)) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " AGENT...",
		Short:             short,
		Long:              long,
		Example:           "  fairlead channel " + verb + " coder",
		Args:              cli.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			var errs []error
			for _, name := range names {
				answer, err := give(client.Channels, ctx, name)
				switch {
				case err != nil:
					errs = append(errs, err)
				case a.JSON:
					errs = append(errs, a.PrintJSON(answer))
				default:
					fmt.Fprintln(a.Out, cli.Plain(answer.Agent.Name)+" "+told)
				}
			}
			return errors.Join(errs...)
		}),
	}
}
