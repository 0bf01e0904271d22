package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

const (
	indexSeqsMax   = 1 << 17   // Seqs kept for each kind of entry of a channel; older entries are found by reading the journal
	newestMax      = 256       // texts of a channel kept in memory: more than an agent receives with its turn
	newestBytesMax = 256 << 10 // bytes of them together: as much as a prompt holds
	allNewestMax   = 64 << 20  // bytes of them in all channels
	lapsedMax      = 4096      // unanswered messages to all that are remembered; others are shown as answered
)

// messageIndex holds where in the journal the entries of all channels are, so that a page of a
// conversation is read without a search. It is built once from the journal and updated with every
// append.
type messageIndex struct {
	mu    sync.Mutex
	of    map[string]*channelIndex
	from  uint64 // appends are recorded from this Seq on; 0: none yet
	bytes int    // of all texts in memory
	begun bool   // the build has begun; only the loop uses it
	made  bool   // the build is complete

	making chan struct{} // buffered channel of length 1: a lock for the build
}

// channelIndex is the index of one channel, guarded by messageIndex.mu.
type channelIndex struct {
	first   uint64   // number of the first message in posts
	posts   []uint64 // Seq of message first, first+1, …
	notices []uint64 // Seqs of announcements and warnings without a message
	moves   []uint64 // Seqs of state changes without text
	below   uint64   // entries up to this Seq may be missing, because a list was cut
	newest  []view.ChannelEntry
	bytes   int
	lapsed  map[uint64]bool
}

// note records appended changes, the first with Seq seq.
func (b *messageIndex) note(changes []change.Change, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range changes {
		ch, at := &changes[i], seq+uint64(i)
		name, ok := strings.CutPrefix(ch.Entity, channel.EntityPrefix)
		set := change.As[channel.Set](ch.Body)
		if !ok || set == nil {
			continue
		}
		b.from = cmp.Or(b.from, at)
		page, body := b.page(name), &set.Body
		page.add(at, body, ch.From != ch.To)
		if body.Post != nil {
			b.keep(page, saidBy(at, ch.At, body, set.Text))
		}
	}
}

func (b *messageIndex) page(name string) *channelIndex {
	page := b.of[name]
	if page == nil {
		if b.of == nil {
			b.of = map[string]*channelIndex{}
		}
		page = &channelIndex{}
		b.of[name] = page
	}
	return page
}

// add records where a change is. Changes come in order.
func (p *channelIndex) add(seq uint64, body *channel.Body, moved bool) {
	switch {
	case body.Post != nil:
		if len(p.posts) == 0 {
			p.first = body.Post.N
		}
		p.posts = append(p.posts, seq)
		p.first += uint64(p.halve(&p.posts))
	case body.Say != "" || body.Warn != "":
		p.notices = append(p.notices, seq)
		p.halve(&p.notices)
	case moved:
		p.moves = append(p.moves, seq)
		p.halve(&p.moves)
	}
	for i := range body.Messages {
		if m := &body.Messages[i]; m.State == channel.Lapsed {
			p.lapse(m.N)
		}
	}
}

func (p *channelIndex) lapse(n uint64) {
	if p.lapsed == nil {
		p.lapsed = map[uint64]bool{}
	}
	if len(p.lapsed) < lapsedMax {
		p.lapsed[n] = true
	}
}

// halve drops the older half of a full list and returns how many entries that were.
func (p *channelIndex) halve(list *[]uint64) int {
	if len(*list) <= indexSeqsMax {
		return 0
	}
	half := len(*list) / 2
	p.below = max(p.below, (*list)[half-1])
	*list = slices.Clone((*list)[half:])
	return half
}

// keep stores a text in memory.
func (b *messageIndex) keep(page *channelIndex, said view.ChannelEntry) {
	page.newest = append(page.newest, said)
	page.bytes += len(said.Text)
	b.bytes += len(said.Text)
	for len(page.newest) > newestMax || page.bytes > newestBytesMax {
		b.forget(page, 1)
	}
	for name := range b.of {
		if b.bytes <= allNewestMax {
			break
		}
		if other := b.of[name]; other != page {
			b.forget(other, len(other.newest))
		}
	}
}

func (b *messageIndex) forget(page *channelIndex, n int) {
	for _, said := range page.newest[:n] {
		page.bytes -= len(said.Text)
		b.bytes -= len(said.Text)
	}
	clear(page.newest[:n])        // release the texts at once
	page.newest = page.newest[n:] // release the array when the list next grows; moving it each time would be slow
	if len(page.newest) == 0 {
		page.newest = nil
	}
}

// begin sets the end of the past to read. It runs in the loop, at Seq head.
func (b *messageIndex) begin(head uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.from = cmp.Or(b.from, head+1)
}

// buildIndex reads the past, once.
func (c *Conversations) buildIndex(ctx context.Context) error {
	b := &c.index
	select {
	case b.making <- struct{}{}:
		defer func() { <-b.making }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.isMade() {
		return nil
	}
	if err := c.loop.View(ctx, func(*team.Team) { b.begin(c.loop.Head()) }); err != nil {
		return err
	}
	past := map[string]*channelIndex{}
	b.mu.Lock()
	until := b.from - 1
	b.mu.Unlock()
	if until > 0 {
		if err := readPast(ctx, c.loop.Journal(), until, past); err != nil {
			return err
		}
	}
	b.add(past)
	return nil
}

// buildIndexAsync builds the index for the next request. It runs in the loop.
func (c *Conversations) buildIndexAsync() {
	if c.index.begun {
		return
	}
	c.index.begun = true
	c.loop.Go(func(ctx context.Context) {
		if err := c.buildIndex(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, loop.ErrClosed) {
			c.log.Warn("the messages of the channels could not be read; Fairlead tries again at the next request", "error", err)
		}
	})
}

func (b *messageIndex) isMade() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.made
}

// add inserts the past before what was recorded since.
func (b *messageIndex) add(past map[string]*channelIndex) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string]*channelIndex{}
	}
	for name, was := range past {
		now := b.of[name]
		if now == nil {
			b.of[name] = was
			continue
		}
		if len(was.posts) > 0 {
			now.first = was.first
		}
		now.posts = append(was.posts, now.posts...)
		now.notices = append(was.notices, now.notices...)
		now.moves = append(was.moves, now.moves...)
		now.below = was.below
		for n := range was.lapsed {
			now.lapse(n)
		}
	}
	b.made = true
}

// readPast records where the past entries of all channels are.
func readPast(ctx context.Context, j journal.Journal, until uint64, past map[string]*channelIndex) error {
	for rec, err := range j.Read(ctx, journal.Query{Until: until}) {
		if err != nil {
			return fmt.Errorf("read the messages of the channels: %w", err)
		}
		name, ok := strings.CutPrefix(rec.Entity, channel.EntityPrefix)
		if !ok {
			continue
		}
		var data struct {
			Turn *struct {
				Body channel.Body `json:"body"`
			} `json:"turn"`
		}
		if err := json.Unmarshal(rec.Data, &data); err != nil {
			return fmt.Errorf("read change %d of %s: %w", rec.Seq, rec.Entity, err)
		}
		if data.Turn == nil {
			continue
		}
		page := past[name]
		if page == nil {
			page = &channelIndex{}
			past[name] = page
		}
		page.add(rec.Seq, &data.Turn.Body, rec.From != rec.To)
	}
	return nil
}

// atHand returns the messages that are in memory, and the Seqs of the others.
func (b *messageIndex) atHand(channel string, numbers []uint64) (said []view.ChannelEntry, where []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	page := b.of[channel]
	if page == nil {
		return nil, nil
	}
	for _, n := range numbers {
		at, ok := slices.BinarySearchFunc(page.newest, n, func(e view.ChannelEntry, n uint64) int { return int(int64(e.N) - int64(n)) })
		switch {
		case ok:
			said = append(said, page.newest[at])
		case n >= page.first && n-page.first < uint64(len(page.posts)):
			where = append(where, page.posts[n-page.first])
		}
	}
	return said, where
}

// recent returns those of the messages that are among the newest changes.
func (c *Conversations) recent(ctx context.Context, name string, numbers []uint64) ([]view.ChannelEntry, error) {
	var head uint64
	if err := c.loop.View(ctx, func(*team.Team) { head = c.loop.Head() }); err != nil {
		return nil, err
	}
	var said []view.ChannelEntry
	q := journal.Query{After: head - min(head, journal.RecentMax), Until: head, Entity: channel.EntityPrefix + name}
	for rec, err := range c.loop.Journal().Read(ctx, q) {
		if err != nil {
			return nil, fmt.Errorf("read the messages of %s: %w", name, err)
		}
		entries, err := entriesOf(rec, false)
		if err != nil {
			return nil, err
		}
		for _, one := range entries {
			if one.N != 0 && slices.Contains(numbers, one.N) {
				said = append(said, one)
			}
		}
	}
	return said, nil
}

// Messages returns the messages with these numbers, in order. Messages that are too old to be found
// quickly are left out.
func (c *Conversations) Messages(ctx context.Context, channel string, numbers []uint64) ([]view.ChannelEntry, error) {
	said, where := c.index.atHand(channel, numbers)
	if len(said)+len(where) < len(numbers) && !c.index.isMade() {
		if all, err := c.recent(ctx, channel, numbers); err != nil || len(all) == len(numbers) {
			return all, err
		}
		if err := c.buildIndex(ctx); err != nil {
			return nil, err
		}
		said, where = c.index.atHand(channel, numbers)
	}
	if len(where) == 0 {
		return said, nil
	}
	read, err := c.entriesAt(ctx, channel, where, false)
	if err != nil {
		return nil, err
	}
	for _, one := range read {
		if one.N != 0 {
			said = append(said, one)
		}
	}
	slices.SortFunc(said, func(a, b view.ChannelEntry) int { return int(int64(a.N) - int64(b.N)) })
	return said, nil
}
