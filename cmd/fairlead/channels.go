package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

// channelVerb is everything about channels: rooms in which agents take turns.
func (a *app) channelVerb() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "channel",
		Short: "Talk with agents in channels, and control whose turn it is",
		Long: `A channel is a conversation between agents of fairlead.yaml and you. One agent at a time has the
turn; then the next one in the rotation gets it.`,
		Example: `  fairlead channel list
  fairlead channel say reviews "please look at the parser first"
  fairlead channel watch reviews`,
	}, a.channelListVerb(), a.sayVerb(), a.channelWatchVerb(), a.grantVerb(), a.skipVerb(), a.overrideVerb(), a.assignVerb(), a.removeVerb(), a.enableVerb(), a.disableVerb())
}

func (a *app) channelListVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "list [CHANNEL]",
		Short: "List the channels: which agent has the turn, which is next, what waits",
		Long: `Without a name it prints a line for each channel of fairlead.yaml. With a name it prints the
agents of that channel with their states, and the messages of people that no agent has answered
yet. ` + "`fairlead channel watch CHANNEL`" + ` shows the conversation.`,
		Example: `  fairlead channel list
  fairlead channel list reviews --json`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeChannel,
		RunE: a.reading(func(ctx context.Context, client *reader, words []string) error {
			if len(words) == 1 {
				return a.showChannel(ctx, client.Client, words[0])
			}
			all, err := client.Channels(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			return a.printChannels(a.out, all.Channels)
		}),
	}
}

// What of a name or a list of names stands in a table that has to fit into 80 columns.
const (
	channelWidth = 16
	holderWidth  = 16
	queueWidth   = 20
	openShown    = 20 // of the messages that nobody has answered, the oldest: the rest would scroll them away
	aboutWidth   = 40 // of remarks; all of them are shown of one channel alone
)

func (a *app) printChannels(out io.Writer, all []view.ChannelView) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "no channels; add one under `channels` in fairlead.yaml and start fairlead again")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CHANNEL\tSTATE\tTURN\tLEFT\tNEXT\tSAID\tREMARKS")
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", line(c.Name, channelWidth), plain(c.State), orDash(line(c.Holder, holderWidth)),
			left(c.Deadline), orDash(line(strings.Join(c.Queue, ", "), queueWidth)), c.Messages, channelRemarks(c))
	}
	return table.Flush()
}

// left is the time until something runs out.
func left(deadline *time.Time) string {
	if deadline == nil {
		return "-"
	}
	return ago(max(0, time.Until(*deadline)))
}

// channelRemarks are what a person should know beside the state, the most urgent first.
func channelRemarks(c view.ChannelView) string {
	var remarks []string
	if c.Aside != nil {
		remarks = append(remarks, fmt.Sprintf("%s answers message %d", plain(c.Aside.Agent), c.Aside.Message))
	}
	if n := waiting(c); n > 0 {
		remarks = append(remarks, howMany(n, "message waits", "messages wait"))
	}
	if why := standsWhy(c); why != "" {
		remarks = append(remarks, why)
	}
	if !c.Configured {
		remarks = append(remarks, "no longer in fairlead.yaml")
	}
	return line(strings.Join(remarks, "; "), aboutWidth)
}

// waiting counts the messages of people that nobody has yet.
func waiting(c view.ChannelView) int {
	n := 0
	for _, m := range c.Open {
		if m.State == string(channel.Kept) {
			n++
		}
	}
	return n
}

func howMany(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// standsWhy is why nobody has the turn, or what its holder waits for. Nobody having anything
// to answer needs no words.
func standsWhy(c view.ChannelView) string {
	switch {
	case c.Holder != "" && c.Why != "":
		return "waits: " + line(c.Why, remarkWidth)
	case c.Holder != "", c.Parked == string(channel.Quiet), c.Parked == "":
		return ""
	case c.Why != "":
		return line(c.Why, remarkWidth)
	default:
		return plain(c.Parked)
	}
}

// standing is how a channel stands, as a sentence without its end.
func standing(c view.ChannelView) string {
	var text string
	switch {
	case c.Holder == "" && c.Aside != nil:
		text = fmt.Sprintf("%s answers message %d of a person", plain(c.Aside.Agent), c.Aside.Message)
	case c.Holder == "":
		why := standsWhy(c)
		if why == "" {
			why = "nobody has anything to answer"
		}
		text = "nobody has the turn: " + why
	default:
		text = fmt.Sprintf("%s has turn %d", plain(c.Holder), c.Turn)
		if c.State == string(channel.Waiting) {
			text = fmt.Sprintf("%s waits in turn %d", plain(c.Holder), c.Turn)
			if c.Why != "" {
				text += ": " + line(c.Why, remarkWidth)
			}
		}
		if c.Deadline != nil {
			text += ", " + left(c.Deadline) + " left"
		}
	}
	if len(c.Queue) > 0 {
		text += "; next: " + line(strings.Join(c.Queue, ", "), 2*queueWidth)
	}
	return text
}

func (a *app) showChannel(ctx context.Context, client *apiclient.Client, name string) error {
	view, err := client.Channel(ctx, name)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(view)
	}
	return a.printChannel(a.out, view)
}

func (a *app) printChannel(out io.Writer, c view.ChannelView) error {
	fmt.Fprintf(out, "%s: %s\n", a.paint(bold, plain(c.Name)), standing(c))
	rounds := "as many rounds as they like"
	if c.RoundsMax > 0 {
		rounds = howMany(c.RoundsMax, "round", "rounds")
	}
	text := fmt.Sprintf("what people say is taken by mode %s; the agents then have %s", plain(c.Mode), rounds)
	if c.Lead != "" {
		text += "; " + plain(c.Lead) + " answers who interrupts"
	}
	fmt.Fprintln(out, a.paint(dim, text))
	if !c.Configured {
		fmt.Fprintln(out, a.paint(yellow, "it is no longer in fairlead.yaml"))
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if len(c.Agents) > 0 {
		fmt.Fprintln(table, "\nAGENT\tSTATE\tTURNS\tREMARKS")
	}
	for _, m := range c.Agents {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", line(m.Name, channelWidth), plain(m.State), m.Took, memberRemarks(m))
	}
	if len(c.Open) > 0 {
		fmt.Fprintln(table, "\nMESSAGE\tBY\tMODE\tSTATE")
	}
	for _, m := range c.Open[:min(len(c.Open), openShown)] {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", m.N, line(m.By, channelWidth), plain(m.Mode), plain(m.State))
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
	add(m.Disabled, "disabled: `fairlead channel enable "+plain(m.Name)+"` lets it take part again")
	add(m.Crashed && !m.Connected, "crashed")
	add(!m.Connected && !m.Disabled && !m.Crashed, "not connected")
	add(m.Limit != "", "at a limit: "+line(m.Limit, remarkWidth))
	add(m.Owed, "queued when it connects")
	add(m.Foreign, "takes part over HTTP")
	return line(strings.Join(remarks, "; "), remarkWidth)
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
		return a.channelNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

// channelNames are those of fairlead.yaml, each with who is in it.
func (a *app) channelNames() []string {
	conf, err := a.load()
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
