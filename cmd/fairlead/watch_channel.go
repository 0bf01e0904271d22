package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/view"
)

// watched is what `fairlead watch NAME` was asked to show of a channel.
type watched struct {
	noFollow bool
	moves    bool
	last     int
}

// Kinds of lines of a conversation.
const (
	entryHuman   = "human"
	entryTurn    = "turn"
	entryAside   = "aside"
	entryLate    = "late"
	entryMoved   = "moved"
	entryNotice  = "notice"
	entryWarning = "warning"
)

const (
	entriesMost = 500                    // of one page
	watchSettle = 100 * time.Millisecond // between two looks at a lively channel
)

// channelWatch follows the conversation of a channel.
type channelWatch struct {
	client  *apiclient.Client
	channel string
	moves   bool
	after   uint64                              // everything up to here was shown
	enough  func(context.Context) (bool, error) // says that nothing more is waited for; nil: never
}

// follow gives what is after the place it stands at, and then what comes, each line once and
// in order, until nothing more is waited for. That is asked before the look, so that the look
// finds what it was waited for.
func (w *channelWatch) follow(ctx context.Context, show func([]view.ChannelEntry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	from := int64(w.after) //nolint:gosec // no journal is that long
	go func() {
		for _, err := range w.client.Events(ctx, apiclient.EventsQuery{After: from, Entity: "channel/" + w.channel}) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		ended <- ctx.Err()
	}()
	for {
		over := false
		if w.enough != nil {
			var err error
			if over, err = w.enough(ctx); err != nil {
				return err
			}
		}
		if err := w.catchUp(ctx, show); err != nil || over {
			return err
		}
		if err := pause(ctx, watchSettle); err != nil {
			return err
		}
		select {
		case <-changed:
		case err := <-ended:
			return err
		}
	}
}

// catchUp gives everything that there is after the place, page by page.
func (w *channelWatch) catchUp(ctx context.Context, show func([]view.ChannelEntry) error) error {
	for {
		page, err := w.client.ChannelEntries(ctx, w.channel, view.EntryQuery{After: w.after, Limit: entriesMost, Moves: w.moves})
		if err != nil {
			return err
		}
		if n := len(page.Entries); n > 0 {
			w.after = page.Entries[n-1].Seq
		}
		if err := show(page.Entries); err != nil || !page.More || len(page.Entries) == 0 {
			return err
		}
	}
}

// watchNamed shows an agent or a channel, whichever has the name.
func (a *app) watchNamed(ctx context.Context, client *reader, name string, opts watched) error {
	channel, sure := strings.CutPrefix(name, "#")
	_, err := client.Channel(ctx, channel)
	if sure || err == nil && !a.agentToo(ctx, client.Client, name) {
		if err != nil {
			return err
		}
		return a.watchChannel(ctx, client, channel, opts)
	}
	if err != nil && !unknown(err) {
		return err
	}
	if opts != (watched{last: watchLast}) {
		return &coded{exitUsage, fmt.Errorf("%s is no channel: --no-follow, --moves and --last are for channels", line(name, errorWidth))}
	}
	if agent, ok := a.sessionOwner(ctx, client.Client, name); ok {
		return a.watchSession(ctx, client.Client, agent, name)
	}
	if client.offline != nil {
		return client.offline
	}
	return a.watchAgent(ctx, client.Client, name)
}

// agentToo says whether a channel's name is an agent's too; the agent is then meant.
func (a *app) agentToo(ctx context.Context, client *apiclient.Client, name string) bool {
	if _, err := client.Why(ctx, name); err != nil {
		return false
	}
	if !a.json {
		fmt.Fprintf(a.err, "there is an agent and a channel of that name, and this is the agent; the channel is `fairlead watch '#%s'`\n", plain(name))
	}
	return true
}

func (a *app) channelWatchVerb() *cobra.Command {
	var opts watched
	cmd := &cobra.Command{
		Use:   "watch CHANNEL",
		Short: "Show the conversation of a channel, and follow it",
		Long: `It prints the newest lines and the agent that has the turn, and then what comes, until Ctrl-C.
Escape sequences in what agents say have no effect.`,
		Example: `  fairlead channel watch reviews
  fairlead channel watch reviews --no-follow --last 20`,
		Args: func(cmd *cobra.Command, words []string) error {
			if err := opts.valid(); err != nil {
				return usage(cmd, err)
			}
			return args(cobra.ExactArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeChannel,
		RunE: a.reading(func(ctx context.Context, client *reader, words []string) error {
			return a.watchChannel(ctx, client, strings.TrimPrefix(words[0], "#"), opts)
		}),
	}
	opts.flags(cmd, "")
	return cmd
}

// flags adds the flags for how a channel is shown.
func (w *watched) flags(cmd *cobra.Command, of string) {
	cmd.Flags().BoolVar(&w.noFollow, "no-follow", false, of+"print what there is, and return")
	cmd.Flags().BoolVar(&w.moves, "moves", false, of+"also show every change of an agent's state")
	cmd.Flags().IntVar(&w.last, "last", watchLast, of+"how many of the newest lines to begin with")
}

func (w *watched) valid() error {
	if w.last < 1 || w.last > entriesMost {
		return fmt.Errorf("--last %d is out of range; give a number from 1 to %d", w.last, entriesMost)
	}
	return nil
}

// unknown says that there is nothing of that name, or that the daemon is of a version which
// has no channels at all.
func unknown(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && (problem.Status == http.StatusNotFound || problem.Status == http.StatusNotImplemented)
}

// watchChannel shows the last of a conversation, and then what comes.
func (a *app) watchChannel(ctx context.Context, client *reader, name string, opts watched) error {
	shown, err := client.Channel(ctx, name)
	if err != nil {
		return err
	}
	show := a.conversation()
	show.allMoves = opts.moves
	tell := func(entries []view.ChannelEntry) error {
		for _, e := range entries {
			if !a.json {
				show.entry(e)
			} else if err := a.printJSON(e); err != nil {
				return err
			}
		}
		return show.flush()
	}
	moves := opts.moves || !a.json // turn changes are shown to people in any case
	first, err := client.ChannelEntries(ctx, name, view.EntryQuery{Limit: opts.last, Moves: moves})
	if err != nil {
		return err
	}
	if !a.json && first.More {
		fmt.Fprintln(a.out, a.paint(dim, "(older lines are left out; --last shows more of them)"))
	}
	if err := tell(first.Entries); err != nil {
		return err
	}
	if opts.noFollow || client.offline != nil {
		if !a.json {
			_, err = fmt.Fprintln(a.out, a.paint(dim, standing(shown)))
		}
		return err
	}
	if !a.json && len(first.Entries) == 0 {
		fmt.Fprintln(a.err, a.paint(dim, "nothing was said yet; `fairlead channel say "+plain(name)+" TEXT` says something"))
	}
	w := channelWatch{client: client.Client, channel: name, moves: moves, after: first.Head}
	if n := len(first.Entries); n > 0 {
		w.after = first.Entries[n-1].Seq
	}
	return w.follow(ctx, tell)
}
