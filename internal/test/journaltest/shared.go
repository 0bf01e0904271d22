package journaltest

import (
	"errors"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// testReopened closes and opens: everything is there, the chain goes on as one.
func (s *suite) testReopened(t *testing.T) {
	open := s.place(t)
	var before []journal.Change
	for round := range 3 {
		j := open()
		got := collect(t, j.Read(t.Context(), journal.Query{}))
		if len(got) != len(before) {
			t.Fatalf("round %d: %d changes, want %d", round, len(got), len(before))
		}
		for i := range got {
			if err := same(got[i], before[i]); err != nil || got[i].Hash != before[i].Hash || got[i].Version != before[i].Version {
				t.Fatalf("round %d: change %d is not what it was (%v)", round, got[i].Seq, err)
			}
		}
		if _, err := j.Append(t.Context(), MadeBatch(1),
			journal.Expect{Entity: "control/agent-0", Version: uint64(3 * round)}); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, j, MadeBatch(9)...) // agent-0 twice
		before = collect(t, j.Read(t.Context(), journal.Query{}))
		last := before[len(before)-1]
		if err := j.SaveSnapshot(t.Context(),
			journal.Snapshot{Seq: last.Seq, Hash: last.Hash, Format: "f", Data: []byte("state")}); err != nil {
			t.Fatal(err)
		}
		mustVerify(t, j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	j := open()
	if snap, ok, err := j.Latest(t.Context()); !ok || err != nil || snap.Seq != 30 {
		t.Errorf("snapshot %d %v %v, want 30", snap.Seq, ok, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// testTwoHandles has two handles raise the same streams, as two processes would.
func (s *suite) testTwoHandles(t *testing.T) {
	open := s.place(t)
	handles := []journal.Journal{open(), open()}
	defer func() {
		if err := errors.Join(handles[0].Close(), handles[1].Close()); err != nil {
			t.Error(err)
		}
	}()
	contend(t, "control/shared", 4, 15, func(i int) journal.Journal { return handles[i%2] })
	var work sync.WaitGroup
	for _, j := range handles { // without expectations, and with entities and words the other has not seen
		work.Go(func() {
			for n := range 30 {
				if _, err := j.Append(t.Context(), []journal.Change{Made("control/free", n), Made("control/shared", n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for _, j := range handles {
		mustVerify(t, j)
		if seq, _, err := j.Head(t.Context()); seq != 240 || err != nil {
			t.Errorf("head is %d %v, want 240", seq, err)
		}
	}
}

func (s *suite) testWatchAcross(t *testing.T) {
	open := s.place(t)
	writes, watches := open(), open()
	w := watch(t, watches, journal.Query{})
	for n := range 20 {
		want := mustAppend(t, writes, Made("control/a", n))
		wantSeqs(t, w.next(t, 1, s.within), want, want)
	}
	mustAppend(t, watches, MadeBatch(2)...) // its own, in between
	mustAppend(t, writes, MadeBatch(2)...)
	wantSeqs(t, w.next(t, 4, s.within), 21, 24)
	if err := writes.Close(); err != nil {
		t.Error(err)
	}
	mustAppend(t, watches, MadeBatch(1)...)
	wantSeqs(t, w.next(t, 1, s.within), 25, 25)
	w.stop()
	if err := w.ended(t); err != nil {
		t.Error(err)
	}
	if err := watches.Close(); err != nil {
		t.Error(err)
	}
}

func (s *suite) testSnapshotsAcross(t *testing.T) {
	open := s.place(t)
	a, b := open(), open()
	defer func() {
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	}()
	mustAppend(t, a, MadeBatch(3)...)
	seq, hash, err := b.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Hash: hash, Format: "f", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if snap, ok, err := a.Latest(t.Context()); !ok || err != nil || snap.Seq != 3 {
		t.Errorf("the other handle has %d %v %v", snap.Seq, ok, err)
	}
}
