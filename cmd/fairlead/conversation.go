package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	timeWidth    = len("15:04:05  ")
	readingWidth = 100 // longer lines are hard to read, however wide the terminal is
	speakerWidth = 40
)

// conversation renders what was said in a channel for people to read. What agents and people
// say is text: it cannot look like a line of ours, since its own lines are indented.
type conversation struct {
	a        *app
	width    int  // of a line; 0: lines are not broken
	allMoves bool // every move of an agent, and not only who gets the turn

	out  bytes.Buffer
	last view.ChannelEntry // of the lines before: whose words they were
}

func (a *app) conversation() *conversation {
	c := &conversation{a: a}
	if file, ok := a.out.(*os.File); ok && tty(a.out) {
		c.width = screenWidth
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 2*timeWidth { //nolint:gosec // a descriptor fits an int
			c.width = min(width, readingWidth)
		}
	}
	return c
}

// flush writes what was rendered.
func (c *conversation) flush() error {
	_, err := c.out.WriteTo(c.a.out)
	return err
}

// entry renders one line of the conversation.
func (c *conversation) entry(e view.ChannelEntry) {
	switch e.Kind {
	case entryMoved:
		if text := c.move(e); text != "" {
			c.note(e.At, dim, text)
			c.last = view.ChannelEntry{}
		}
		return
	case entryNotice:
		c.note(e.At, yellow, e.Text)
	case entryWarning:
		c.note(e.At, yellow, "warning: "+e.Text)
	default:
		if !c.goesOn(e) {
			fmt.Fprintf(&c.out, "%s  %s%s\n", clock(e.At), c.a.paint(c.colour(e), line(e.By, speakerWidth)), c.a.paint(dim, about(e)))
		}
		c.text(e.Text)
	}
	c.last = e
}

// goesOn says that a line is more of the words before it: what an agent says comes in pieces.
func (c *conversation) goesOn(e view.ChannelEntry) bool {
	return e.Kind == entryTurn && c.last.Kind == entryTurn && e.By == c.last.By && e.Turn == c.last.Turn && e.Re == c.last.Re
}

func (c *conversation) colour(e view.ChannelEntry) string {
	switch e.Kind {
	case entryHuman:
		return green
	case entryLate:
		return dim
	default:
		return bold
	}
}

// about is what a person should know of somebody's words beside who said them.
func about(e view.ChannelEntry) string {
	text := fmt.Sprintf("  #%d", e.N)
	switch e.Kind {
	case entryHuman:
		if e.Mode != "" {
			text += " (" + line(e.Mode, speakerWidth) + ")"
		}
		if e.State != "" && e.State != string(channel.Answered) {
			text += " " + line(e.State, speakerWidth)
		}
	case entryAside:
		text += " without the turn"
	case entryLate:
		text += " late"
	}
	if e.Re != 0 {
		text += fmt.Sprintf(", to #%d", e.Re)
	}
	return text
}

// move is a move of an agent in words; empty where it is not shown.
func (c *conversation) move(e view.ChannelEntry) string {
	agent := line(e.Agent, speakerWidth)
	switch {
	case e.To == string(channel.Active) && e.From == string(channel.Queued):
		if e.Turn != 0 {
			return fmt.Sprintf("── turn %d: %s", e.Turn, agent)
		}
		return "── " + agent + " has the turn"
	case e.Trigger == string(channel.Interrupted):
		return "── " + agent + " is interrupted"
	case e.Trigger == string(channel.AskedItself):
		return "── " + agent + " answers that person; its turn stands still"
	case e.To == string(channel.Active) && e.From == string(channel.Waiting):
		return "── " + agent + " goes on"
	case e.To == string(channel.Waiting):
		return "── " + agent + " waits" + because(e.Text)
	case e.Trigger == string(channel.PassedOn):
		return "── " + agent + " passes"
	case c.allMoves:
		return fmt.Sprintf("   %s %s -> %s  %s %s", agent, orDash(e.From), orDash(e.To), plain(e.Row), plain(e.Trigger))
	default:
		return ""
	}
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// note writes a line of ours. What it tells of may be somebody's words: it stays one line.
func (c *conversation) note(at time.Time, colour, text string) {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	text = indent + line(text, errorWidth)
	if c.width > 0 && columns(text) > c.width-timeWidth {
		text = cut(text, c.width-timeWidth-1) + "…"
	}
	fmt.Fprintf(&c.out, "%s  %s\n", clock(at), c.a.paint(colour, text))
}

func clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }

// text writes somebody's words, indented, and on a terminal broken at spaces.
func (c *conversation) text(said string) {
	for l := range strings.Lines(strings.TrimRight(plain(said), "\n") + "\n") {
		l = strings.TrimSuffix(l, "\n")
		for _, piece := range wrap(strings.ReplaceAll(l, "\t", "    "), c.width-timeWidth) {
			c.out.WriteString(strings.TrimRight(strings.Repeat(" ", timeWidth)+piece, " ") + "\n")
		}
	}
}

// wrap breaks a line at spaces into pieces of at most width columns; a longer word is cut.
// What follows is indented as the line is. A width of nothing breaks nothing.
func wrap(l string, width int) []string {
	if width <= 0 || columns(l) <= width {
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
		if !empty && columns(piece)+1+columns(word) > width {
			add()
		}
		if !empty {
			piece += " "
		}
		for columns(piece)+columns(word) > width {
			head := cut(word, width-columns(piece))
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

// columns is how wide a text is on a terminal, near enough: marks that stand on others need
// none, and wide letters two.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += wide(r)
	}
	return n
}

func wide(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0x1F300 && r <= 0x1FAFF, r >= 0xFF01 && r <= 0xFF60:
		return 2
	default:
		return 1
	}
}

// cut is the beginning of a word in at most that many columns, one letter at least.
func cut(word string, width int) string {
	n := 0
	for i, r := range word {
		if n += wide(r); n > width && i > 0 {
			return word[:i]
		}
	}
	return word
}
