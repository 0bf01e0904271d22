package journaltest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// watcher collects what a Watch yields.
type watcher struct {
	got  chan journal.Change
	end  chan error // one value when the Watch has ended; nil where it ended without an error
	stop context.CancelFunc
}

// watch starts one; it is stopped with the test.
func watch(t *testing.T, j journal.Journal, q journal.Query) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{got: make(chan journal.Change, 1<<12), end: make(chan error, 1), stop: cancel}
	over := make(chan struct{})
	go func() {
		defer close(over)
		var last error
		for c, err := range j.Watch(ctx, q) {
			if err != nil {
				last = err
				continue // anything after an error would be a fault; the end shows it
			}
			w.got <- c
		}
		w.end <- last
	}()
	t.Cleanup(func() { cancel(); <-over })
	return w
}

// next gives n changes, or fails the test when they do not come.
func (w *watcher) next(t *testing.T, n int, within time.Duration) []journal.Change {
	t.Helper()
	var got []journal.Change
	limit := time.After(within)
	for len(got) < n {
		select {
		case c := <-w.got:
			got = append(got, c)
		case err := <-w.end:
			w.end <- err
			if len(w.got) == 0 { // all it yielded was sent before the end
				t.Fatalf("watch ended (%v) after %d of %d changes", err, len(got), n)
			}
		case <-limit:
			t.Fatalf("%d of %d changes came within %s", len(got), n, within)
		}
	}
	return got
}

// ended waits for the end.
func (w *watcher) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.end:
		return err
	case <-time.After(patience):
		t.Fatal("watch does not end")
		return nil
	}
}

// patience is for what must happen at once: a test that waits for so long has failed.
const patience = 10 * time.Second

func wantSeqs(t *testing.T, got []journal.Change, from, to uint64) {
	t.Helper()
	var want []uint64
	for s := from; s <= to; s++ {
		want = append(want, s)
	}
	if !slices.Equal(seqsOf(got), want) {
		t.Fatalf("got %v, want %d to %d", seqsOf(got), from, to)
	}
}

func testWatch(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(5)...)
	w := watch(t, j, journal.Query{})
	wantSeqs(t, w.next(t, 5, patience), 1, 5)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 10 {
				if _, err := j.Append(t.Context(), MadeBatch(3)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wantSeqs(t, w.next(t, 120, patience), 6, 125)
	work.Wait()
	mustAppend(t, j, MadeBatch(1)...)
	wantSeqs(t, w.next(t, 1, patience), 126, 126)
}

func testWatchResumes(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(5)...)
	w := watch(t, j, journal.Query{After: 3})
	wantSeqs(t, w.next(t, 2, patience), 4, 5)
	w.stop()
	if err := w.ended(t); err != nil {
		t.Errorf("cancelled watch ended with %v", err)
	}
	mustAppend(t, j, MadeBatch(2)...)
	w = watch(t, j, journal.Query{After: 5})
	wantSeqs(t, w.next(t, 2, patience), 6, 7)
	future := watch(t, j, journal.Query{After: 8}) // change 8 does not exist yet and is not wanted
	mustAppend(t, j, MadeBatch(2)...)
	wantSeqs(t, future.next(t, 1, patience), 9, 9)
	wantSeqs(t, w.next(t, 2, patience), 8, 9)
}

func testWatchStream(t *testing.T, j journal.Journal) {
	w := watch(t, j, journal.Query{Entity: "control/one"})
	for n := range 6 {
		mustAppend(t, j, Made("control/other", n))
		mustAppend(t, j, Made("control/one", n), Made("control/other", n))
	}
	for i, c := range w.next(t, 6, patience) {
		if c.Entity != "control/one" || c.Version != uint64(i+1) {
			t.Errorf("got %s version %d, want control/one %d", c.Entity, c.Version, i+1)
		}
	}
}

func testWatchUntil(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(2)...)
	w := watch(t, j, journal.Query{Until: 4})
	wantSeqs(t, w.next(t, 2, patience), 1, 2)
	mustAppend(t, j, MadeBatch(5)...)
	wantSeqs(t, w.next(t, 2, patience), 3, 4)
	if err := w.ended(t); err != nil || len(w.got) != 0 {
		t.Errorf("ended with %v and %d changes more", err, len(w.got))
	}
}

func testWatchCancel(t *testing.T, j journal.Journal) {
	w := watch(t, j, journal.Query{})
	mustAppend(t, j, MadeBatch(1)...)
	w.next(t, 1, patience)
	w.stop()
	if err := w.ended(t); err != nil {
		t.Errorf("ended with %v, want no error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for c, err := range j.Watch(ctx, journal.Query{}) {
		t.Errorf("a watch that was cancelled before yields %d %v", c.Seq, err)
	}
	for range j.Watch(t.Context(), journal.Query{}) {
		break // leaving the loop ends it too
	}
}

func testWatchClose(t *testing.T, j journal.Journal) {
	w := watch(t, j, journal.Query{})
	mustAppend(t, j, MadeBatch(1)...)
	w.next(t, 1, patience)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.ended(t); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("ended with %v, want ErrClosed", err)
	}
}

func testWatchMany(t *testing.T, j journal.Journal) {
	const watchers, changes = 16, 30
	var ws []*watcher
	for range watchers {
		ws = append(ws, watch(t, j, journal.Query{}))
	}
	for n := range changes {
		mustAppend(t, j, Made("control/a", n))
	}
	for _, w := range ws {
		wantSeqs(t, w.next(t, changes, patience), 1, changes)
	}
}
