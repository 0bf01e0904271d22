package status

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
)

// digestChanges is how many changes a digest reads at most: a busy day of eight agents has a tenth of them, and they
// are read in less than a second.
const digestChanges = 100_000

// digests is the digest that was asked for last. A page asks for the same one again and again, and then only the changes
// since the last time are read.
type digests struct {
	sync.Mutex
	since time.Time
	last  uint64 // the last change in it
	cut   bool
	of    view.DigestOf
}

// Digest says what happened since a time: from the runs as they are, and from the changes of the journal since then.
func (c *Controller) Digest(ctx context.Context, since time.Time) (view.Digest, error) {
	c.digests.Lock()
	defer c.digests.Unlock()
	now := c.loop.Now()
	if err := c.digests.readOn(ctx, c.loop.Journal(), since); err != nil {
		return view.Digest{}, fmt.Errorf("read what happened since %s from the journal: %w", since.Format(time.RFC3339), err)
	}
	all, err := c.runs.Runs(ctx)
	if err != nil {
		return view.Digest{}, err
	}
	d := c.digests.of.Digest(all, since, now)
	d.Cut = c.digests.cut
	return d, nil
}

// readOn reads the changes since a time up to the newest.
func (g *digests) readOn(ctx context.Context, j journal.Journal, since time.Time) error {
	head, _, err := j.Head(ctx)
	if err != nil {
		return err
	}
	if !g.since.Equal(since) || g.last == 0 || g.last > head {
		after, err := journal.LastAt(ctx, j, since)
		if err != nil {
			return err
		}
		g.of, g.last, g.cut, g.since = view.DigestOf{}, after, false, since
		if head > after+digestChanges {
			g.last, g.cut = head-digestChanges, true
		}
	}
	for rec, err := range j.Read(ctx, journal.Query{After: g.last, Until: head}) {
		if err != nil {
			return err
		}
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			return err
		}
		g.of.Add(ch, rec.Seq)
		g.last = rec.Seq
	}
	return nil
}
