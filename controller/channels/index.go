package channels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	bookSeqsMax    = 1 << 17   // places kept for each kind of entry of a channel; older ones are found by reading the journal
	newestMax      = 256       // texts of a channel that are kept at hand: more than an agent is given with its turn
	newestBytesMax = 256 << 10 // of them together: as much as a prompt holds
	allNewestMax   = 64 << 20  // bytes of them in all channels
	lapsedMax      = 4096      // messages to all that nobody answered; of others it is said that they are answered
)

// books say where in the journal everything stands that was said and done in channels, so that a
// page of a conversation is read and not searched for. They are made once, from the journal, and
// kept up with every append from the start on.
type books struct {
	mu    sync.Mutex
	of    map[string]*book
	from  uint64 // appends are noted from this Seq on; 0: there was none yet
	bytes int    // of all texts at hand
	begun bool   // somebody has begun to make them; the loop's own
	made  bool   // all that is older is in it, too

	making chan struct{} // has room for the one who makes them
}

// book is one channel's. The books' lock guards it.
type book struct {
	first   uint64   // the number of the first message in posts
	posts   []uint64 // Seq of message first, first+1, …
	notices []uint64 // Seqs that announce or warn, and say nothing else
	moves   []uint64 // Seqs by which agents only moved
	below   uint64   // entries up to this Seq may be missing: there were too many
	newest  []view.ChannelEntry
	bytes   int
	lapsed  map[uint64]bool
}

// note takes in what was just appended, from a Seq on.
func (b *books) note(changes []team.Change, seq uint64) {
	for i := range changes {
		ch := &changes[i]
		if name, ok := strings.CutPrefix(ch.Entity, ChannelPrefix); ok && ch.Body.Turn != nil {
			b.noteTurn(name, ch, seq+uint64(i))
		}
	}
}

func (b *books) noteTurn(name string, ch *team.Change, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from == 0 {
		b.from = seq
	}
	page := b.page(name)
	body := &ch.Body.Turn.Body
	page.add(seq, body, ch.From != ch.To)
	if post := body.Post; post != nil {
		b.keep(page, saidBy(seq, ch.At, body, ch.Body.Turn.Text))
	}
}

func (b *books) page(name string) *book {
	page := b.of[name]
	if page == nil {
		if b.of == nil {
			b.of = map[string]*book{}
		}
		page = &book{}
		b.of[name] = page
	}
	return page
}

// add notes where a change stands. They come in order.
func (p *book) add(seq uint64, body *channel.Body, moved bool) {
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

func (p *book) lapse(n uint64) {
	if p.lapsed == nil {
		p.lapsed = map[uint64]bool{}
	}
	if len(p.lapsed) < lapsedMax {
		p.lapsed[n] = true
	}
}

// halve drops the older half of a list that is full, and says how many those were.
func (p *book) halve(list *[]uint64) int {
	if len(*list) <= bookSeqsMax {
		return 0
	}
	half := len(*list) / 2
	p.below = max(p.below, (*list)[half-1])
	*list = slices.Clone((*list)[half:])
	return half
}

// keep has a text at hand.
func (b *books) keep(page *book, said view.ChannelEntry) {
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

func (b *books) forget(page *book, n int) {
	for _, said := range page.newest[:n] {
		page.bytes -= len(said.Text)
		b.bytes -= len(said.Text)
	}
	clear(page.newest[:n])        // the texts go at once,
	page.newest = page.newest[n:] // their places when the list next grows: it is not moved up for each
	if len(page.newest) == 0 {
		page.newest = nil
	}
}

// begin says up to where the past goes that is to be read; it runs in the loop, whose head this is.
func (b *books) begin(head uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from == 0 {
		b.from = head + 1
	}
}

// makeBooks reads the past, once.
func (e *Controller) makeBooks(ctx context.Context) error {
	b := &e.books
	select {
	case b.making <- struct{}{}:
		defer func() { <-b.making }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.isMade() {
		return nil
	}
	if err := e.View(ctx, func(*team.Team) { b.begin(e.Head()) }); err != nil {
		return err
	}
	past := map[string]*book{}
	b.mu.Lock()
	until := b.from - 1
	b.mu.Unlock()
	if until > 0 {
		if err := readPast(ctx, e.Journal(), until, past); err != nil {
			return err
		}
	}
	b.add(past)
	return nil
}

// makeBooksBeside has them made for the next question; it runs in the loop.
func (e *Controller) makeBooksBeside() {
	if e.books.begun {
		return
	}
	e.books.begun = true
	e.Go(func(ctx context.Context) {
		if err := e.makeBooks(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, loop.ErrClosed) {
			e.log.Warn("the past of the channels could not be read; it is tried again when somebody asks for it", "error", err)
		}
	})
}

func (b *books) isMade() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.made
}

// add puts the past before what was noted since.
func (b *books) add(past map[string]*book) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string]*book{}
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

// readPast notes where the past of all channels stands.
func readPast(ctx context.Context, j journal.Journal, until uint64, past map[string]*book) error {
	for rec, err := range j.Read(ctx, journal.Query{Until: until}) {
		if err != nil {
			return fmt.Errorf("read what was said in channels: %w", err)
		}
		name, ok := strings.CutPrefix(rec.Entity, ChannelPrefix)
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
			page = &book{}
			past[name] = page
		}
		page.add(rec.Seq, &data.Turn.Body, rec.From != rec.To)
	}
	return nil
}

// atHand gives the texts of messages that need not be read, and where the others stand.
func (b *books) atHand(channel string, numbers []uint64) (said []view.ChannelEntry, where []uint64) {
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

// recentMax is how many of the newest changes are looked through before all of the journal is: a
// conversation that a restart broke into goes on with what was said just before.
const RecentMax = 4096

// recent gives those of the messages that the newest changes hold.
func (e *Controller) recent(ctx context.Context, channel string, numbers []uint64) ([]view.ChannelEntry, error) {
	var head uint64
	if err := e.View(ctx, func(*team.Team) { head = e.Head() }); err != nil {
		return nil, err
	}
	var said []view.ChannelEntry
	q := journal.Query{After: head - min(head, RecentMax), Until: head, Entity: ChannelPrefix + channel}
	for rec, err := range e.Journal().Read(ctx, q) {
		if err != nil {
			return nil, fmt.Errorf("read what was said in %s: %w", channel, err)
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

// messages gives what was said under these numbers, in order. What is too old to be found at
// once is left out.
func (e *Controller) Messages(ctx context.Context, channel string, numbers []uint64) ([]view.ChannelEntry, error) {
	said, where := e.books.atHand(channel, numbers)
	if len(said)+len(where) < len(numbers) && !e.books.isMade() {
		if all, err := e.recent(ctx, channel, numbers); err != nil || len(all) == len(numbers) {
			return all, err
		}
		if err := e.makeBooks(ctx); err != nil {
			return nil, err
		}
		said, where = e.books.atHand(channel, numbers)
	}
	if len(where) == 0 {
		return said, nil
	}
	read, err := e.entriesAt(ctx, channel, where, false)
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
