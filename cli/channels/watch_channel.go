package channels

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/view"
)

// Watched are the options of `fairlead watch NAME` for a channel.
type Watched struct {
	noFollow bool
	moves    bool
	Last     int
}

// Kinds of entries of a conversation.
const (
	EntryHuman   = "human"
	EntryTurn    = "turn"
	EntryAside   = "aside"
	EntryLate    = "late"
	EntryMoved   = "moved"
	EntryNotice  = "notice"
	EntryWarning = "warning"
)

const (
	EntriesMost = 500                    // of one page
	watchSettle = 100 * time.Millisecond // between two reads of a busy channel
)

// channelWatch follows the conversation of a channel.
type channelWatch struct {
	client  *apiclient.Client
	channel string
	moves   bool
	after   uint64                              // the sequence up to which entries were shown
	enough  func(context.Context) (bool, error) // reports that nothing more is waited for; nil: never
}

// follow shows the entries after its position and then new ones, each once and in order, until
// enough reports true. enough is called before the read, so that the read includes what was waited
// for.
func (w *channelWatch) follow(ctx context.Context, show func([]view.ChannelEntry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from := int64(w.after) //nolint:gosec // no journal is that long
	changed, ended := w.client.Changed(ctx, apiclient.EventsQuery{After: from, Entity: "channel/" + w.channel})
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
		if err := cli.Pause(ctx, watchSettle); err != nil {
			return err
		}
		select {
		case <-changed:
		case err := <-ended:
			return err
		}
	}
}

// catchUp shows all existing entries after its position, page by page.
func (w *channelWatch) catchUp(ctx context.Context, show func([]view.ChannelEntry) error) error {
	for {
		page, err := w.client.Channels.Entries(ctx, w.channel, view.EntryQuery{After: w.after, Limit: EntriesMost, Moves: w.moves})
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

// Flags adds the flags for how a channel is shown.
func (w *Watched) Flags(cmd *cobra.Command, of string) {
	cmd.Flags().BoolVar(&w.noFollow, "no-follow", false, of+"print the existing entries and return")
	cmd.Flags().BoolVar(&w.moves, "moves", false, of+"also show every change of an agent's state")
	cmd.Flags().IntVar(&w.Last, "last", cli.WatchLast, of+"how many of the newest lines to begin with")
}

// Valid checks the flags against each other.
func (w *Watched) Valid() error {
	if w.Last < 1 || w.Last > EntriesMost {
		return fmt.Errorf("--last %d is out of range; give a number from 1 to %d", w.Last, EntriesMost)
	}
	return nil
}

// WatchChannel shows the last entries of a conversation, and then new ones.
func WatchChannel(ctx context.Context, a *cli.App, client *cli.Reader, name string, opts Watched) error {
	shown, err := client.Channels.Show(ctx, name)
	if err != nil {
		return err
	}
	show := NewConversation(a)
	show.AllMoves = opts.moves
	tell := func(entries []view.ChannelEntry) error {
		for _, e := range entries {
			if !a.JSON {
				show.Entry(e)
			} else if err := a.PrintJSON(e); err != nil {
				return err
			}
		}
		return show.Flush()
	}
	moves := opts.moves || !a.JSON // turn changes are shown to people in any case
	first, err := client.Channels.Entries(ctx, name, view.EntryQuery{Limit: opts.Last, Moves: moves})
	if err != nil {
		return err
	}
	if !a.JSON && first.More {
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, "(older lines are left out; --last shows more of them)"))
	}
	if err := tell(first.Entries); err != nil {
		return err
	}
	if opts.noFollow || client.Offline != nil {
		if !a.JSON {
			_, err = fmt.Fprintln(a.Out, a.Paint(cli.Dim, standing(shown)))
		}
		return err
	}
	if !a.JSON && len(first.Entries) == 0 {
		fmt.Fprintln(a.Err, a.Paint(cli.Dim, "nothing was said yet; `fairlead channel say "+cli.Plain(name)+" TEXT` says something"))
	}
	w := channelWatch{client: client.Client, channel: name, moves: moves, after: first.Head}
	if n := len(first.Entries); n > 0 {
		w.after = first.Entries[n-1].Seq
	}
	return w.follow(ctx, tell)
}
