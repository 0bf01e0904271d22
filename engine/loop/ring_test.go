package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// tower is a loop with only a journal and a ring.
func tower() *Loop { return &Loop{ring: newRing(), opts: Options{Journal: memory.New()}} }

func (l *Loop) append(t *testing.T, entity string, n int) {
	l.appendData(t, entity, n, "")
}

func (l *Loop) appendData(t *testing.T, entity string, n int, data string) {
	batch := make([]journal.Change, n)
	for i := range batch {
		batch[i] = journal.Change{
			Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Machine: "control", Entity: entity, Row: "C2", From: "a", To: "b",
			Trigger: "c",
			Actor:   change.Actor{Kind: "human", ID: "x"}, Data: []byte(data),
		}
	}
	last, err := l.opts.Journal.Append(context.Background(), batch)
	if err != nil {
		t.Error(err)
	}
	for i := range batch {
		batch[i].Seq = last - uint64(n) + 1 + uint64(i)
	}
	l.ring.publish(batch)
}

// All watchers of a live change share its text, also those of one entity. What is read from the journal is made for one.
func TestOneTextForAllWatchers(t *testing.T) {
	l := tower()
	l.append(t, "control/a", 1)
	l.append(t, "control/b", 2)
	var made atomic.Int32
	encode := func(ch *journal.Change) []byte { made.Add(1); return fmt.Append(nil, ch.Seq) }
	var watching sync.WaitGroup
	for w := range 8 {
		watching.Go(func() {
			part, err := l.Since(t.Context(), 0, []string{"", "control/b"}[w%2])
			if err != nil || len(part.Changes) != 3-w%2 {
				t.Errorf("%d changes, %v", len(part.Changes), err)
			}
			for i := range part.Changes {
				if got := string(part.Changes[i].Text(encode)); got != fmt.Sprint(part.Changes[i].Seq) {
					t.Errorf("change %d is sent as %s", part.Changes[i].Seq, got)
				}
			}
		})
	}
	watching.Wait()
	if n := made.Load(); n != 3 {
		t.Errorf("3 changes were encoded %d times", n)
	}
	part, err := l.older(t.Context(), 0, 3, "")
	if err != nil || len(part.Changes) != 3 || string(part.Changes[2].Text(encode)) != "3" {
		t.Errorf("from the journal: %+v, %v", part, err)
	}
}

// A watcher gets each change once and in order, whenever it begins, however far it is behind, and wherever it resumes.
func TestChangesWithoutGapOrDouble(t *testing.T) {
	l := tower()
	const total, watchers = 6 * ringMax, 6
	var watching sync.WaitGroup
	for w := range watchers {
		watching.Go(func() {
			next := uint64(1)
			for next <= total {
				for ch, err := range l.Changes(t.Context(), next-1, "") {
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
		l.append(t, fmt.Sprintf("control/a%d", made%3), n)
		made += n
	}
	watching.Wait()
}

// A watcher that is behind what is kept in memory reads the rest from the journal, in parts, and what came meanwhile; one
// that asks for one entity gets only that; the end of the loop is told after the last change.
func TestBehindTheRing(t *testing.T) {
	l := tower()
	const newer = ringMax + 2*partMost
	for n := range newer {
		l.append(t, []string{"control/coder", "control/pm"}[n%2], 1)
	}
	place, parts := uint64(0), 0
	for place < newer {
		part, err := l.Since(t.Context(), place, "")
		if err != nil || part.Upto <= place || part.Changes[0].Seq != place+1 || part.Changes[len(part.Changes)-1].Seq != part.Upto {
			t.Fatalf("after %d: up to %d, %d changes, %v", place, part.Upto, len(part.Changes), err)
		}
		if parts++; parts == 1 {
			l.append(t, "control/coder", 1)
		}
		place = part.Upto
	}
	if place != newer+1 || parts != 4 {
		t.Errorf("%d parts up to %d, want 3 of the journal and one of the ring", parts, place)
	}
	n := 0
	for ch, err := range l.Changes(t.Context(), 0, "control/pm") {
		if err != nil || ch.Entity != "control/pm" {
			t.Fatal(ch, err)
		}
		if n++; n == newer/2 {
			l.append(t, "control/coder", 1)
			l.append(t, "control/pm", 1)
			l.ring.close(fmt.Errorf("%w: for a reason", ErrClosed))
		}
		if n == newer/2+1 {
			break
		}
	}
	var last error
	for _, err := range l.Changes(t.Context(), newer, "control/pm") {
		last = err
	}
	if !errors.Is(last, ErrClosed) || n != newer/2+1 {
		t.Errorf("%d changes of one agent, and the end is %v", n, last)
	}
	for _, err := range l.Changes(t.Context(), 1<<30, "") { // the journal ends before
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// The memory of all watchers together has a limit in changes and in bytes, also without any watcher.
func TestRingKeepsTheNewest(t *testing.T) {
	l := tower()
	for range 3 {
		l.append(t, "control/coder", 1000)
	}
	if n := len(l.ring.changes); n != ringMax || l.ring.base != 3000-ringMax {
		t.Errorf("%d changes are kept after %d", n, l.ring.base)
	}
	for range 2 * ringBytesMax >> 20 {
		l.appendData(t, "control/coder", 1, `{"big":"`+strings.Repeat("x", 1<<20-100)+`"}`)
	}
	if n := len(l.ring.changes); l.ring.bytes > ringBytesMax || n > ringBytesMax>>20+1 || n < ringBytesMax>>20 {
		t.Errorf("%d changes of 1 MiB are kept, %d bytes", n, l.ring.bytes)
	}
	whole := 0
	for part := (Part{}); whole < 3000+2*ringBytesMax>>20; whole += len(part.Changes) {
		var err error
		if part, err = l.Since(t.Context(), part.Upto, ""); err != nil || len(part.Changes) == 0 {
			t.Fatal(whole, err)
		}
		bytes := 0
		for _, ch := range part.Changes[1:] {
			bytes += len(ch.Data)
		}
		if bytes > max(partMostSize, ringBytesMax) {
			t.Errorf("%d bytes in one part", bytes)
		}
	}
}

// What a watcher was given is not overwritten by later batches.
func TestWatchersKeepWhatTheyWereGiven(t *testing.T) {
	l := New(t.Context(), Options{Journal: memory.New(), Log: slog.New(slog.DiscardHandler)})
	if err := l.Replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	given := map[uint64]journal.Change{}
	place := uint64(0)
	for round := range 4 {
		var batch []Request
		for n := range 3 {
			note := fmt.Sprintf("hold %d of round %d", n, round)
			batch = append(batch,
				Request{Event: EventBy(change.Actor{Kind: "human", ID: "x"}, "", team.HoldAsked{Note: note}), answer: make(chan Answer, 1)},
				Request{
					Event:  EventBy(change.Actor{Kind: "human", ID: "x"}, "", team.ReleaseAsked{Note: note}),
					answer: make(chan Answer, 1),
				})
		}
		if err := l.Step(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		part, err := l.Since(t.Context(), place, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range part.Changes {
			given[ch.Seq] = ch.Change
		}
		place = part.Upto
	}
	if len(given) != 24 {
		t.Fatalf("%d changes", len(given))
	}
	for ch, err := range l.Journal().Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := given[ch.Seq]; string(got.Data) != string(ch.Data) {
			t.Errorf("the watcher has %d %s, and the journal %d %s", got.Seq, got.Data, ch.Seq, ch.Data)
		}
	}
}
