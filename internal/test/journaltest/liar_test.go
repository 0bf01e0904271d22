package journaltest_test

import (
	"context"
	"iter"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// liar yields change 7 other than it is.
type liar struct {
	journal.Journal
	lie func(*journal.Change)
}

func (l liar) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		for c, err := range l.Journal.Read(ctx, q) {
			if c.Seq == 7 {
				l.lie(&c)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}
