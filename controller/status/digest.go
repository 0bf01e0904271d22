package status

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/view"
)

// digestChanges is how many changes a digest reads at most: a busy day of eight agents has a tenth of them, and they
// are read in less than a second.
const digestChanges = 100_000

// Digest says what happened since a time, nothing since the zero time: from the runs as they are, and from the changes of the journal since then.
func (c *Controller) Digest(ctx context.Context, since time.Time) (view.Digest, error) {
	now := c.Now()
	if since.IsZero() {
		return (&view.DigestOf{}).Digest(since, now), nil
	}
	j := c.Journal()
	after, err := journal.LastAt(ctx, j, since)
	if err != nil {
		return view.Digest{}, fmt.Errorf("find the changes since %s in the journal: %w", since.Format(time.RFC3339), err)
	}
	head, _, err := j.Head(ctx)
	if err != nil {
		return view.Digest{}, err
	}
	cut := head > after+digestChanges
	if cut {
		after = head - digestChanges
	}
	var g view.DigestOf
	for rec, err := range j.Read(ctx, journal.Query{After: after, Until: head}) {
		if err != nil {
			return view.Digest{}, fmt.Errorf("read what happened since %s from the journal: %w", since.Format(time.RFC3339), err)
		}
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			return view.Digest{}, err
		}
		g.Add(ch, rec.Seq)
	}
	all, err := c.runs.Runs(ctx)
	if err != nil {
		return view.Digest{}, err
	}
	g.Runs(all, since, now)
	d := g.Digest(since, now)
	d.Cut = cut
	return d, nil
}
