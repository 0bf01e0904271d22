package loop

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
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
	l.Register(Hooks{OnBatch: func([]change.Change, uint64, *Touched) { noted++ }})
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

// Every controller takes in a batch, whole and with its place in the journal, before a watcher sees the batch and before a
// controller acts on it. A batch of more than one append is one batch here, too.
func TestOnBatchIsBeforeWatchersAndActions(t *testing.T) {
	to := &counting{Journal: memory.New()}
	l := New(t.Context(), Options{Journal: to, Log: slog.New(slog.DiscardHandler)})
	if err := l.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	var did []string
	for range 2 {
		l.Register(Hooks{
			OnBatch: func(changes []change.Change, first uint64, _ *Touched) {
				part, err := l.Since(t.Context(), 0, "")
				did = append(did, fmt.Sprintf("batch of %d from %d, watchers have %d, %v", len(changes), first, len(part.Changes), err))
			},
			Act: func(*Touched) { did = append(did, "act") },
		})
	}
	human := change.Actor{Kind: "human", ID: "x"}
	events := make([]team.Event, 0, journal.BatchChangesMax+2)
	for len(events) < journal.BatchChangesMax {
		events = append(events, *EventBy(human, "", team.HoldAsked{}), *EventBy(human, "", team.ReleaseAsked{}))
	}
	two := Request{Derive: Report(events[:2]...)}
	for _, batch := range [][]Request{{two}, {{Derive: Report(events...)}, two}, {{}}} {
		if err := l.Step(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"batch of 2 from 1, watchers have 0, <nil>", "batch of 2 from 1, watchers have 0, <nil>", "act", "act",
		"batch of 1002 from 3, watchers have 2, <nil>", "batch of 1002 from 3, watchers have 2, <nil>", "act", "act",
		"act", "act",
	}
	if !slices.Equal(did, want) || to.appends != 3 {
		t.Errorf("%d appends, and %q", to.appends, did)
	}
}
