package channels

import (
	"context"
	"fmt"
	"slices"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

// Modes are the ways in which a person's message affects the current turn, with their descriptions
// for shell completion.
var Modes = []string{
	string(channel.ByQueue) + "\twhen the turn ends",
	string(channel.Inject) + "\tat once, to the agent that has the turn",
	string(channel.Interrupt) + "\tstop: the turn waits until you have an answer",
	string(channel.Parallel) + "\tto all agents at once",
}

// said is what `fairlead channel say --json` prints.
type said struct {
	view.Spoken
	Answers []view.ChannelEntry `json:"answers,omitempty"` // with --wait: the agents' messages until then
}

// Say posts a person's message and, with wait, waits for the answer.
func Say(ctx context.Context, a *cli.App, client *apiclient.Client, channel, text, mode string, wait bool) error {
	spoken, err := client.Channels.Say(ctx, channel, text, mode)
	if err != nil {
		return err
	}
	if wait {
		return awaitAnswer(ctx, a, client, channel, spoken)
	}
	if a.JSON {
		return a.PrintJSON(said{Spoken: spoken})
	}
	view, err := client.Channels.Show(ctx, channel)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "message %d in %s is %s; %s\n", spoken.N, cli.Plain(channel), cli.Plain(spoken.State), standing(view))
	return err
}

// unattended are the reasons for which no agent answers until something else changes; a person who
// waits for an answer sees the reason.
var unattended = []channel.Reason{channel.NoAgents, channel.Held, channel.Limited}

// awaitAnswer shows the channel from a message on until it is answered.
func awaitAnswer(ctx context.Context, a *cli.App, client *apiclient.Client, channelName string, spoken view.Spoken) error {
	message, err := messageNow(ctx, client, channelName, spoken)
	if err != nil {
		return err
	}
	if view, err := client.Channels.Show(ctx, channelName); err == nil && !a.JSON && slices.Contains(unattended, channel.Reason(view.Parked)) {
		fmt.Fprintln(a.Err, a.Paint(cli.Dim, standing(view)))
	}
	var answers []view.ChannelEntry
	show := NewConversation(a)
	w := channelWatch{client: client, channel: channelName, moves: true, after: message.Seq}
	w.enough = func(ctx context.Context) (bool, error) {
		now, err := messageNow(ctx, client, channelName, spoken)
		spoken.State = now.State
		return now.State == string(channel.Answered) || now.State == string(channel.Lapsed), err
	}
	err = w.follow(ctx, func(entries []view.ChannelEntry) error {
		for _, e := range entries {
			if e.Kind == EntryTurn || e.Kind == EntryAside {
				answers = append(answers, e)
			}
			if !a.JSON {
				show.Entry(e)
			}
		}
		return show.Flush()
	})
	if err != nil {
		return err
	}
	if a.JSON {
		if err := a.PrintJSON(said{spoken, answers}); err != nil {
			return err
		}
	}
	if spoken.State == string(channel.Lapsed) {
		return fmt.Errorf("no agent in %s answered message %d in time", cli.Plain(channelName), spoken.N)
	}
	return nil
}

// messageNear bounds how many entries one order can make, with room to spare: the message is that
// close to the returned sequence.
const messageNear = 50

// messageNow returns the present state of a message in its channel.
func messageNow(ctx context.Context, client *apiclient.Client, channel string, spoken view.Spoken) (view.ChannelEntry, error) {
	page, err := client.Channels.Entries(ctx, channel, view.EntryQuery{Before: spoken.Seq + 1, Limit: messageNear})
	for _, e := range page.Entries {
		if e.N == spoken.N && e.Kind == EntryHuman {
			return e, err
		}
	}
	return view.ChannelEntry{Seq: spoken.Seq, State: spoken.State}, err
}
