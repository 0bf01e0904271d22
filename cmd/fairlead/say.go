package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
)

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
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.Spoken(words[1:])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if mode != "" && !strings.Contains("\n"+strings.Join(channels.Modes, "\n"), "\n"+mode+"\t") {
				return cli.Usage(cmd, fmt.Errorf("there is no mode %q; it is queue, inject, interrupt or parallel", mode))
			}
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return channels.Say(ctx, a.App, client, words[0], text, mode, wait)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", "", "queue, inject, interrupt or parallel (default: the channel's)")
	cmd.Flags().BoolVar(&wait, "wait", false, "show what is said, and return when the message is answered")
	if err := cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(channels.Modes, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("fairlead: say has no --mode: " + err.Error())
	}
	return cmd
}
