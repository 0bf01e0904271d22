package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/memory"
	"github.com/fairlead-dev/fairlead/team"
)

// tower is a loop with only a journal and a hub.
func tower() *Loop { return &Loop{hub: newHub(), opts: Options{Journal: memory.New()}} }

func (l *Loop) append(t *testing.T, entity string, n int) {
	batch := make([]journal.Change, n)
	for i := range batch {
		batch[i] = journal.Change{Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Machine: "control", Entity: entity, Row: "C2", From: "a", To: "b", Trigger: "c", Actor: journal.Actor{Kind: "human", ID: "x"}}
	}
	last, err := l.opts.Journal.Append(context.Background(), batch)
	if err != nil {
		t.Error(err)
	}
	for i := range batch {
		batch[i].Seq = last - uint64(n) + 1 + uint64(i)
	}
	l.hub.publish(batch)
}

// No gap and no double, whenever one begins to watch, however one lags, and from wherever
// one resumes.
func TestChangesWithoutGapOrDouble(t *testing.T) {
	e := tower()
	const total, watchers = 6000, 6
	var watching sync.WaitGroup
	lags := make([]int, watchers)
	for w := range watchers {
		watching.Go(func() {
			next := uint64(1)
			for next <= total {
				for ch, err := range e.Changes(t.Context(), next-1, "") {
					if errors.Is(err, ErrLagged) {
						lags[w]++
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					if ch.Seq != next {
						t.Errorf("watcher %d got %d, not %d", w, ch.Seq, next)
						return
					}
					if next++; next > total {
						break
					}
					if w == 0 && next%2500 == 0 { // it goes away, and comes again
						break
					}
				}
			}
		})
	}
	for made := 0; made < total; {
		n := min(1+made%97, total-made)
		e.append(t, fmt.Sprintf("control/a%d", made%3), n)
		made += n
	}
	watching.Wait()
	if n := e.hub.count(); n != 0 {
		t.Errorf("%d watchers are still known", n)
	}
	t.Logf("lags: %v", lags)
}

// A watcher that takes nothing is let go of at its limit, keeps nothing, and can resume; one
// entity alone is what it was asked for; and the end says what it is.
func TestLagging(t *testing.T) {
	e := tower()
	lame := e.hub.subscribe()
	for range subscriberLagMax {
		e.append(t, "control/coder", 1)
	}
	if batch, err := e.hub.take(lame); len(batch) != subscriberLagMax || err != nil {
		t.Errorf("%d, %v", len(batch), err)
	}
	for range subscriberLagMax + 1 {
		e.append(t, "control/pm", 1)
	}
	if batch, err := e.hub.take(lame); len(batch) != 0 || !errors.Is(err, ErrLagged) || e.hub.count() != 0 {
		t.Errorf("%d kept, %v, %d known", len(batch), err, e.hub.count())
	}
	n := 0
	for ch, err := range e.Changes(t.Context(), 0, "control/pm") {
		if err != nil || ch.Entity != "control/pm" {
			t.Fatal(ch, err)
		}
		if n++; n == subscriberLagMax+1 {
			e.append(t, "control/coder", 1)
			e.append(t, "control/pm", 1)
		}
		if n == subscriberLagMax+2 {
			break
		}
	}
	e.hub.close(fmt.Errorf("%w: for a reason", ErrClosed))
	for _, err := range e.Changes(t.Context(), 1<<30, "") {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		n = 0
	}
	if n != 0 {
		t.Error("the end was not told")
	}
}

// TestWatchersKeepWhatTheyWereGiven lets a watcher read late: what it was given is not overwritten by later batches. Without
// a watcher the loop uses the memory again.
func TestWatchersKeepWhatTheyWereGiven(t *testing.T) {
	l := New(t.Context(), Options{Journal: memory.New(), Log: slog.New(slog.DiscardHandler)})
	if err := l.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	step := func(round int) {
		var batch []Request
		for n := range 3 {
			note := fmt.Sprintf("hold %d of round %d", n, round)
			batch = append(batch,
				Request{Event: EventBy(team.Actor{Kind: "human", ID: "x"}, "", team.HoldAsked{Note: note}), answer: make(chan Answer, 1)},
				Request{Event: EventBy(team.Actor{Kind: "human", ID: "x"}, "", team.ReleaseAsked{Note: note}), answer: make(chan Answer, 1)})
		}
		if err := l.Step(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	sub := l.hub.subscribe()
	for round := range 4 {
		step(round)
	}
	given, over := l.hub.take(sub)
	l.hub.unsubscribe(sub)
	if over != nil || len(given) != 24 {
		t.Fatalf("%d changes, %v", len(given), over)
	}
	n := 0
	for ch, err := range l.Journal().Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := given[n]; got.Seq != ch.Seq || string(got.Data) != string(ch.Data) {
			t.Errorf("the watcher has %d %s, and the journal %d %s", got.Seq, got.Data, ch.Seq, ch.Data)
		}
		n++
	}
	step(4)
	was := l.records[:1]
	step(5)
	if &was[0] != &l.records[:1][0] {
		t.Error("without a watcher the memory is not used again")
	}
}
