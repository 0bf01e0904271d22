package loop

import (
	"context"
	"log/slog"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// counting is a journal that counts appends.
type counting struct {
	journal.Journal
	appends int
}

func (c *counting) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	c.appends++
	return c.Journal.Append(ctx, batch, expect...)
}

// A full batch is one append. A request that looks, in the batch of a change, sees what the controllers have noted of that
// change, too: for example, that a file has to be written.
func TestLookSeesWhatFollowsFromAChange(t *testing.T) {
	to := &counting{Journal: memory.New()}
	l := New(t.Context(), Options{Journal: to, Log: slog.New(slog.DiscardHandler)})
	if err := l.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	noted, saw := 0, false
	l.Register(Hooks{Spread: func(*Touched) { noted++ }})
	batch := []Request{{Look: func(all *team.Team) { saw = noted == 1 && !all.Hold.On && l.Head() == BatchMax-2 }}}
	for len(batch) < BatchMax-1 {
		human := change.Actor{Kind: "human", ID: "x"}
		batch = append(batch, Request{Event: EventBy(human, "", team.HoldAsked{})}, Request{Event: EventBy(human, "", team.ReleaseAsked{})})
	}
	if err := l.Step(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if !saw || to.appends != 1 {
		t.Errorf("%d appends; after all changes: %v", to.appends, saw)
	}
}
