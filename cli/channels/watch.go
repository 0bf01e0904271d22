package channels

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/read/view"
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
			_, err = fmt.Fprintln(a.Out, a.Paint(cli.Dim, stateText(shown)))
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

const (
	TimeWidth    = len("15:04:05  ")
	readingWidth = 100 // longer lines are hard to read, even if the terminal is wider
	SpeakerWidth = 40
)

// Conversation renders the conversation of a channel for people. Text of agents and people cannot
// look like a line of Fairlead, because it is indented.
type Conversation struct {
	A        *cli.App
	Width    int  // of a line; 0: lines are not broken
	AllMoves bool // every change of an agent's state, not only of the turn

	Out  bytes.Buffer
	last view.ChannelEntry // the previous entry, whose speaker was printed
}

// NewConversation makes a printer of a conversation for this terminal.
func NewConversation(a *cli.App) *Conversation {
	c := &Conversation{A: a}
	if cli.Tty(a.Out) {
		c.Width = cli.ScreenWidth
		if width := a.Columns(); width > 2*TimeWidth {
			c.Width = min(width, readingWidth)
		}
	}
	return c
}

// Flush writes what was rendered.
func (c *Conversation) Flush() error {
	_, err := c.Out.WriteTo(c.A.Out)
	return err
}

// Entry renders one entry of the conversation.
func (c *Conversation) Entry(e view.ChannelEntry) {
	switch e.Kind {
	case EntryMoved:
		if text := c.move(e); text != "" {
			c.Note(e.At, cli.Dim, text)
			c.last = view.ChannelEntry{}
		}
		return
	case EntryNotice:
		c.Note(e.At, cli.Yellow, e.Text)
	case EntryWarning:
		c.Note(e.At, cli.Yellow, "warning: "+e.Text)
	default:
		if !c.goesOn(e) {
			fmt.Fprintf(&c.Out, "%s  %s%s\n", cli.Clock(e.At), c.A.Paint(c.colour(e), cli.Line(e.By, SpeakerWidth)),
				c.A.Paint(cli.Dim, about(e)))
		}
		c.Text(e.Text)
	}
	c.last = e
}

// goesOn reports whether an entry continues the previous one: an agent's answer comes in pieces.
func (c *Conversation) goesOn(e view.ChannelEntry) bool {
	return e.Kind == EntryTurn && c.last.Kind == EntryTurn && e.By == c.last.By && e.Turn == c.last.Turn && e.Re == c.last.Re
}

func (c *Conversation) colour(e view.ChannelEntry) string {
	switch e.Kind {
	case EntryHuman:
		return cli.Green
	case EntryLate:
		return cli.Dim
	default:
		return cli.Bold
	}
}

// about is what a person should know about a message beside its speaker.
func about(e view.ChannelEntry) string {
	text := fmt.Sprintf("  #%d", e.N)
	switch e.Kind {
	case EntryHuman:
		if e.Mode != "" {
			text += " (" + cli.Line(e.Mode, SpeakerWidth) + ")"
		}
		if e.State != "" && e.State != string(channel.Answered) {
			text += " " + cli.Line(e.State, SpeakerWidth)
		}
	case EntryAside:
		text += " without the turn"
	case EntryLate:
		text += " late"
	}
	if e.Re != 0 {
		text += fmt.Sprintf(", to #%d", e.Re)
	}
	return text
}

// move describes a change of an agent's state; empty: it is not shown.
func (c *Conversation) move(e view.ChannelEntry) string {
	agent := cli.Line(e.Agent, SpeakerWidth)
	switch {
	case e.To == string(channel.Active) && e.From == string(channel.Queued):
		if e.Turn != 0 {
			return fmt.Sprintf("── turn %d: %s", e.Turn, agent)
		}
		return "── " + agent + " has the turn"
	case e.Trigger == string(channel.Interrupted):
		return "── " + agent + " is interrupted"
	case e.Trigger == string(channel.AskedItself):
		return "── " + agent + " answers that person; its turn is paused"
	case e.To == string(channel.Active) && e.From == string(channel.Waiting):
		return "── " + agent + " goes on"
	case e.To == string(channel.Waiting):
		return "── " + agent + " waits" + cli.Why(e.Text)
	case e.Trigger == string(channel.PassedOn):
		return "── " + agent + " passes"
	case channel.WithoutText(channel.Event(e.Trigger)):
		return "── " + agent + " ends its turn" + cli.Why(e.Text)
	case c.AllMoves:
		return fmt.Sprintf("   %s %s -> %s  %s %s", agent, cli.OrDash(e.From), cli.OrDash(e.To), cli.Plain(e.Row), cli.Plain(e.Trigger))
	default:
		return ""
	}
}

// Note writes a line of Fairlead. It may contain text of agents, so it is kept on one line.
func (c *Conversation) Note(at time.Time, colour, text string) {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	text = indent + cli.Line(text, cli.ErrorWidth)
	if c.Width > 0 {
		text = cli.Fit(text, c.Width-TimeWidth)
	}
	fmt.Fprintf(&c.Out, "%s  %s\n", cli.Clock(at), c.A.Paint(colour, text))
}

// Text writes a message, indented and, on a terminal, wrapped at spaces.
func (c *Conversation) Text(said string) {
	for l := range strings.Lines(strings.TrimRight(cli.Plain(said), "\n") + "\n") {
		l = strings.TrimSuffix(l, "\n")
		for _, piece := range wrap(strings.ReplaceAll(l, "\t", "    "), c.Width-TimeWidth) {
			c.Out.WriteString(strings.TrimRight(strings.Repeat(" ", TimeWidth)+piece, " ") + "\n")
		}
	}
}

// wrap breaks a line at spaces into pieces of at most width columns; a longer word is cut. All
// pieces are indented like the line. A width of 0 or less breaks nothing.
func wrap(l string, width int) []string {
	if width <= 0 || cli.Columns(l) <= width {
		return []string{l}
	}
	indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
	if len(indent) > width/2 {
		indent = ""
	}
	var pieces []string
	piece, empty := indent, true
	add := func() { pieces, piece, empty = append(pieces, piece), indent, true }
	for _, word := range strings.Fields(l) {
		if !empty && cli.Columns(piece)+1+cli.Columns(word) > width {
			add()
		}
		if !empty {
			piece += " "
		}
		for cli.Columns(piece)+cli.Columns(word) > width {
			head := cut(word, width-cli.Columns(piece))
			piece += head
			word = word[len(head):]
			add()
		}
		piece += word
		empty = empty && word == ""
	}
	if !empty {
		add()
	}
	return pieces
}

// cut returns the beginning of a word in at most that many columns, but at least one letter.
func cut(word string, width int) string {
	n := 0
	for i, r := range word {
		if n += cli.Wide(r); n > width && i > 0 {
			return word[:i]
		}
	}
	return word
}
