package channels

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

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
	if file, ok := a.Out.(*os.File); ok && cli.Tty(a.Out) {
		c.Width = cli.ScreenWidth
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 2*TimeWidth { //nolint:gosec // a descriptor fits an int
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
			fmt.Fprintf(&c.Out, "%s  %s%s\n", cli.Clock(e.At), c.A.Paint(c.colour(e), cli.Line(e.By, SpeakerWidth)), c.A.Paint(cli.Dim, about(e)))
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
	if c.Width > 0 && cli.Columns(text) > c.Width-TimeWidth {
		text = cut(text, c.Width-TimeWidth-1) + "…"
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
