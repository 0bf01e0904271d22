package main

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A test that cannot fail proves nothing: the audit that the crash tests trust sees each fault.
func TestAuditSees(t *testing.T) {
	t.Parallel()
	moved := func(agent, from, to, row string, turn uint64) view.ChannelEntry {
		return view.ChannelEntry{Kind: channels.EntryMoved, Agent: agent, From: from, To: to, Row: row, Turn: turn}
	}
	good := func() ([]view.ChannelEntry, books) {
		entries := []view.ChannelEntry{
			{Kind: channels.EntryHuman, N: 1, Text: "p-1"},
			moved("ada", "IDLE", "QUEUED", "T2", 0), moved("bob", "IDLE", "QUEUED", "T2", 0),
			moved("ada", "QUEUED", "ACTIVE", "T4", 1),
			{Kind: channels.EntryTurn, N: 2, By: "ada", Turn: 1, Text: "turn ada-1\n"},
			moved("ada", "ACTIVE", "QUEUED", "T7", 1), moved("bob", "QUEUED", "ACTIVE", "T4", 2),
			{Kind: channels.EntryLate, N: 3, By: "bob", Text: "turn bob-1\nand bob-2"},
		}
		return entries, books{
			told: map[string][]string{
				"ada": {"ada-1 Channel talk, turn 1: it is your turn to speak. You are ada."},
				"bob": {"bob-1 Channel talk, turn 2: it is your turn to speak. You are bob."},
			},
			heard: map[string][]string{"ada": {"ada-1 1"}, "bob": {"bob-1 1", "bob-1 2"}},
			said:  map[string][]string{"ada": {"ada-1"}, "bob": {"bob-1", "bob-2"}},
		}
	}
	all, b := good()
	if f := b.audit(all, []string{"p-1"}); len(f.all()) > 0 {
		t.Errorf("where nothing is wrong it finds %q", f.all())
	}
	for what, spoil := range map[string]func(*[]view.ChannelEntry, *books){
		`"p-1" of a person is there 2 times`:           func(all *[]view.ChannelEntry, _ *books) { *all = append(*all, (*all)[0]) },
		`"p-1" of a person was acknowledged`:           func(all *[]view.ChannelEntry, _ *books) { *all = (*all)[1:] },
		"ada said ada-1 once, and it is there 2 times": func(all *[]view.ChannelEntry, _ *books) { *all = append(*all, (*all)[4]) },
		"bob said bob-2, and it is not there":          func(all *[]view.ChannelEntry, _ *books) { (*all)[7].Text = "turn bob-1" },
		"was told of turn 2 in": func(_ *[]view.ChannelEntry, b *books) {
			b.told["ada"] = append(b.told["ada"], b.told["bob"][0])
		},
		"bob was given turn 2, and \"\" was told so": func(_ *[]view.ChannelEntry, b *books) { b.told["bob"] = nil },
		"bob was given message 1 twice": func(_ *[]view.ChannelEntry, b *books) {
			b.heard["bob"] = append(b.heard["bob"], "bob-9 1")
		},
		`["ada" "bob"] hold the turn`: func(all *[]view.ChannelEntry, _ *books) { (*all)[5].To = "WAITING" },
		"turn 1 after turn 1":         func(all *[]view.ChannelEntry, _ *books) { (*all)[6].Turn = 1 },
		"ada was QUEUED: ada ACTIVE -> OFFLINE": func(all *[]view.ChannelEntry, _ *books) {
			*all = append(*all, moved("ada", "ACTIVE", "OFFLINE", "T11", 3))
		},
	} {
		all, b := good()
		spoil(&all, &b)
		if found := strings.Join(wordsOf(b.audit(all, []string{"p-1"})), "\n"); !strings.Contains(found, what) {
			t.Errorf("%s: it finds %q", what, found)
		}
	}
}
