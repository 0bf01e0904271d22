package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
)

func (a *app) grantVerb() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "grant CHANNEL AGENT",
		Short: "Give an agent the turn in a channel",
		Long: `It has to be in the channel. While somebody else has the turn it is refused: with --now that
turn ends, and what its holder says afterwards is kept and shown as late. The circle stays as it
is: after this turn it goes on from here.`,
		Args:              args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeChannelAgent(true),
		RunE: a.asking(func(ctx context.Context, client *api.Client, words []string) error {
			done, err := client.Grant(ctx, words[0], words[1], now)
			return a.ordered(done, err)
		}),
	}
	cmd.Flags().BoolVar(&now, "now", false, "also where somebody has the turn: it ends")
	return cmd
}

func (a *app) skipVerb() *cobra.Command {
	var which uint64
	cmd := &cobra.Command{
		Use:   "skip CHANNEL",
		Short: "End the turn that is under way: the next in the circle gets it",
		Long: `Who had the turn keeps its place in the circle, and what it says afterwards is kept and shown
as late. With --turn only that turn is ended: where it is over already, nobody else loses one.`,
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeChannel,
		RunE: a.asking(func(ctx context.Context, client *api.Client, words []string) error {
			done, err := client.Skip(ctx, words[0], which)
			return a.ordered(done, err)
		}),
	}
	cmd.Flags().Uint64Var(&which, "turn", 0, "only the turn of this number (default: whichever is under way)")
	return cmd
}

func (a *app) overrideVerb() *cobra.Command {
	var resume, end bool
	cmd := &cobra.Command{
		Use:   "override CHANNEL --resume|--end",
		Short: "End the wait of an agent that has the turn and waits for something",
		Long: `With --resume its turn goes on, with what time it had left; with --end it is forfeited, and
the next in the circle gets the turn.`,
		Args: func(cmd *cobra.Command, words []string) error {
			if resume == end {
				return usage(cmd, errors.New("say what becomes of the turn: --resume or --end"))
			}
			return args(cobra.ExactArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeChannel,
		RunE: a.asking(func(ctx context.Context, client *api.Client, words []string) error {
			done, err := client.Override(ctx, words[0], resume)
			return a.ordered(done, err)
		}),
	}
	cmd.Flags().BoolVar(&resume, "resume", false, "the turn goes on")
	cmd.Flags().BoolVar(&end, "end", false, "the turn ends")
	return cmd
}

func (a *app) assignVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "assign CHANNEL AGENT",
		Short: "Let an agent join a channel, at the end of its queue",
		Long: `It stays in it until ` + "`fairlead channel remove`" + `, also over restarts, whatever fairlead.yaml says. Who is
not connected is in the channel at once, and in its queue when it connects.`,
		Args:              args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeChannelAgent(true),
		RunE: a.asking(func(ctx context.Context, client *api.Client, words []string) error {
			done, err := client.Assign(ctx, words[0], words[1])
			return a.ordered(done, err)
		}),
	}
}

func (a *app) removeVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "remove CHANNEL AGENT",
		Short: "Let an agent leave a channel",
		Long: `A turn that it has there ends; its places in other channels stay. It is not let in again by a
restart: ` + "`fairlead channel assign`" + ` does that.`,
		Args:              args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeChannelAgent(true),
		RunE: a.asking(func(ctx context.Context, client *api.Client, words []string) error {
			done, err := client.Unassign(ctx, words[0], words[1])
			return a.ordered(done, err)
		}),
	}
}

// ordered says how a channel stands after an order.
func (a *app) ordered(done api.ChannelOrdered, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(done)
	}
	_, err = fmt.Fprintf(a.out, "%s: %s\n", plain(done.Channel.Name), standing(done.Channel))
	return err
}

func (a *app) disableVerb() *cobra.Command {
	return a.ableVerb("disable", "Let agents take no part in channels until they are enabled again",
		`An agent leaves every queue, and a turn that it has ends. What it does outside of channels is
`+"`fairlead stop`"+`'s business.`,
		"takes no part in channels until it is enabled", (*api.Client).Disable)
}

func (a *app) enableVerb() *cobra.Command {
	return a.ableVerb("enable", "Let agents take part in channels again",
		`It undoes `+"`fairlead channel disable`"+`. An agent that was in a queue is not put back into it: `+"`fairlead channel assign`"+`
does that.`,
		"takes part in channels again", (*api.Client).Enable)
}

func (a *app) ableVerb(verb, short, long, told string, give func(*api.Client, context.Context, string) (api.Commanded, error)) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " AGENT...",
		Short:             short,
		Long:              long,
		Args:              args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.asking(func(ctx context.Context, client *api.Client, names []string) error {
			var errs []error
			for _, name := range names {
				answer, err := give(client, ctx, name)
				switch {
				case err != nil:
					errs = append(errs, err)
				case a.json:
					errs = append(errs, a.printJSON(answer))
				default:
					fmt.Fprintln(a.out, plain(answer.Agent.Name)+" "+told)
				}
			}
			if len(errs) == 1 {
				return errs[0] // its own words and its own exit code, without a wrapping
			}
			return errors.Join(errs...)
		}),
	}
}
