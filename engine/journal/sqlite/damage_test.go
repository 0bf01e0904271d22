package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// written gives the path of a journal with some history, closed.
func written(t testing.TB, changes int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	for range changes / 50 {
		if _, err := j.Append(t.Context(), journaltest.MadeBatch(50)); err != nil {
			t.Fatal(err)
		}
	}
	seq, hash, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Hash: hash, Format: "f", Data: []byte("state")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func all(ctx context.Context, path string, q journal.Query) (got []journal.Change, err error) {
	j, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for c, err := range j.Read(ctx, q) {
		if err != nil {
			return got, err
		}
		got = append(got, c)
	}
	return got, nil
}

// TestFlippedBits flips one bit at a time, anywhere in the file. What is read afterwards is
// what was appended, or there is an error; a wrong fact is never read.
func TestFlippedBits(t *testing.T) {
	path := written(t, 500)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := all(t.Context(), path, journal.Query{})
	if err != nil || len(want) != 500 {
		t.Fatal(len(want), err)
	}
	streams := map[string]int{}
	for _, c := range want {
		streams[c.Entity]++
	}
	rnd := rand.New(rand.NewPCG(1, 0))
	flips := 60 // a few seconds; more find nothing that these do not
	if testsize.Race {
		flips = 20
	}
	noticed, missed := 0, 0
	for range flips {
		at, bit := rnd.IntN(len(good)), byte(1)<<rnd.IntN(8)
		hurt := bytes.Clone(good)
		hurt[at] ^= bit
		victim := filepath.Join(t.TempDir(), "journal.db")
		if err := os.WriteFile(victim, hurt, 0o600); err != nil {
			t.Fatal(err)
		}
		healthy := healthy(Check(t.Context(), victim))
		got, err := all(t.Context(), victim, journal.Query{})
		for i := range got {
			if got[i].Hash != want[i].Hash || !bytes.Equal(got[i].Data, want[i].Data) || got[i].Entity != want[i].Entity {
				t.Fatalf("byte %d bit %#x: change %d is wrong and no error was given", at, bit, got[i].Seq)
			}
		}
		one := journal.Query{Entity: fmt.Sprintf("control/agent-%d", at%8)}
		if stream, err := all(t.Context(), victim, one); err == nil && len(stream) != streams[one.Entity] {
			t.Errorf("byte %d bit %#x: %s has %d changes, want %d, and no error", at, bit, one.Entity, len(stream), streams[one.Entity])
		}
		switch {
		case err != nil:
			noticed++
			if s := err.Error(); !strings.Contains(s, "copy") && !strings.Contains(s, "path") && !strings.Contains(s, "format") {
				t.Errorf("byte %d bit %#x: the error does not say what to do: %s", at, bit, s)
			}
			if healthy {
				t.Errorf("byte %d bit %#x: Check finds nothing, reading says: %v", at, bit, err)
			}
		case len(got) != len(want):
			t.Fatalf("byte %d bit %#x: %d changes and no error", at, bit, len(got))
		case !healthy:
			noticed++
		default:
			missed++ // in free space, or a field that means nothing
		}
	}
	t.Logf("%d of %d flips were noticed; the others changed nothing that is read", noticed, flips)
	if noticed < flips/2 {
		t.Errorf("only %d of %d flips were noticed", noticed, flips)
	}
}

func healthy(found []Finding) bool {
	for _, f := range found {
		if !f.OK {
			return false
		}
	}
	return len(found) > 0
}

func run(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { alter(t, path, text) }
}

// TestAltered changes the journal like a program that knows the format.
func TestAltered(t *testing.T) {
	tests := map[string]struct {
		alter func(t *testing.T, path string)
		bad   uint64 // the first bad Seq
	}{
		"a fact":       {run(`UPDATE change SET data = CAST('{"n":0}' AS BLOB) WHERE seq = 77`), 77},
		"no fact":      {run("UPDATE change SET data = NULL WHERE seq = 77"), 77},
		"a time":       {run("UPDATE change SET time = time + 1 WHERE seq = 77"), 77},
		"a cause":      {run("UPDATE change SET cause = 5 WHERE seq = 77"), 77},
		"a version":    {run("UPDATE change SET version = version + 1 WHERE seq = 77"), 77},
		"an author":    {run("UPDATE change SET actor_id = 'mallory' WHERE seq = 77"), 77},
		"an entity":    {run("UPDATE change SET entity = 'control/mallory' WHERE seq = 77"), 77},
		"a word":       {run(`UPDATE change SET "to" = 'RUNNING' WHERE seq = 77`), 77},
		"taken out":    {run("DELETE FROM change WHERE seq = 77"), 77},
		"two swapped":  {run("UPDATE change SET seq = -1 WHERE seq = 77; UPDATE change SET seq = 77 WHERE seq = 78; UPDATE change SET seq = 78 WHERE seq = -1"), 77},
		"many gone":    {run("DELETE FROM change WHERE seq BETWEEN 51 AND 100"), 51},
		"first gone":   {run("DELETE FROM change WHERE seq = 1"), 1},
		"a hash":       {run("UPDATE change SET hash = zeroblob(32) WHERE seq = 77"), 77},
		"a short hash": {run("UPDATE change SET hash = zeroblob(31) WHERE seq = 77"), 77},
		// Who makes the change's own hash fit is found out by the next one.
		"a fact and its hash": {forged, 78},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := written(t, 500)
			tt.alter(t, path)
			got, err := all(t.Context(), path, journal.Query{})
			var broken *journal.Broken
			switch {
			case !errors.As(err, &broken):
				t.Errorf("%v, want broken", err)
			case broken.Seq != tt.bad || len(got) != int(tt.bad-1):
				t.Errorf("%d changes, then %v; want %d, then broken at %d", len(got), err, tt.bad-1, tt.bad)
			}
			found := Check(t.Context(), path)
			var seq uint64
			for _, f := range found {
				seq = max(seq, f.Seq)
				if !f.OK && f.Do == "" {
					t.Errorf("%q does not say what to do", f.What)
				}
			}
			if seq != tt.bad {
				t.Errorf("Check names change %d, want %d: %+v", seq, tt.bad, found)
			}
		})
	}
}

// forged changes a fact and makes its hash fit.
func forged(t *testing.T, path string) {
	t.Helper()
	changes, err := all(t.Context(), path, journal.Query{Until: 77})
	if err != nil {
		t.Fatal(err)
	}
	changes[76].Data = []byte(`{"n":0}`)
	alter(t, path,
		fmt.Sprintf(`UPDATE change SET data = CAST('{"n":0}' AS BLOB), hash = x'%s' WHERE seq = 77`, changes[76].Sum(changes[75].Hash)))
}

// TestAlteredStream reads only the stream in which something was altered.
func TestAlteredStream(t *testing.T) {
	for name, damage := range map[string]string{
		"a fact":          "UPDATE change SET data = NULL WHERE seq = 10", // of agent-1: 2, 10, 18, …
		"taken out":       "DELETE FROM change WHERE seq = 10",
		"a version":       "UPDATE change SET version = 9 WHERE seq = 10",
		"moved":           "UPDATE change SET entity = 'control/agent-2' WHERE seq = 10",
		"the last one":    "UPDATE change SET entity = 'control/agent-2' WHERE seq = 600",
		"the first one":   "UPDATE change SET entity = 'control/agent-2' WHERE seq = 2",
		"its end":         "UPDATE stream SET version = version - 1 WHERE entity = 'control/agent-1'",
		"no end":          "DELETE FROM stream WHERE entity = 'control/agent-1'",
		"the hash before": "UPDATE change SET hash = zeroblob(32) WHERE seq = 9",
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, 600)
			alter(t, path, damage)
			_, err := all(t.Context(), path, journal.Query{Entity: "control/agent-1"})
			var broken *journal.Broken
			if !errors.As(err, &broken) {
				t.Errorf("%v, want broken", err)
			}
			if healthy(Check(t.Context(), path)) {
				t.Error("Check finds nothing wrong")
			}
		})
	}
}

// An append to an entity whose end is damaged is refused: it would get a version that does not follow. Others are stored.
func TestAppendToDamagedEnd(t *testing.T) {
	for name, damage := range map[string]string{
		"gone":  "DELETE FROM stream WHERE entity = 'control/agent-1'",
		"lower": "UPDATE stream SET version = 1 WHERE entity = 'control/agent-1'",
	} {
		path := written(t, 100)
		alter(t, path, damage)
		j := opened(t, path)
		_, err := j.Append(t.Context(), []journal.Change{journaltest.Made("control/agent-1", 1)})
		var broken *journal.Broken
		if !errors.As(err, &broken) {
			t.Errorf("%s: %v, want broken", name, err)
		}
		if _, err := j.Append(t.Context(), []journal.Change{journaltest.Made("control/agent-2", 1)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func alter(t *testing.T, path, sql string) {
	t.Helper()
	db := dial(path, readWrite, 1, cacheKiB)
	_, err := db.Exec(sql)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		says    []string
	}{
		"no folder": {func(t *testing.T, path string) {}, []string{"make the folder"}},
		"not a database": {
			func(t *testing.T, path string) { write(t, path, strings.Repeat("dear diary\n", 500)) },
			[]string{"not a database", "copy the file"},
		},
		"short": {
			func(t *testing.T, path string) { write(t, path, "SQLite format 3\x00") },
			[]string{"not a database", "copy the file"},
		},
		"a folder": {func(t *testing.T, path string) { mkdir(t, path) }, []string{"must be a file"}},
		"log without its file": {
			func(t *testing.T, path string) { write(t, path+"-wal", "something") },
			[]string{"the file is missing", "journal.db-wal", "put the file back"},
		},
		"log with an empty file": {
			func(t *testing.T, path string) { write(t, path, ""); write(t, path+"-wal", "something") },
			[]string{"the file is empty", "put the file back"},
		},
		"archive without its file": {
			func(t *testing.T, path string) { write(t, path+ArchiveTail, "something") },
			[]string{"the file is missing", "journal.db-archive", "put the file back"},
		},
		"archive with an empty file": {
			func(t *testing.T, path string) { write(t, path, ""); write(t, path+ArchiveTail, "something") },
			[]string{"the file is empty", "journal.db-archive", "put the file back"},
		},
		"a flipped bit in a definition": {func(t *testing.T, path string) {
			text := strings.Replace(readFile(t, written(t, 50)), "SET version = NEW.version", "SET version = NEW.varsion", 1)
			write(t, path, text)
		}, []string{"definitions of its tables", "copy the file"}},
		"another database": {
			func(t *testing.T, path string) { write(t, path, ""); alter(t, path, "CREATE TABLE cats (name)") },
			[]string{"not a journal of Fairlead", "another path"},
		},
		"newer": {func(t *testing.T, path string) {
			copyFile(t, written(t, 50), path)
			alter(t, path, "PRAGMA user_version = 99")
		}, []string{"format 99", "use that version", "move the file and those beside it", "stay as they are"}},
		"older": {func(t *testing.T, path string) {
			write(t, path, "")
			alter(t, path, "CREATE TABLE batch (first INTEGER PRIMARY KEY); PRAGMA application_id = 0x46414952; PRAGMA user_version = 5")
		}, []string{"format 5", "use that version", "move the file and those beside it", "stay as they are"}},
		"cut": {func(t *testing.T, path string) {
			copyFile(t, written(t, 500), path)
			if err := os.Truncate(path, 3*4096); err != nil {
				t.Fatal(err)
			}
		}, []string{"damaged", "copy the file"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			if name == "no folder" {
				path = filepath.Join(filepath.Dir(path), "nowhere", "journal.db")
			}
			tt.prepare(t, path)
			before := listing(t, filepath.Dir(path))
			j, err := Open(t.Context(), path)
			if err == nil {
				t.Fatal("it was opened", j.Close())
			}
			for _, s := range append(tt.says, path) {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error lacks %q: %v", s, err)
				}
			}
			for _, f := range Check(t.Context(), path) {
				if !f.OK && (f.What == "" || f.Do == "") {
					t.Errorf("a finding without words: %+v", f)
				}
			}
			if healthy(Check(t.Context(), path)) {
				t.Error("Check finds nothing wrong")
			}
			if after := listing(t, filepath.Dir(path)); after != before {
				t.Errorf("files were\n%sand are\n%s", before, after)
			}
		})
	}
}

// TestCheckWritesNothing checks a journal in use, and one that is not.
func TestCheckWritesNothing(t *testing.T) {
	path := written(t, 100)
	before := listing(t, filepath.Dir(path))
	if found := Check(t.Context(), path); !healthy(found) || !strings.Contains(fmt.Sprint(found), "100 changes") {
		t.Errorf("%+v", found)
	}
	if after := listing(t, filepath.Dir(path)); after != before {
		t.Errorf("files were\n%sand are\n%s", before, after)
	}
	j := opened(t, path)
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(5)); err != nil {
		t.Fatal(err)
	}
	if found := Check(t.Context(), path); !healthy(found) || !strings.Contains(fmt.Sprint(found), "105 changes") {
		t.Errorf("in use: %+v", found)
	}
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(5)); err != nil {
		t.Errorf("after a check: %v", err)
	}
}

// TestDamagedSnapshot falls back on the one before.
func TestDamagedSnapshot(t *testing.T) {
	path := written(t, 100)
	j := opened(t, path)
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(5)); err != nil {
		t.Fatal(err)
	}
	seq, hash, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Hash: hash, Format: "f", Data: []byte("newer")}); err != nil {
		t.Fatal(err)
	}
	alter(t, path, "UPDATE snapshot SET data = CAST('newes' AS BLOB) WHERE seq = 105")
	if s, ok, err := j.Latest(t.Context()); !ok || err != nil || s.Seq != 100 || string(s.Data) != "state" {
		t.Errorf("latest is %d %q %v %v, want the whole one of 100", s.Seq, s.Data, ok, err)
	}
	if healthy(Check(t.Context(), path)) {
		t.Error("Check finds nothing wrong")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(b))
}

// listing gives the names, sizes and contents of a folder's files, as one text to compare.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), "-shm") || strings.HasSuffix(e.Name(), "-wal") && info.Size() == 0 {
			continue // SQLite's own, and nothing is in them
		}
		b, _ := os.ReadFile(filepath.Join(dir, e.Name())) // a folder gives none
		var sum journal.Summer
		fmt.Fprintf(&out, "%s %d %s\n", e.Name(), len(b), sum.Sum(journal.Hash{}, &journal.Change{Data: b}))
	}
	return out.String()
}

// A file that was taken away, or replaced, takes nothing: SQLite would write into a file
// without a name, and call it safe.
func TestFileTakenAway(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "journal.db")
		j, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		batch := journaltest.MadeBatch(1)
		if _, err := j.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if replaced {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := j.Append(t.Context(), batch); !errors.Is(err, journal.ErrGone) {
			t.Errorf("replaced %v: %v", replaced, err)
		}
	}
}
