package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
	"github.com/fairlead-dev/fairlead/cli/channels"
)

func watchCommand(a *app) *cobra.Command {
	var opts channels.Watched
	cmd := &cobra.Command{
		Use:   "watch [AGENT|SESSION|CHANNEL]",
		Short: "Watch the team, one agent, a session or a channel, live",
		Long: `Without a name it keeps the table of ` + "`fairlead ps`" + ` up to date; if the output is no terminal, it
prints a line for each change. With an agent it prints what the agent says, session after session,
until Ctrl-C. With a session, such as coder-17, it prints that session's output to its end, also if
it is over; ` + "`fairlead why coder`" + ` names them. With a channel it prints the newest lines, and then what
comes. If an agent has the same name as a channel, '#CHANNEL' is the channel. Escape sequences in
what agents say have no effect.`,
		Example: `  fairlead watch
  fairlead watch coder
  fairlead watch coder-17`,
		Args: func(cmd *cobra.Command, words []string) error {
			if err := opts.Valid(); err != nil {
				return cli.Usage(cmd, err)
			}
			if len(words) == 0 && opts != (channels.Watched{Last: cli.WatchLast}) {
				return cli.Usage(cmd, errors.New("--no-follow, --moves and --last are for channels: name one"))
			}
			return cli.Args(cobra.MaximumNArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeWatched,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			if len(words) == 1 {
				return agents.WatchNamed(ctx, a.App, client, words[0], opts)
			}
			switch {
			case client.Offline != nil:
				return client.Offline
			case a.JSON || !a.Screenful():
				return agents.Follow(ctx, a.App, client.Client, apiclient.FromNow, apiclient.JournalQuery{})
			}
			return agents.WatchTeam(ctx, a.App, client.Client)
		}),
	}
	opts.Flags(cmd, "of a channel: ")
	return cmd
}

// completeWatched offers agents and channels.
func (a *app) completeWatched(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := a.completeAgents(cmd, words, begun)
	return append(names, channels.ChannelNames(a.App)...), directive
}
