package channels

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Widths in tables that must fit into 80 columns.
const (
	ChannelWidth = 16
	holderWidth  = 16
	queueWidth   = 20
	openShown    = 20 // of the unanswered messages, the oldest
	aboutWidth   = 40 // of remarks; the view of one channel shows all of them
)

// PrintChannels prints a line for each channel.
func PrintChannels(a *cli.App, out io.Writer, all []view.ChannelView) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "no channels; add one under `channels` in fairlead.yaml and start fairlead again")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CHANNEL\tSTATE\tTURN\tLEFT\tNEXT\tSAID\tREMARKS")
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", cli.Line(c.Name, ChannelWidth), cli.Plain(c.State),
			cli.OrDash(cli.Line(c.Holder, holderWidth)),
			left(c.Deadline), cli.OrDash(cli.Line(strings.Join(c.Queue, ", "), queueWidth)), c.Messages, channelRemarks(c))
	}
	return table.Flush()
}

// left is the time until a deadline.
func left(deadline *time.Time) string {
	if deadline == nil {
		return "-"
	}
	return cli.Ago(max(0, time.Until(*deadline)))
}

// channelRemarks are what a person should know beside the state, the most urgent first.
func channelRemarks(c view.ChannelView) string {
	var remarks []string
	if c.Aside != nil {
		remarks = append(remarks, fmt.Sprintf("%s answers message %d", cli.Plain(c.Aside.Agent), c.Aside.Message))
	}
	if n := waiting(c); n > 0 {
		remarks = append(remarks, cli.HowMany(n, "message waits", "messages wait"))
	}
	if why := standsWhy(c); why != "" {
		remarks = append(remarks, why)
	}
	if !c.Configured {
		remarks = append(remarks, "no longer in fairlead.yaml")
	}
	return cli.Line(strings.Join(remarks, "; "), aboutWidth)
}

// waiting counts people's messages that no agent has received yet.
func waiting(c view.ChannelView) int {
	n := 0
	for _, m := range c.Open {
		if m.State == string(channel.Kept) {
			n++
		}
	}
	return n
}

// standsWhy says why no agent has the turn, or what the agent with the turn waits for. It is empty
// if no message waits for an answer.
func standsWhy(c view.ChannelView) string {
	switch {
	case c.Holder != "" && c.Why != "" && c.State != string(channel.Waiting):
		return cli.Line(c.Why, cli.RemarkWidth)
	case c.Holder != "" && c.Why != "":
		return "waits: " + cli.Line(c.Why, cli.RemarkWidth)
	case c.Holder != "", c.Parked == string(channel.Quiet), c.Parked == "":
		return ""
	case c.Why != "":
		return cli.Line(c.Why, cli.RemarkWidth)
	default:
		return cli.Plain(c.Parked)
	}
}

// stateText describes a channel's state as a sentence without its full stop.
func stateText(c view.ChannelView) string {
	var text string
	switch {
	case c.Holder == "" && c.Aside != nil:
		text = fmt.Sprintf("%s answers message %d of a person", cli.Plain(c.Aside.Agent), c.Aside.Message)
	case c.Holder == "":
		why := cmp.Or(standsWhy(c), "no message waits for an answer")
		text = "no agent has the turn: " + why
	default:
		text = fmt.Sprintf("%s has turn %d", cli.Plain(c.Holder), c.Turn)
		if c.State == string(channel.Waiting) {
			text = fmt.Sprintf("%s waits in turn %d", cli.Plain(c.Holder), c.Turn)
		}
		if c.Why != "" {
			text += ": " + cli.Line(c.Why, 2*cli.RemarkWidth)
		}
		if c.Deadline != nil {
			text += ", " + left(c.Deadline) + " left"
		}
	}
	if len(c.Queue) > 0 {
		text += "; next: " + cli.Line(strings.Join(c.Queue, ", "), 2*queueWidth)
	}
	return text
}

// ShowChannel prints one channel with its queue and open messages.
func ShowChannel(ctx context.Context, a *cli.App, client *apiclient.Client, name string) error {
	view, err := client.Channels.Show(ctx, name)
	if err != nil {
		return err
	}
	return a.Show(view, func() error { return PrintChannel(a, a.Out, view) })
}

// PrintChannel prints one channel from its view.
func PrintChannel(a *cli.App, out io.Writer, c view.ChannelView) error {
	fmt.Fprintf(out, "%s: %s\n", a.Paint(cli.Bold, cli.Plain(c.Name)), stateText(c))
	rounds := "no limit of rounds"
	if c.RoundsMax > 0 {
		rounds = cli.HowMany(c.RoundsMax, "round", "rounds")
	}
	text := fmt.Sprintf("people's messages have mode %s; the agents then have %s", cli.Plain(c.Mode), rounds)
	if c.Lead != "" {
		text += "; " + cli.Plain(c.Lead) + " answers interruptions"
	}
	fmt.Fprintln(out, a.Paint(cli.Dim, text))
	if !c.Configured {
		fmt.Fprintln(out, a.Paint(cli.Yellow, "it is no longer in fairlead.yaml"))
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if len(c.Agents) > 0 {
		fmt.Fprintln(table, "\nAGENT\tSTATE\tTURNS\tREMARKS")
	}
	for _, m := range c.Agents {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", cli.Line(m.Name, ChannelWidth), cli.Plain(m.State), m.Took, memberRemarks(m))
	}
	if len(c.Open) > 0 {
		fmt.Fprintln(table, "\nMESSAGE\tBY\tMODE\tSTATE")
	}
	for _, m := range c.Open[:min(len(c.Open), openShown)] {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", m.N, cli.Line(m.By, ChannelWidth), cli.Plain(m.Mode), cli.Plain(m.State))
	}
	if err := table.Flush(); err != nil || len(c.Open) <= openShown {
		return err
	}
	_, err := fmt.Fprintf(out, "and %d more\n", len(c.Open)-openShown)
	return err
}

func memberRemarks(m view.MemberView) string {
	var remarks []string
	add := func(is bool, text string) {
		if is {
			remarks = append(remarks, text)
		}
	}
	add(m.Working, "is answering")
	add(m.Disabled, "disabled: `fairlead channel enable "+cli.Plain(m.Name)+"` lets it take part again")
	add(m.Crashed && !m.Connected, "crashed")
	add(!m.Connected && !m.Disabled && !m.Crashed, "not connected")
	add(m.Limit != "", "at a limit: "+cli.Line(m.Limit, cli.RemarkWidth))
	add(m.Owed, "queued when it connects")
	add(m.Foreign, "takes part over HTTP")
	return cli.Line(strings.Join(remarks, "; "), cli.RemarkWidth)
}

// ChannelNames returns the channels of fairlead.yaml, each with its agents.
func ChannelNames(a *cli.App) []string {
	conf, err := a.Load()
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range conf.Channels {
		names = append(names, c.Name+"\t"+strings.Join(c.Agents, ", "))
	}
	slices.Sort(names)
	return names
}

// Ordered prints a channel's state after an order.
func Ordered(a *cli.App, done api.ChannelOrdered, err error) error {
	if err != nil {
		return err
	}
	return a.Say(done, "%s: %s", cli.Plain(done.Channel.Name), stateText(done.Channel))
}

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
	_, err = fmt.Fprintf(a.Out, "message %d in %s is %s; %s\n", spoken.N, cli.Plain(channel), cli.Plain(spoken.State), stateText(view))
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
	if view, err := client.Channels.Show(ctx, channelName); err == nil && !a.JSON &&
		slices.Contains(unattended, channel.Reason(view.Parked)) {
		fmt.Fprintln(a.Err, a.Paint(cli.Dim, stateText(view)))
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
