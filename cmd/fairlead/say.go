package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

// modes are the ways in which what a person says meets a turn that is under way, with what
// completion says of each.
var modes = []string{
	string(channel.ByQueue) + "\twhen the turn ends",
	string(channel.Inject) + "\tat once, to whoever has the turn",
	string(channel.Interrupt) + "\tstop: the turn waits until you have an answer",
	string(channel.Parallel) + "\tto everybody at once",
}

func (a *app) sayVerb() *cobra.Command {
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
		Args:              args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeChannel,
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.spoken(words[1:])
			if err != nil {
				return usage(cmd, err)
			}
			if mode != "" && !strings.Contains("\n"+strings.Join(modes, "\n"), "\n"+mode+"\t") {
				return usage(cmd, fmt.Errorf("there is no mode %q; it is queue, inject, interrupt or parallel", mode))
			}
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return a.say(ctx, client, words[0], text, mode, wait)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", "", "queue, inject, interrupt or parallel (default: the channel's)")
	cmd.Flags().BoolVar(&wait, "wait", false, "show what is said, and return when the message is answered")
	if err := cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("fairlead: say has no --mode: " + err.Error())
	}
	return cmd
}

// spokenMost is as much as a message may be; the daemon takes no more.
const spokenMost = 128 << 10

// spoken is the text of the words of a command line.
func (a *app) spoken(words []string) (string, error) {
	text := strings.Join(words, " ")
	if len(words) == 1 && words[0] == "-" {
		read, err := io.ReadAll(io.LimitReader(a.in, spokenMost+2)) // its last line's end is none of it
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimSuffix(string(read), "\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("there is nothing to say; give some words, or - to read standard input")
	case len(text) > spokenMost:
		return "", fmt.Errorf("the text has more than %d KiB; put it into a file of the repository and say its name", spokenMost>>10)
	case strings.ToValidUTF8(text, "") != text:
		return "", errors.New("the text is no UTF-8; convert it first")
	}
	return text, nil
}

// said is what `fairlead channel say --json` prints.
type said struct {
	view.Spoken
	Answers []view.ChannelEntry `json:"answers,omitempty"` // with --wait: what agents said until then
}

func (a *app) say(ctx context.Context, client *apiclient.Client, channel, text, mode string, wait bool) error {
	spoken, err := client.Say(ctx, channel, text, mode)
	if err != nil {
		return err
	}
	if wait {
		return a.awaitAnswer(ctx, client, channel, spoken)
	}
	if a.json {
		return a.printJSON(said{Spoken: spoken})
	}
	view, err := client.Channel(ctx, channel)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "message %d in %s is %s; %s\n", spoken.N, plain(channel), plain(spoken.State), standing(view))
	return err
}

// unattended are the reasons for which nobody answers until something else happens; who waits
// for an answer should know.
var unattended = []channel.Reason{channel.NoAgents, channel.Held, channel.Limited}

// awaitAnswer shows the channel from a message on until somebody has answered it.
func (a *app) awaitAnswer(ctx context.Context, client *apiclient.Client, channelName string, spoken view.Spoken) error {
	message, err := messageNow(ctx, client, channelName, spoken)
	if err != nil {
		return err
	}
	if view, err := client.Channel(ctx, channelName); err == nil && !a.json && slices.Contains(unattended, channel.Reason(view.Parked)) {
		fmt.Fprintln(a.err, a.paint(dim, standing(view)))
	}
	var answers []view.ChannelEntry
	show := a.conversation()
	w := channelWatch{client: client, channel: channelName, moves: true, after: message.Seq}
	w.enough = func(ctx context.Context) (bool, error) {
		now, err := messageNow(ctx, client, channelName, spoken)
		spoken.State = now.State
		return now.State == string(channel.Answered) || now.State == string(channel.Lapsed), err
	}
	err = w.follow(ctx, func(entries []view.ChannelEntry) error {
		for _, e := range entries {
			if e.Kind == entryTurn || e.Kind == entryAside {
				answers = append(answers, e)
			}
			if !a.json {
				show.entry(e)
			}
		}
		return show.flush()
	})
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(said{spoken, answers}); err != nil {
			return err
		}
	}
	if spoken.State == string(channel.Lapsed) {
		return fmt.Errorf("nobody in %s answered message %d in time", plain(channelName), spoken.N)
	}
	return nil
}

// messageNear is how many lines of a conversation one order makes at most, with room to spare:
// so near to what it returned is the message itself.
const messageNear = 50

// messageNow is a message as it stands in its channel now.
func messageNow(ctx context.Context, client *apiclient.Client, channel string, spoken view.Spoken) (view.ChannelEntry, error) {
	page, err := client.ChannelEntries(ctx, channel, view.EntryQuery{Before: spoken.Seq + 1, Limit: messageNear})
	for _, e := range page.Entries {
		if e.N == spoken.N && e.Kind == entryHuman {
			return e, err
		}
	}
	return view.ChannelEntry{Seq: spoken.Seq, State: spoken.State}, err
}
