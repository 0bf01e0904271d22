package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
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
	}, a.AtFlag(channelListCommand(a)), sayCommand(a), channelWatchCommand(a), grantCommand(a), skipCommand(a), overrideCommand(a),
		assignCommand(a), removeCommand(a), enableCommand(a), disableCommand(a))
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

func sayCommand(a *app) *cobra.Command {
	var mode string
	var wait bool
	cmd := &cobra.Command{
		Use:   "say CHANNEL TEXT...",
		Short: "Send a message to the agents of a channel",
		Long: `It returns when the message is on disk, and prints its state: queued, delivered or answered. --wait
shows the conversation until the message is answered. As TEXT, - reads standard input; several words
are one text.

--mode decides what happens during a turn; the default is the channel's own mode:

  queue      the message waits, and agents get it with their next turns
  inject     the agent that has the turn gets it at once
  interrupt  the agent that has the turn is stopped, you get an answer, then the turn continues
  parallel   every agent gets it at once, and may answer without having the turn

A message is delivered exactly once, also if Fairlead or an agent crashes.`,
		Example: `  fairlead channel say reviews "please look at the parser first"
  fairlead channel say reviews --mode interrupt --wait "stop and tell me the status"`,
		Args:              cli.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeChannel,
		RunE: a.speaking(1, func(cmd *cobra.Command, words []string, text string) error {
			if mode != "" && !strings.Contains("\n"+strings.Join(channels.Modes, "\n"), "\n"+mode+"\t") {
				return cli.Usage(cmd, fmt.Errorf("there is no mode %q; it is queue, inject, interrupt or parallel", mode))
			}
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return channels.Say(ctx, a.App, client, words[0], text, mode, wait)
			})(cmd, words)
		}),
	}
	cmd.Flags().StringVar(&mode, "mode", "", "queue, inject, interrupt or parallel (default: the channel's)")
	cmd.Flags().BoolVar(&wait, "wait", false, "show what is said, and return when the message is answered")
	if err := cmd.RegisterFlagCompletionFunc("mode",
		cobra.FixedCompletions(channels.Modes, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("fairlead: say has no --mode: " + err.Error())
	}
	return cmd
}

func channelWatchCommand(a *app) *cobra.Command {
	var opts channels.Watched
	cmd := &cobra.Command{
		Use:   "watch CHANNEL",
		Short: "Show the conversation of a channel, and follow it",
		Long: `It prints the newest lines and the agent that has the turn, and then each new line, until Ctrl-C.
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

func grantCommand(a *app) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "grant CHANNEL AGENT",
		Short: "Give an agent the turn in a channel",
		Long: `The agent must be in the channel. If another agent has the turn the command is refused; with --now
that turn ends, and what its agent says afterwards is kept and marked as late. This changes the
rotation: both agents go to its end when their turns are over, and the others keep their order.`,
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
		Long: `The agent goes to the end of the rotation, as after every turn. What it says afterwards is kept and
marked as late. --turn ends only that turn; if it is over already, no other agent loses a turn.`,
		Example:           "  fairlead channel skip reviews",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeChannel,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.Channels.Skip(ctx, words[0], which)
			return channels.Ordered(a.App, done, err)
		}),
	}
	cmd.Flags().Uint64Var(&which, "turn", 0, "only the turn with this number (default: the current turn)")
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
	cmd.Flags().BoolVar(&resume, "resume", false, "the turn continues")
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

func memberCommand(a *app, verb, short, long string,
	give func(apiclient.Channels, context.Context, string, string) (api.ChannelOrdered, error),
) *cobra.Command {
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

func ableCommand(a *app, verb, short, long, told string,
	give func(apiclient.Channels, context.Context, string) (api.Commanded, error),
) *cobra.Command {
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
