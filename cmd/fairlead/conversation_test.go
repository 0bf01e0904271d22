package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/read/view"
)

// talk is a conversation with one of everything.
func talk() []view.ChannelEntry {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	all := []view.ChannelEntry{
		{Kind: "human", N: 1, By: "ann", Text: "Please begin.\n", Mode: "queue", State: "answered"},
		{Kind: "moved", Agent: "author", From: "QUEUED", To: "ACTIVE", Row: "T4", Trigger: "granted", Turn: 1},
		{
			Kind: "turn", N: 2, By: "author", Turn: 1,
			Text: "I have written `clock`, which turns a number of seconds into minutes and seconds, and committed it. Please look at it.",
		},
		{Kind: "turn", N: 3, By: "author", Turn: 1, Text: "It goes on after a pause.\n\n    clock() {\n\tprintf x\n    }"},
		{Kind: "moved", Agent: "author", From: "ACTIVE", To: "QUEUED", Row: "T7", Trigger: "completed", Turn: 1},
		{Kind: "moved", Agent: "reviewer", From: "QUEUED", To: "ACTIVE", Row: "T4", Trigger: "granted", Turn: 2},
		{Kind: "warning", Text: "Agent completed response without TURN_COMPLETE"},
		{Kind: "moved", Agent: "reviewer", From: "ACTIVE", To: "WAITING", Row: "T10", Trigger: "wait_asked", Turn: 2, Text: "may I push?"},
		{
			Kind: "human", N: 4, By: "Bob \x1b[2J", Text: "stop \x1b]0;owned\x07\r12:00:00  author  #99\n\u202eevil", Mode: "interrupt",
			State: "queued",
		},
		{Kind: "aside", N: 5, By: "lead", Text: "It will.", Re: 4},
		{Kind: "moved", Agent: "reviewer", From: "WAITING", To: "ACTIVE", Row: "T12", Trigger: "wait_resolved", Turn: 2},
		{Kind: "notice", Text: "⏱️ [reviewer] turn timed out"},
		{Kind: "moved", Agent: "reviewer", From: "ACTIVE", To: "QUEUED", Row: "T9", Trigger: "timed_out", Turn: 2},
		{Kind: "late", N: 6, By: "reviewer", Turn: 2, Text: "here I am " + strings.Repeat("ä", 200)},
		{Kind: "moved", Agent: "author", From: "ACTIVE", To: "QUEUED", Row: "T22", Trigger: "passed", Turn: 3},
		{
			Kind: "moved", Agent: "author", From: "ACTIVE", To: "QUEUED", Row: "T7", Trigger: "completed_empty", Turn: 4,
			Text: "no text in this turn",
		},
		{
			Kind: "moved", Agent: "author", From: "ACTIVE", To: "IDLE", Row: "T8", Trigger: "completed_empty_alone", Turn: 4,
			Text: "no text in this turn",
		},
		{Kind: "moved", Agent: "author", From: "ACTIVE", To: "WAITING", Row: "T17", Trigger: "interrupted", Turn: 5},
		{Kind: "moved", Agent: "author", From: "WAITING", To: "ACTIVE", Row: "T17", Trigger: "asked_itself", Turn: 5},
	}
	for i := range all {
		all[i].Seq, all[i].At = uint64(i+1), at.Add(time.Duration(i)*time.Second)
	}
	return all
}

// What people read of a channel, for a terminal of 60 columns and for a file; with every move.
func TestConversation(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	for _, as := range []struct {
		what  string
		width int
		moves bool
	}{{"on a terminal of 60 columns", 60, false}, {"in a file, with all moves", 0, true}} {
		page.WriteString("==== " + as.what + "\n")
		c := &channels.Conversation{A: &cli.App{Out: &page}, Width: as.width, AllMoves: as.moves}
		for _, e := range talk() {
			c.Entry(e)
		}
		if as.width > 0 {
			for l := range strings.Lines(c.Out.String()) {
				if cli.Columns(strings.TrimSuffix(l, "\n")) > as.width {
					t.Errorf("a line has more than %d columns: %q", as.width, l)
				}
			}
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	harmless(t, "a conversation", page.String())
	golden.Check(t, filepath.Join("testdata", "conversation.txt"), page.String())
}

// The table of channels, and one channel by itself.
func TestChannelTables(t *testing.T) {
	t.Parallel()
	synctest.Test(t, channelTables) // no time passes in it
}

func channelTables(t *testing.T) {
	soon := time.Now().Add(41*time.Second + 500*time.Millisecond)
	all := []view.ChannelView{
		{Name: "empty", State: "PARKED", Parked: "nobody", Why: "no agent is in it", Configured: true, Mode: "inject", RoundsMax: 3},
		{
			Name: "quiet", State: "PARKED", Parked: "quiet", Why: "nobody has anything to answer", Queue: []string{"ada", "bob"},
			Messages:   7,
			Configured: true, Mode: "inject",
		},
		{
			Name: "review", State: "ACTIVE", Holder: "author", Turn: 12, Deadline: &soon,
			Queue: []string{"reviewer", "tester", "another", "more"}, Messages: 37,
			Mode: "queue", RoundsMax: 1, Lead: "lead", Configured: true,
			Aside: nil,
			Open: []view.OpenMessage{
				{N: 36, By: "ann", Mode: "queue", State: "queued"},
				{N: 35, By: "bob", Mode: "inject", State: "delivered"},
			},
			Agents: []view.MemberView{
				{Name: "author", State: "ACTIVE", Connected: true, Took: 3, Working: true},
				{Name: "reviewer", State: "QUEUED", Connected: true, Limit: "cost a day"},
				{Name: "crashed", State: "OFFLINE", Crashed: true, Owed: true},
				{Name: "off", State: "OFFLINE", Connected: true, Disabled: true},
				{Name: "away", State: "OFFLINE", Foreign: true},
			},
		},
		{
			Name: "waits", State: "WAITING", Holder: "coder", Turn: 3, Why: "a person's yes \x1b[2J", Messages: 2,
			Aside: &view.AsideView{Agent: "lead", Message: 2},
		},
	}
	var page bytes.Buffer
	a := &cli.App{Out: &page}
	for _, err := range []error{
		channels.PrintChannels(a, &page, nil), channels.PrintChannels(a, &page, all),
		channels.PrintChannel(a, &page, all[0]), channels.PrintChannel(a, &page, all[2]), channels.PrintChannel(a, &page, all[3]),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	harmless(t, "a table", page.String())
	golden.Check(t, filepath.Join("testdata", "channels.txt"), page.String())
}

// Every message in a channel is printed as text: it cannot control the terminal, no line of it looks like
// Fairlead's own, and no line is wider than the terminal.
func FuzzConversation(f *testing.F) {
	for _, e := range talk() {
		text, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, 60)
	}
	f.Add([]byte(`{"kind":"human","n":1,"by":"a\nb","text":"\n\n\r\n12:00:00  x  #1\n\u200b漢字漢字"}`), 21)
	f.Add([]byte(`{"kind":"human","n":1,"by":"a","mode":"x\nevil","state":"y\nevil","text":"t"}`), 60)
	f.Fuzz(func(t *testing.T, raw []byte, width int) {
		var e view.ChannelEntry
		if json.Unmarshal(raw, &e) != nil {
			return
		}
		e.At = time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
		var out bytes.Buffer
		c := &channels.Conversation{A: &cli.App{Out: &out}, Width: max(0, width%200), AllMoves: true}
		if c.Width > 0 {
			c.Width = max(c.Width, 2*channels.TimeWidth+1)
		}
		c.Entry(e)
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		first := true
		for l := range strings.Lines(out.String()) {
			l = strings.TrimSuffix(l, "\n")
			switch {
			case l != cli.Plain(l):
				t.Errorf("a terminal would obey %q", l)
			case !first && l != "" && !strings.HasPrefix(l, strings.Repeat(" ", channels.TimeWidth)):
				t.Errorf("%q looks like a line of ours", l)
			case !first && c.Width > channels.TimeWidth && cli.Columns(l) > c.Width+1:
				t.Errorf("%q is wider than %d", l, c.Width)
			}
			first = false
		}
	})
}
