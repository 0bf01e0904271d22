package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// killedWithLog gives the two files of a journal whose writer was killed, and how many batches
// of one change were in them.
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
	return db, wal, batches
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
			t.Errorf("byte %d bit %#x: of %d batches that were answered %d are there, and nothing was said (%v)", at, bit, batches, seq,
				err)
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
	c := dial(path, readWrite, 1, cacheKiB)
	if _, err := c.Exec("PRAGMA user_version"); err != nil {
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
	if err := c.Close(); err != nil {
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
		if len(torn) > 0 && len(torn) < walHeaderBytes ||
			len(torn) >= walHeaderBytes && !bytes.Equal(torn[:walHeaderBytes], wal[:walHeaderBytes]) {
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
