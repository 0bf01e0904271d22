package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
)

func channelWatchCommand(a *app) *cobra.Command {
	var opts channels.Watched
	cmd := &cobra.Command{
		Use:   "watch CHANNEL",
		Short: "Show the conversation of a channel, and follow it",
		Long: `It prints the newest lines and the agent that has the turn, and then what comes, until Ctrl-C.
Escape sequences in what agents say have no effect.`,
		Example: `  fairlead channel watch reviews
  fairlead channel watch reviews --no-follow --last 20`,
		Args: func(cmd *cobra.Command, words []string) error {
			if err := opts.Valid(); err != nil {
				return cli.Usage(cmd, err)
			}
			return cli.Args(cobra.ExactArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeChannel,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			return channels.WatchChannel(ctx, a.App, client, strings.TrimPrefix(words[0], "#"), opts)
		}),
	}
	opts.Flags(cmd, "")
	return cmd
}
