package indexer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	every      = 2 * time.Second // how often the journal and the spools are looked at: a search may be this late
	afterFault = time.Minute     // until it is tried again
	restLeast  = 20 * time.Millisecond
	lastMax    = 500 * time.Millisecond // at the end of a daemon
	batchBytes = 1 << 20                // of text in one transaction, so that a search never waits long
	warmRounds = 2                      // an index that was added to rests after as many rounds: texts often come in a row
	batchMax   = 2000                   // changes of the journal in one transaction
	readMax    = 1 << 20                // bytes of output that are read at a time
)

// Options are what an indexer reads.
type Options struct {
	Index   *search.Index
	Journal journal.Journal
	Drivers map[string]driver.Driver
	// the driver of an agent according to fairlead.yaml
	Driver func(agent string) string
	// up to the bytes that are on disk now; it does not follow
	Output func(ctx context.Context, session string, offset int64) (io.ReadCloser, error)
	// bytes of output; the error is fs.ErrNotExist if there is none
	Size func(session string) (int64, error)
	Log  *slog.Logger
}

// Indexer fills an index.
type Indexer struct {
	opts    Options
	drivers map[string]string // by agent, according to the journal
	tasks   map[string]string // by id: what its files looked like when they were read
	warm    int               // rounds until the index rests, if nothing more is added
	told    bool              // a failure was reported
	full    bool              // that the index is full was reported
}

// New makes an indexer.
func New(opts Options) *Indexer {
	return &Indexer{opts: opts, drivers: map[string]string{}, tasks: map[string]string{}}
}

// Run keeps the index up to date until ctx ends. Then it takes what came last, so that a search without
// a daemon finds it, unless that takes longer than lastMax.
func (x *Indexer) Run(ctx context.Context) {
	x.follow(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMax)
	defer cancel()
	for ctx.Err() == nil {
		if more, err := x.Round(ctx, false); err != nil || !more {
			return // the next start goes on
		}
	}
}

func (x *Indexer) follow(ctx context.Context) {
	for fresh := true; ctx.Err() == nil; {
		began := time.Now()
		more, err := x.Round(ctx, fresh)
		fresh = false
		rest := every
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			if !x.told {
				x.told = true
				x.opts.Log.Error("the search index cannot be kept up to date; Fairlead works without it and tries again. Delete .fairlead/search.db if the disk is full", "error", err)
			}
			fresh, rest = true, afterFault
		case more:
			rest = max(time.Since(began), restLeast) // half of one CPU at most
		default:
			x.told = false
			if x.warm > 0 {
				if x.warm--; x.warm == 0 {
					x.opts.Index.Rest()
				}
			}
		}
		if !retry.Rest(ctx, rest) {
			return
		}
	}
}

// Round adds one batch, and reports whether there is more to add now. In the first round of a start,
// fresh, it checks that the index belongs to this journal.
func (x *Indexer) Round(ctx context.Context, fresh bool) (more bool, err error) {
	damaged := x.opts.Index.Damaged()
	anew, err := x.opts.Index.Repair()
	if err != nil {
		return false, err
	}
	if damaged {
		x.opts.Log.Warn("the search index was damaged; it is built again from the journal and the output")
	}
	if anew {
		clear(x.drivers)
		clear(x.tasks)
	}
	if fresh || anew {
		if err := x.same(ctx); err != nil {
			return false, err
		}
	}
	b := &batch{x: x, sources: map[string]*search.Source{}}
	more, err = b.collect(ctx)
	if err != nil || b.empty() {
		return more, err
	}
	x.warm = warmRounds
	dropped, err := x.opts.Index.Add(ctx, b.done())
	if err != nil {
		clear(x.tasks) // their texts were not stored
		return false, err
	}
	if dropped > 0 && !x.full {
		x.full = true
		x.opts.Log.Warn(fmt.Sprintf("the search index has reached its limit of %d GiB; the oldest text is dropped from it. The journal and the output keep everything", search.BytesMax>>30))
	}
	return more, nil
}

// same begins the index anew if it was made from another journal.
func (x *Indexer) same(ctx context.Context) error {
	at, err := x.opts.Index.Position(ctx)
	if err != nil || at.Seq == 0 {
		return err
	}
	for ch, err := range x.opts.Journal.Read(ctx, journal.Query{After: at.Seq - 1, Until: at.Seq}) {
		if err != nil {
			return err
		}
		if ch.Hash.String() == at.Hash {
			return nil
		}
	}
	x.opts.Log.Warn("the search index is of another journal; it is built again")
	clear(x.drivers)
	clear(x.tasks)
	return x.opts.Index.Reset()
}

// batch is what one round adds.
type batch struct {
	x        *Indexer
	passages []search.Passage
	replace  []search.Place
	sources  map[string]*search.Source // those that changed
	position *search.Position
	bytes    int
	begun    bool // a task has begun, whose files are read in the next round
}

func (b *batch) empty() bool {
	return b.position == nil && len(b.sources) == 0 && len(b.passages) == 0 && len(b.replace) == 0
}

func (b *batch) full() bool { return b.bytes >= batchBytes }

func (b *batch) done() search.Batch {
	out := search.Batch{Passages: b.passages, Replace: b.replace, Position: b.position}
	for _, s := range b.sources {
		out.Sources = append(out.Sources, *s)
	}
	return out
}

func (b *batch) add(p search.Passage) {
	b.bytes += len(p.Text)
	b.passages = append(b.passages, p)
}

// collect reads until the batch is full.
func (b *batch) collect(ctx context.Context) (more bool, err error) {
	at, err := b.x.opts.Index.Position(ctx)
	if err != nil {
		return false, err
	}
	head, _, err := b.x.opts.Journal.Head(ctx)
	if err != nil {
		return false, err
	}
	if head > at.Seq {
		if done, err := b.changes(ctx, at.Seq, head); err != nil || !done {
			return true, err
		}
	}
	if done, err := b.running(ctx); err != nil || !done {
		return true, err
	}
	err = b.files(ctx)
	return b.full() || b.begun, err
}

// changes takes changes of the journal. done reports that the end was reached.
func (b *batch) changes(ctx context.Context, after, head uint64) (done bool, err error) {
	n := 0
	for rec, err := range b.x.opts.Journal.Read(ctx, journal.Query{After: after, Until: head}) {
		if err != nil {
			return false, err
		}
		if n++; n > batchMax {
			return false, nil
		}
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			return false, err
		}
		if done, err := b.change(ctx, rec.Seq, &ch); err != nil || !done {
			return false, err // the rest of the output first; then this change again
		}
		b.position = &search.Position{Seq: rec.Seq, Hash: rec.Hash.String(), Time: rec.Time}
		if b.full() {
			return rec.Seq == head, nil
		}
	}
	return true, nil
}

// change takes one change. done is false if the batch is full before all output that belongs to it
// was read.
func (b *batch) change(ctx context.Context, seq uint64, ch *change.Change) (done bool, err error) {
	switch body := ch.Body.(type) {
	case *team.AgentSet:
		b.x.drivers[team.AgentOf(ch.Entity)] = body.Settings.Driver
		return true, nil
	case *team.Used:
		return b.output(ctx, body.Session, ch.At, body.Offset, false)
	case *team.Session:
		over := !body.EndedAt.IsZero()
		if err := b.session(ctx, ch, body); err != nil {
			return false, err
		}
		if over {
			if done, err := b.output(ctx, body.ID, ch.At, -1, true); err != nil || !done {
				return done, err
			}
		}
	}
	p := passageOf(seq, ch)
	for text := p.Text; text != ""; {
		n := max(cut(text, search.PassageBytesMax), 1)
		p.Text, text = text[:n], text[n:]
		b.add(p)
	}
	return true, b.task(ctx, ch)
}

// source returns a source, from this batch or from the index.
func (b *batch) source(ctx context.Context, id string) (*search.Source, error) {
	if s := b.sources[id]; s != nil {
		return s, nil
	}
	s, ok, err := b.x.opts.Index.Source(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	return &s, nil
}

// session notes a session when it is opened.
func (b *batch) session(ctx context.Context, ch *change.Change, s *team.Session) error {
	known, err := b.source(ctx, s.ID)
	if err != nil || known != nil {
		return err
	}
	one := &search.Source{ID: s.ID, Time: s.OpenedAt, Open: true, Driver: sessions.PoolDriver}
	if run, _, ok := sessions.StepParts(s.ID); !ok || run == "" {
		one.Agent = team.AgentOf(ch.Entity)
		one.Driver = b.x.drivers[one.Agent]
		if one.Driver == "" {
			one.Driver = b.x.opts.Driver(one.Agent)
		}
	}
	b.sources[s.ID] = one
	return nil
}
