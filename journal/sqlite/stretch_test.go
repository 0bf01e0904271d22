package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
)

// scattered is a journal of some stretches: many changes of eight agents, and a few of agents that come rarely. It returns
// where the rare ones are. One batch of so many has one.
func scattered(tb testing.TB, path string, changes, every int) (rare []journal.Change) {
	tb.Helper()
	j, err := Open(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	defer j.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	for done := 0; done < changes; {
		batch := journaltest.MadeBatch(1 + rnd.IntN(journal.BatchChangesMax))
		at := -1
		if rnd.IntN(every) == 0 {
			at = rnd.IntN(len(batch))
			batch[at] = journaltest.Made(fmt.Sprintf("control/rare-%d", rnd.IntN(3)), done)
		}
		last, err := j.Append(tb.Context(), batch)
		if err != nil {
			tb.Fatal(err)
		}
		if done = int(last); at >= 0 {
			batch[at].Seq = last - uint64(len(batch)-1-at)
			rare = append(rare, batch[at])
		}
	}
	return rare
}

// Reading one entity gives its changes and no others, whatever part of the journal is asked for, and whether the lists
// of the stretches are there, damaged or missing.
func TestReadOneEntity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	const changes = 60_000
	rare := scattered(t, path, changes, 40)
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, damage := range []string{"", "UPDATE stretch SET data = x'01' WHERE first > 20000 AND first < 40000", "DELETE FROM stretch WHERE first < 20000", "DELETE FROM stretch"} {
		if damage != "" {
			alter(t, path, damage)
		}
		j := opened(t, path)
		for range 40 {
			q := journal.Query{After: uint64(rnd.IntN(changes)), Entity: fmt.Sprintf("control/rare-%d", rnd.IntN(3))}
			q.Until = q.After + 1 + uint64(rnd.IntN(changes))
			var want, got []uint64
			for i := range rare {
				if c := &rare[i]; c.Entity == q.Entity && c.Seq > q.After && c.Seq <= q.Until {
					want = append(want, c.Seq)
				}
			}
			for c, err := range j.Read(t.Context(), q) {
				if err != nil {
					t.Fatalf("after %q, %+v: %v", damage, q, err)
				}
				got = append(got, c.Seq)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("after %q, %+v: %v, want %v", damage, q, got, want)
			}
		}
	}
}

// What is not about the entity is not even looked at.
func TestOtherStretchesAreNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	for n := range 30 {
		batch := journaltest.MadeBatch(journal.BatchChangesMax)
		if n == 0 || n == 29 {
			batch[0] = journaltest.Made("control/rare", n)
		}
		if _, err := j.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (n int, err error) {
		for _, err := range j.Read(t.Context(), journal.Query{Entity: "control/rare"}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	middle := 15 * journal.BatchChangesMax
	alter(t, path, fmt.Sprintf("UPDATE batch SET data = x'00' WHERE first <= %d AND last >= %[1]d", middle))
	if n, err := read(); n != 2 || err != nil {
		t.Errorf("%d changes, %v", n, err)
	}
	alter(t, path, "DELETE FROM stretch")
	if n, err := read(); n != 1 || err == nil {
		t.Errorf("without the lists the damage is not noticed: %d changes", n)
	}
}

// A writer that finds nothing new since another writer's list adds none: it would take the place of the next one.
func TestStretchesOfTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	a, b := opened(t, path), opened(t, path)
	fill := func(j *Journal) {
		t.Helper()
		for range endsEvery/journal.BatchChangesMax + 2 {
			if _, err := j.Append(t.Context(), journaltest.MadeBatch(journal.BatchChangesMax)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := b.Append(t.Context(), journaltest.MadeBatch(1)); err != nil { // it remembers the end from now on
		t.Fatal(err)
	}
	fill(a) // its last batch stores a list
	var conflict *journal.Conflict
	if _, err := b.Append(t.Context(), journaltest.MadeBatch(1), journal.Expect{Entity: "control/agent-0", Version: 99_999}); !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
	fill(a)
	fill(b)
}
