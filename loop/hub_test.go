package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/memory"
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
