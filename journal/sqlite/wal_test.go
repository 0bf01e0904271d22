package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
)

// killedWithLog gives the two files of a journal whose writer was killed, and how many batches
// of one change were in them. The log is without the zeros at its end.
func killedWithLog(t *testing.T) (db, wal []byte, batches int) {
	t.Helper()
	batches = 40
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	for range batches {
		if _, err := j.Append(t.Context(), journaltest.MadeBatch(1)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if db, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if wal, err = os.ReadFile(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	return db, bytes.TrimRight(wal, "\x00"), batches
}

// TestLogGrowsAhead: an append rarely makes the log longer, because a sync takes longer then. Another process that
// appends meanwhile, and one that opens the log after a crash, find every change.
func TestLogGrowsAhead(t *testing.T) {
	const appends = 200
	path := filepath.Join(t.TempDir(), "journal.db")
	writers := []*Journal{opened(t, path), opened(t, path)} // each as in a process of its own: with a connection and a view of the log of its own
	grew, before := 0, int64(0)
	for n := range appends {
		if _, err := writers[n/7%2].Append(t.Context(), journaltest.MadeBatch(1+n%3)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > before {
			grew++
		}
		before = info.Size()
	}
	if grew > appends/5 {
		t.Errorf("%d of %d appends made the log longer", grew, appends)
	}
	want, _, err := writers[0].Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "journal.db")
	copyFile(t, path, killed)
	copyFile(t, path+"-wal", killed+"-wal")
	j := opened(t, killed)
	if has, _, err := j.Head(t.Context()); err != nil || has != want {
		t.Errorf("the copy has %d changes of %d, %v", has, want, err)
	}
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
}

// TestFlippedBitsInTheLog: SQLite would end its log at the flipped bit, and drop without a
// word what was answered behind it. Only the very last batch cannot be told from one that was
// being written when the machine went down.
func TestFlippedBitsInTheLog(t *testing.T) {
	db, wal, batches := killedWithLog(t)
	rnd := rand.New(rand.NewPCG(3, 0))
	flips, refused := 150, 0
	if testsize.Race {
		flips = 45
	}
	for range flips {
		at, bit := rnd.IntN(len(wal)), byte(1)<<rnd.IntN(8)
		hurt := bytes.Clone(wal)
		hurt[at] ^= bit
		path := filepath.Join(t.TempDir(), "journal.db")
		write(t, path, string(db))
		write(t, path+"-wal", string(hurt))
		before := listing(t, filepath.Dir(path))
		j, err := Open(t.Context(), path)
		if err != nil {
			refused++
			var unusable *Unusable
			if !errors.As(err, &unusable) || unusable.Do == "" {
				t.Fatalf("byte %d bit %#x: the error does not say what to do: %v", at, bit, err)
			}
			if after := listing(t, filepath.Dir(path)); after != before {
				t.Fatalf("byte %d bit %#x: it was refused, and files were\n%sand are\n%s", at, bit, before, after)
			}
			if healthy(Check(t.Context(), path)) {
				t.Errorf("byte %d bit %#x: Check finds nothing", at, bit)
			}
			continue
		}
		seq, _, err := j.Head(t.Context())
		if err != nil || seq < uint64(batches-1) {
			t.Errorf("byte %d bit %#x: of %d batches that were answered %d are there, and nothing was said (%v)", at, bit, batches, seq, err)
		}
		if err := errors.Join(journal.Verify(t.Context(), j), j.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of %d were refused", refused, flips)
	if refused < flips*2/3 {
		t.Errorf("only %d of %d were refused", refused, flips)
	}
}

// TestDamagedFileIsLeftAsItIs: a flipped bit in the file itself, with a log that was not put
// into it yet. However it is found, nothing of it is changed.
func TestDamagedFileIsLeftAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	copyFile(t, written(t, 1000), path)
	c, err := dial(path, readWrite)
	if err != nil {
		t.Fatal(err)
	}
	hold := leaveAsIs(path) // the log stays beside the file
	j := opened(t, path)
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(3)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(path + "-wal")
	if err != nil || len(wal) == 0 {
		t.Fatal("there is no log", err)
	}
	hold()
	if err := c.close(); err != nil {
		t.Error(err)
	}
	rnd := rand.New(rand.NewPCG(5, 0))
	found := 0
	for range 40 {
		at, bit := rnd.IntN(len(good)), byte(1)<<rnd.IntN(8)
		hurt := bytes.Clone(good)
		hurt[at] ^= bit
		victim := filepath.Join(t.TempDir(), "journal.db")
		write(t, victim, string(hurt))
		write(t, victim+"-wal", string(wal))
		before := listing(t, filepath.Dir(victim))
		if _, err := all(t.Context(), victim, journal.Query{}); err == nil {
			continue
		}
		found++
		if after := listing(t, filepath.Dir(victim)); after != before {
			t.Errorf("byte %d bit %#x: it was found damaged, and files were\n%sand are\n%s", at, bit, before, after)
		}
	}
	if found < 10 {
		t.Errorf("only %d of 40 were found", found)
	}
}

// TestTornLog cuts the log anywhere, and lets its end be any bytes: what a crash leaves is no
// damage, and what was whole by then is there.
func TestTornLog(t *testing.T) {
	db, wal, _ := killedWithLog(t)
	rnd := rand.New(rand.NewPCG(4, 0))
	for range 60 {
		cut := rnd.IntN(len(wal) + 1)
		torn := bytes.Clone(wal[:cut])
		if rnd.IntN(2) == 0 { // the last sectors came to be nothing
			clear(torn[max(0, len(torn)-rnd.IntN(4096)):])
		}
		path := filepath.Join(t.TempDir(), "journal.db")
		write(t, path, string(db))
		write(t, path+"-wal", string(torn))
		if len(torn) > 0 && len(torn) < walHeaderBytes || len(torn) >= walHeaderBytes && !bytes.Equal(torn[:walHeaderBytes], wal[:walHeaderBytes]) {
			continue // its first bytes are of one sector, which is written whole
		}
		if _, err := damageOf(path + "-wal"); err != nil {
			t.Error(err)
		}
		if what, _ := damageOf(path + "-wal"); what != "" {
			t.Errorf("cut at %d: %s", cut, what)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte("7\x7f\x06\x82"), []byte{})
	f.Add(make([]byte, 100), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, head, rest []byte) {
		l := walReader{from: bytes.NewReader(append(head, rest...))}
		if _, err := l.damage(); err != nil {
			t.Fatal(err)
		}
	})
}
