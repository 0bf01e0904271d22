package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
)

// channelCommand is everything about channels: rooms in which agents take turns.
func channelCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "channel",
		Short: "Talk with agents in channels, and control whose turn it is",
		Long: `A channel is a conversation between agents of fairlead.yaml and you. One agent at a time has the
turn; then the next one in the rotation gets it.`,
		Example: `  fairlead channel list
  fairlead channel say reviews "please look at the parser first"
  fairlead channel watch reviews`,
	}, a.AtFlag(channelListCommand(a)), sayCommand(a), channelWatchCommand(a), grantCommand(a), skipCommand(a), overrideCommand(a), assignCommand(a), removeCommand(a), enableCommand(a), disableCommand(a))
}

func channelListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list [CHANNEL]",
		Short: "List the channels: which agent has the turn, which is next, what waits",
		Long: `Without a name it prints a line for each channel of fairlead.yaml. With a name it prints the
agents of that channel with their states, and the messages of people that no agent has answered
yet. ` + "`fairlead channel watch CHANNEL`" + ` shows the conversation.`,
		Example: `  fairlead channel list
  fairlead channel list reviews --json`,
		Args:              cli.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeChannel,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			if len(words) == 1 {
				return channels.ShowChannel(ctx, a.App, client.Client, words[0])
			}
			all, err := client.Channels.List(ctx)
			if err != nil {
				return err
			}
			return a.Show(all, func() error { return channels.PrintChannels(a.App, a.Out, all.Channels) })
		}),
	}
}

// completeChannel offers the channels of fairlead.yaml, then nothing.
func (a *app) completeChannel(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.completeChannelAgent(false)(cmd, words, begun)
}

// completeChannelAgent offers channels first, and then agents where the verb takes one.
func (a *app) completeChannelAgent(agent bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(words) == 1 && agent {
			return a.completeAgents(cmd, words, begun)
		}
		if len(words) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return channels.ChannelNames(a.App), cobra.ShellCompDirectiveNoFileComp
	}
}
