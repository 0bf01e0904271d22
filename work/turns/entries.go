package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

const (
	KindMoved, kindNotice, kindWarning = "moved", "notice", "warning"
)

// ChannelEntries returns a part of a conversation. The error is a *team.Unknown if there is no such
// channel.
func (c *Conversations) ChannelEntries(ctx context.Context, name string, q view.EntryQuery) (view.ChannelPage, error) {
	page := view.ChannelPage{Entries: []view.ChannelEntry{}}
	q.Limit = min(cmp.Or(max(q.Limit, 0), journal.PageDefault), journal.PageMax)
	open := map[uint64]string{}
	var unknown error
	if err := c.loop.View(ctx, func(t *team.Team) {
		ch := t.Channels.ByID[channel.ChannelID(name)]
		if ch == nil {
			unknown = &team.Unknown{What: "channel", Name: name, Known: t.ChannelIDs()}
			return
		}
		page.Head = c.loop.Head()
		c.buildIndexAsync()
		for _, m := range ch.Open {
			open[m.N] = string(m.State)
		}
	}); cmp.Or(err, unknown) != nil {
		return page, cmp.Or(err, unknown)
	}
	if !c.index.isMade() {
		for _, far := range []uint64{journal.RecentFew, journal.RecentMax} {
			whole, err := c.newestPage(ctx, name, q, far, &page)
			if err != nil || whole {
				c.index.states(name, page.Entries, open)
				return page, err
			}
		}
		if err := c.buildIndex(ctx); err != nil {
			return page, err
		}
	}
	seqs, more, below := c.index.slice(name, q, page.Head)
	entries, err := c.entriesAt(ctx, name, seqs, q.Moves)
	if err != nil {
		return page, err
	}
	if q.After == 0 && len(seqs) < q.Limit && below > 0 {
		var older []view.ChannelEntry
		if older, more, err = c.older(ctx, name, q, below); err != nil {
			return page, err
		}
		entries = append(older, entries...)
	}
	page.Entries, page.More = fitPage(entries, q, more)
	c.index.states(name, page.Entries, open)
	return page, nil
}

// newestPage answers from so many of the newest changes alone if they are enough, so that the first view after
// a start does not wait for the whole journal.
func (c *Conversations) newestPage(ctx context.Context, name string, q view.EntryQuery, far uint64, page *view.ChannelPage) (whole bool,
	err error,
) {
	from := page.Head - min(page.Head, far)
	if q.Before != 0 || q.After != 0 && q.After < from {
		return false, nil
	}
	var entries []view.ChannelEntry
	lapsed := map[uint64]bool{}
	part := journal.Query{After: max(from, q.After), Until: page.Head, Entity: channel.EntityPrefix + name}
	for rec, err := range c.loop.Journal().Read(ctx, part) {
		if err != nil {
			return false, fmt.Errorf("read the messages of %s: %w", name, err)
		}
		set, err := turnOf(rec)
		if err != nil {
			return false, err
		}
		if set == nil {
			continue
		}
		entries = append(entries, entriesIn(rec, set, q.Moves)...)
		for i := range set.Body.Messages {
			if m := &set.Body.Messages[i]; m.State == channel.Lapsed {
				lapsed[m.N] = true
			}
		}
	}
	if q.After == 0 && from > 0 && len(entries) <= q.Limit {
		return false, nil
	}
	page.Entries, page.More = fitPage(entries, q, false)
	c.index.lapse(name, lapsed)
	return true, nil
}

// lapse records messages that no agent answered in time.
func (b *messageIndex) lapse(name string, numbers map[uint64]bool) {
	if len(numbers) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	page := b.page(name)
	for n := range numbers {
		page.lapse(n)
	}
}

// slice returns the Seqs of the requested entries and whether there are more beyond them. below is
// not 0 if older entries must be searched in the journal.
func (b *messageIndex) slice(name string, q view.EntryQuery, head uint64) (seqs []uint64, more bool, below uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of[name]
	if p == nil {
		return nil, false, 0
	}
	lists := [][]uint64{p.posts, p.notices}
	if q.Moves {
		lists = append(lists, p.moves)
	}
	for _, list := range lists {
		from, to := 0, after(list, head)
		if q.Before != 0 {
			to = min(to, after(list, q.Before-1))
		}
		if q.After != 0 {
			from = min(after(list, q.After), to)
			more = more || to-from > q.Limit
			to = min(to, from+q.Limit)
		} else {
			more = more || to-from > q.Limit
			from = max(from, to-q.Limit)
		}
		seqs = append(seqs, list[from:to]...)
	}
	slices.Sort(seqs)
	if len(seqs) > q.Limit {
		more = true
		if q.After != 0 {
			seqs = seqs[:q.Limit]
		} else {
			seqs = seqs[len(seqs)-q.Limit:]
		}
	}
	return seqs, more, p.below
}

// after is the index of the first Seq in a list that is greater than seq.
func after(list []uint64, seq uint64) int {
	at, found := slices.BinarySearch(list, seq)
	if found {
		at++
	}
	return at
}

// older reads entries that the index no longer holds; it reads the whole journal.
func (c *Conversations) older(ctx context.Context, name string, q view.EntryQuery, below uint64) (entries []view.ChannelEntry, more bool,
	err error,
) {
	until := below
	if q.Before != 0 {
		until = min(until, q.Before-1)
	}
	if until == 0 {
		return nil, false, nil
	}
	for rec, err := range c.loop.Journal().Read(ctx, journal.Query{Until: until, Entity: channel.EntityPrefix + name}) {
		if err != nil {
			return nil, false, fmt.Errorf("read the messages of %s: %w", name, err)
		}
		one, err := entriesOf(rec, q.Moves)
		if err != nil {
			return nil, false, err
		}
		if entries = append(entries, one...); len(entries) > 4*journal.PageMax {
			entries, more = slices.Clone(entries[len(entries)-journal.PageMax:]), true
		}
	}
	return entries, more, nil
}

// fitPage cuts a page to its limit at a change.
func fitPage(entries []view.ChannelEntry, q view.EntryQuery, more bool) ([]view.ChannelEntry, bool) {
	if entries == nil {
		entries = []view.ChannelEntry{}
	}
	if len(entries) <= q.Limit {
		return entries, more
	}
	if q.After != 0 {
		to := q.Limit
		for to > 0 && entries[to-1].Seq == entries[to].Seq {
			to--
		}
		if to == 0 { // one change is longer than the page
			to = q.Limit
			for to < len(entries) && entries[to].Seq == entries[0].Seq {
				to++
			}
		}
		return entries[:to], more || to < len(entries)
	}
	from := len(entries) - q.Limit
	for from < len(entries) && entries[from].Seq == entries[from-1].Seq {
		from++
	}
	if last := entries[len(entries)-1].Seq; from == len(entries) {
		from = slices.IndexFunc(entries, func(e view.ChannelEntry) bool { return e.Seq == last })
	}
	return entries[from:], more || from > 0
}

// states adds the delivery state of people's messages.
func (b *messageIndex) states(name string, entries []view.ChannelEntry, open map[uint64]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range entries {
		one := &entries[i]
		if one.Kind != string(channel.OfHuman) {
			continue
		}
		one.State = cmp.Or(open[one.N], string(channel.Answered))
		if p := b.of[name]; p != nil && p.lapsed[one.N] && open[one.N] == "" {
			one.State = string(channel.Lapsed)
		}
	}
}

// entriesAt reads single changes and converts them to entries.
func (c *Conversations) entriesAt(ctx context.Context, name string, seqs []uint64, moves bool) ([]view.ChannelEntry, error) {
	entries := make([]view.ChannelEntry, 0, len(seqs))
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n]-seqs[n-1] <= journal.ReadGapMax {
			n++
		}
		wanted := seqs[:n]
		seqs = seqs[n:]
		part := journal.Query{After: wanted[0] - 1, Until: wanted[n-1], Entity: channel.EntityPrefix + name}
		for rec, err := range c.loop.Journal().Read(ctx, part) {
			if err != nil {
				return nil, fmt.Errorf("read the messages of %s: %w", name, err)
			}
			if _, is := slices.BinarySearch(wanted, rec.Seq); !is {
				continue
			}
			one, err := entriesOf(rec, moves)
			if err != nil {
				return nil, err
			}
			entries = append(entries, one...)
		}
	}
	return entries, nil
}

// turnOf decodes a change of a channel; nil if it has no turn data.
func turnOf(rec journal.Change) (*channel.Set, error) {
	var data struct {
		Turn *channel.Set `json:"turn"`
	}
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return nil, fmt.Errorf("read change %d of %s: %w", rec.Seq, rec.Entity, err)
	}
	return data.Turn, nil
}

// entriesOf converts a change of a channel to entries of its conversation.
func entriesOf(rec journal.Change, moves bool) ([]view.ChannelEntry, error) {
	set, err := turnOf(rec)
	if err != nil || set == nil {
		return nil, err
	}
	return entriesIn(rec, set, moves), nil
}

func entriesIn(rec journal.Change, set *channel.Set, moves bool) []view.ChannelEntry {
	var entries []view.ChannelEntry
	if set.Body.Post != nil {
		entries = append(entries, saidBy(rec.Seq, rec.Time, &set.Body, set.Text))
	}
	if moves && rec.From != rec.To && set.Agent != "" {
		entries = append(entries, movedBy(rec, set))
	}
	agent := string(set.Agent)
	if set.Body.Say != "" {
		entries = append(entries, view.ChannelEntry{Seq: rec.Seq, At: rec.Time, Kind: kindNotice, Text: set.Body.Say, Agent: agent})
	}
	if set.Body.Warn != "" {
		entries = append(entries, view.ChannelEntry{Seq: rec.Seq, At: rec.Time, Kind: kindWarning, Text: set.Body.Warn, Agent: agent})
	}
	return entries
}

// saidBy is the entry of a message.
func saidBy(seq uint64, at time.Time, body *channel.Body, text string) view.ChannelEntry {
	post := body.Post
	said := view.ChannelEntry{Seq: seq, At: at, Kind: string(post.Kind), N: post.N, By: post.By, Text: text, Turn: post.Turn, Re: post.Re}
	for i := range body.Messages {
		if m := &body.Messages[i]; m.N == post.N {
			said.Mode, said.State = string(m.Mode), string(m.State)
		}
	}
	return said
}

// movedBy is the entry of an agent's state change, with the turn that it received or had.
func movedBy(rec journal.Change, set *channel.Set) view.ChannelEntry {
	moved := view.ChannelEntry{
		Seq: rec.Seq, At: rec.Time, Kind: KindMoved, Text: set.Body.Why, Agent: string(set.Agent),
		From: rec.From, To: rec.To, Row: rec.Row, Trigger: rec.Trigger,
	}
	if rec.Actor.Kind == "human" {
		moved.By = rec.Actor.ID
	}
	inTurn := func(s string) bool { return s == string(channel.Active) || s == string(channel.Waiting) }
	if set.Body.Head != nil && (inTurn(rec.From) || inTurn(rec.To)) {
		moved.Turn = set.Body.Head.Turn
	}
	return moved
}
