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
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
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
			if s := err.Error(); !strings.Contains(s, "copy") && !strings.Contains(s, "path") && !strings.Contains(s, "newer") {
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

// at names a record: the change of a seq in what written gives, whose batches have 50.
type at uint64

// record changes the records of the batch that holds a change; n is its place among them.
func (seq at) record(edit func(all []record, n int) []record) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		c, err := dial(path, readWrite)
		if err != nil {
			t.Fatal(err)
		}
		var all []record
		var first uint64
		err = c.batches(uint64(seq)-1, func(b *batchRow) (bool, error) {
			var r record
			first = b.first
			for rest := b.data; len(rest) > 0; {
				if rest, err = nextRecord(rest, &r, r.nanos); err != nil {
					return false, err
				}
				all = append(all, r)
			}
			return false, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		before := int64(0)
		for _, r := range edit(all, int(uint64(seq)-first)) {
			data, before = appendRecord(data, &r, before), r.nanos
		}
		if err := errors.Join(c.exec("UPDATE batch SET data = ?1 WHERE first = ?2", data, int64(first)), c.close()); err != nil {
			t.Fatal(err)
		}
	}
}

// one changes one record.
func (seq at) one(edit func(*record)) func(t *testing.T, path string) {
	return seq.record(func(all []record, n int) []record { edit(&all[n]); return all })
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
		"a fact":         {at(77).one(func(r *record) { r.data = []byte(`{"n":0}`) }), 77},
		"a time":         {at(77).one(func(r *record) { r.nanos++ }), 77},
		"a cause":        {at(77).one(func(r *record) { r.cause = 5 }), 77},
		"a version":      {at(77).one(func(r *record) { r.version++ }), 77},
		"a mark":         {at(77).one(func(r *record) { r.mark[0]++ }), 77},
		"an author":      {run("UPDATE phrase SET actor_id = 'mallory' WHERE id = 3"), 3},
		"an entity":      {run("UPDATE entity SET name = 'control/mallory' WHERE id = 2"), 2},
		"a phrase gone":  {run("DELETE FROM phrase WHERE id = 3"), 3},
		"an entity gone": {run("DELETE FROM entity WHERE id = 2"), 2},
		"taken out":      {at(77).record(func(all []record, n int) []record { return slices.Delete(all, n, n+1) }), 77},
		"put in":         {at(77).record(func(all []record, n int) []record { return slices.Insert(all, n, all[n]) }), 78},
		"put behind":     {at(100).record(func(all []record, n int) []record { return append(all, all[n]) }), 100},
		"two swapped":    {at(77).record(func(all []record, n int) []record { all[n], all[n+1] = all[n+1], all[n]; return all }), 77},
		"a batch gone":   {run("DELETE FROM batch WHERE first = 51"), 51},
		"first gone":     {run("DELETE FROM batch WHERE first = 1"), 1},
		"a longer batch": {run("UPDATE batch SET last = last + 1 WHERE first = 51"), 101},
		"shorter":        {run("UPDATE batch SET last = last - 1 WHERE first = 51"), 99},
		"backwards":      {run("UPDATE batch SET last = 7 WHERE first = 51"), 51},
		"a hash":         {run("UPDATE batch SET hash = zeroblob(32) WHERE first = 51"), 51},
		"a short hash":   {run("UPDATE batch SET hash = zeroblob(31) WHERE first = 51"), 51},
		"half a batch":   {run("UPDATE batch SET data = substr(data, 1, length(data) - 3) WHERE first = 51"), 100},
		"no data":        {run("UPDATE batch SET data = zeroblob(0) WHERE first = 51"), 51},
		// Who makes the mark fit, too, is found out by the hash of the batch, which cannot say which change it was.
		"a fact and its marks": {forged, 51},
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
			case len(got) == 0 && broken.Seq > 500-tailChecked-50: // the same fault shows in the tail: it was not even opened
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

// forged changes a fact and makes all marks behind it fit.
func forged(t *testing.T, path string) {
	t.Helper()
	changes, err := all(t.Context(), path, journal.Query{Until: 100})
	if err != nil {
		t.Fatal(err)
	}
	changes[76].Data = []byte(`{"n":0}`)
	at(77).record(func(all []record, n int) []record {
		prev := changes[75].Hash
		all[n].data = changes[76].Data
		for ; n < len(all); n++ {
			prev = changes[50+n].Sum(prev)
			copy(all[n].mark[:], prev[:])
		}
		return all
	})(t, path)
}

// TestAlteredStream reads only the stream in which something was altered.
func TestAlteredStream(t *testing.T) {
	for name, alter := range map[string]func(t *testing.T, path string){
		"a fact":           at(10).one(func(r *record) { r.data = nil }), // of agent-1: 2, 10, 18, …
		"taken out":        at(10).record(func(all []record, n int) []record { return slices.Delete(all, n, n+1) }),
		"a version":        at(10).one(func(r *record) { r.version = 9 }),
		"moved":            at(10).one(func(r *record) { r.entity = 3 }),
		"the last one":     at(98).one(func(r *record) { r.entity = 3 }),
		"another's change": at(11).one(func(r *record) { r.cause = 9 }),
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, 100)
			alter(t, path)
			_, err := all(t.Context(), path, journal.Query{Entity: "control/agent-1"})
			var broken *journal.Broken
			if !errors.As(err, &broken) {
				t.Errorf("%v, want broken", err)
			}
		})
	}
}

// TestEndsAreMadeAgain damages what is stored of the streams' ends: it follows from the batches.
func TestEndsAreMadeAgain(t *testing.T) {
	for name, damage := range map[string]string{
		"gone":     "DELETE FROM ends",
		"damaged":  "UPDATE ends SET data = x'0105'",
		"of later": "UPDATE ends SET seq = 1000000",
		"cut":      "UPDATE ends SET sum = x'00'",
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, endsEvery+100)
			alter(t, path, damage)
			j := opened(t, path)
			var last journal.Change
			for c, err := range j.Read(t.Context(), journal.Query{Entity: "control/agent-3"}) {
				if err != nil {
					t.Fatal(err)
				}
				last = c
			}
			right, wrong := journal.Expect{Entity: "control/agent-3", Version: last.Version}, journal.Expect{Entity: "control/agent-3", Version: last.Version - 1}
			if _, err := j.Append(t.Context(), journaltest.MadeBatch(1), wrong); err == nil {
				t.Error("a batch was taken that expects another version")
			}
			if _, err := j.Append(t.Context(), journaltest.MadeBatch(5), right); err != nil {
				t.Error(err)
			}
			if err := journal.Verify(t.Context(), j); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFormatOne opens a journal that an older Fairlead has written: the same history, with
// the same hashes.
func TestFormatOne(t *testing.T) {
	const changes, hash = 37, "bffc751e942769a0c4d471757c5d4f9757b6ddd2059ec8aef6a27b3651ae9600"
	path := filepath.Join(t.TempDir(), "journal.db")
	copyFile(t, filepath.Join("testdata", "format1.db"), path)
	j := opened(t, path)
	if seq, h, err := j.Head(t.Context()); err != nil || seq != changes || h.String() != hash {
		t.Errorf("it ends with %d %s (%v)", seq, h, err)
	}
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
	if s, ok, err := j.Latest(t.Context()); err != nil || !ok || s.Seq != 34 || string(s.Data) != "state" {
		t.Errorf("its snapshot is %+v (%v, %v)", s, ok, err)
	}
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(3), journal.Expect{Entity: journal.Whole, Version: changes}); err != nil {
		t.Error(err)
	}
	if found := Check(t.Context(), path); !healthy(found) {
		t.Errorf("%+v", found)
	}
}

// TestFormatOneDamaged leaves a damaged journal of an older Fairlead as it is.
func TestFormatOneDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	copyFile(t, filepath.Join("testdata", "format1.db"), path)
	alter(t, path, "UPDATE change SET time = time + 1 WHERE seq = 20")
	before := listing(t, filepath.Dir(path))
	_, err := Open(t.Context(), path)
	var broken *journal.Broken
	if !errors.As(err, &broken) || broken.Seq != 20 {
		t.Errorf("%v, want broken at 20", err)
	}
	if after := listing(t, filepath.Dir(path)); after != before {
		t.Errorf("files were\n%sand are\n%s", before, after)
	}
}

func alter(t *testing.T, path, sql string) {
	t.Helper()
	c, err := dial(path, readWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script(sql), c.close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		says    []string
	}{
		"no folder":      {func(t *testing.T, path string) {}, []string{"make the folder"}},
		"not a database": {func(t *testing.T, path string) { write(t, path, strings.Repeat("dear diary\n", 500)) }, []string{"not a database", "copy the file"}},
		"short":          {func(t *testing.T, path string) { write(t, path, "SQLite format 3\x00") }, []string{"not a database", "copy the file"}},
		"a folder":       {func(t *testing.T, path string) { mkdir(t, path) }, []string{"must be a file"}},
		"log without its file": {
			func(t *testing.T, path string) { write(t, path+"-wal", "something") },
			[]string{"the file is missing", "journal.db-wal", "put the file back"},
		},
		"log with an empty file": {
			func(t *testing.T, path string) { write(t, path, ""); write(t, path+"-wal", "something") },
			[]string{"the file is empty", "put the file back"},
		},
		"another database": {
			func(t *testing.T, path string) { write(t, path, ""); alter(t, path, "CREATE TABLE cats (name)") },
			[]string{"not a journal of Fairlead", "another path"},
		},
		"newer": {func(t *testing.T, path string) {
			copyFile(t, written(t, 50), path)
			alter(t, path, "PRAGMA user_version = 99")
		}, []string{"format 99", "newer Fairlead"}},
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
