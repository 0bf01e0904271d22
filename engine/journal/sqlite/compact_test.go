package sqlite

import (
	"bufio"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

const compactEnv = "FAIRLEAD_TEST_JOURNAL_COMPACT" // STEP:PATH: this process compacts that file, and kills itself at the step

var later = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) // than all changes

func compacted(t *testing.T, path string, how Compacting) Compacted {
	t.Helper()
	done, err := Compact(t.Context(), path, how)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Data comes out of the archive byte for byte, also if it is no UTF-8 or has blanks.
func TestCompactedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	batch := journaltest.MadeBatch(5)
	batch[0].Data, batch[1].Data, batch[2].Data = []byte("\"\xff\""), []byte("{ \"a\":\n\"<\u2028\" }"), nil
	if _, err := opened(t, path).Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	before, err := all(t.Context(), path, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if done := compacted(t, path, Compacting{Before: later}); done.Changes != 4 {
		t.Errorf("%d changes were moved, want 4", done.Changes)
	}
	after, err := all(t.Context(), path, journal.Query{})
	if err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("%+v, were %+v, %v", after, before, err)
	}
}

// A compacted journal yields the same changes, whole and by entity, with its chain and its snapshot, in smaller files,
// and grows as before. A dry run says the same numbers and changes nothing.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	rare := scattered(t, path, 6_000, 2)
	j := opened(t, path)
	middle, err := all(t.Context(), path, journal.Query{Until: 3777})
	if err != nil {
		t.Fatal(err)
	}
	of := middle[len(middle)-1]
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: of.Seq, Hash: of.Hash, Format: "f", Data: []byte("state")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := all(t.Context(), path, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	size := sizeOf(t, path)
	dry := compacted(t, path, Compacting{Before: later, Dry: true, Alone: true})
	if now := sizeOf(t, path); now != size || dry.Changes != uint64(len(before)-1) {
		t.Errorf("a dry run: %+v, the file has %d bytes and had %d", dry, now, size)
	}
	done := compacted(t, path, Compacting{Before: later, Alone: true})
	if now := sizeOf(t, path) + sizeOf(t, path+ArchiveTail); done != dry || done.After != sizeOf(t, path+ArchiveTail) || now*3 > size {
		t.Errorf("%+v, a dry run said %+v; the files have %d bytes and had %d", done, dry, now, size)
	}
	after, err := all(t.Context(), path, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, after) {
		t.Fatal("the changes are others")
	}
	var want, got []uint64
	for i := range rare {
		if rare[i].Entity == "control/rare-1" {
			want = append(want, rare[i].Seq)
		}
	}
	one, err := all(t.Context(), path, journal.Query{Entity: "control/rare-1"})
	for i := range one {
		got = append(got, one[i].Seq)
	}
	if err != nil || !slices.Equal(want, got) || len(want) == 0 {
		t.Errorf("of one entity there are %v, want %v (%v)", got, want, err)
	}
	if found := Check(t.Context(), path); !healthy(found) {
		t.Errorf("%+v", found)
	}
	if again := compacted(t, path, Compacting{Before: later, Alone: true}); again.Changes != 0 {
		t.Errorf("a second time: %+v", again)
	}
	j = opened(t, path)
	if s, ok, err := j.Latest(t.Context()); err != nil || !ok || s.Seq != of.Seq {
		t.Errorf("its snapshot is %+v (%v, %v)", s, ok, err)
	}
	for range 12 {
		if _, err := j.Append(t.Context(), journaltest.MadeBatch(journal.BatchChangesMax)); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
}

// Changes of a time or later stay as they are.
func TestCompactBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for hour := range 10 {
		batch := journaltest.MadeBatch(100)
		for i := range batch {
			batch[i].Time = noon.Add(time.Duration(hour) * time.Hour)
		}
		if _, err := j.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		hour int
		want uint64
	}{{0, 0}, {3, 300}, {3, 0}, {4, 100}, {24, 599}} { // the last one stays
		done := compacted(t, path, Compacting{Before: noon.Add(time.Duration(step.hour) * time.Hour)})
		if done.Changes != step.want {
			t.Errorf("before %d:00 %+v, want %d", 12+step.hour, done, step.want)
		}
	}
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
	if missing := compacted(t, filepath.Join(t.TempDir(), "journal.db"), Compacting{Before: noon}); missing != (Compacted{}) {
		t.Errorf("no journal: %+v", missing)
	}
}

// Readers that are on their way when their part is compacted see every change once.
func TestCompactBelowReaders(t *testing.T) {
	of := journaltest.MadeBatch(1)[0].Entity
	for name, q := range map[string]journal.Query{"all": {}, "some": {After: 833, Until: 4_800}, "an entity": {Entity: of}} {
		path := filepath.Join(t.TempDir(), "journal.db")
		scattered(t, path, 5_000, 8)
		want, err := all(t.Context(), path, q)
		if err != nil || len(want) < 500 {
			t.Fatal(name, len(want), err)
		}
		j := opened(t, path)
		next, stop := iter.Pull2(j.Read(t.Context(), q))
		defer stop()
		var got []journal.Change
		for at := range len(want) {
			if at == len(want)/3 {
				if done := compacted(t, path, Compacting{Before: later}); done.Changes == 0 || done.Free == 0 {
					t.Errorf("%s: %+v", name, done)
				}
			}
			c, err, _ := next()
			if err != nil {
				t.Fatal(name, at, err)
			}
			got = append(got, c)
		}
		if _, _, more := next(); more {
			t.Errorf("%s: more than %d changes came", name, len(want))
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: other changes came", name)
		}
	}
}

// A daemon appends while another process compacts, and two compact at once.
func TestCompactBesideWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	scattered(t, path, 4_000, 8)
	j := opened(t, path)
	start, _, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	over := make(chan struct{})
	for range 2 {
		both.Go(func() {
			if _, err := Compact(t.Context(), path, Compacting{Before: later}); err != nil {
				t.Error(err)
			}
		})
	}
	go func() { both.Wait(); close(over) }()
	end := start
	for run := true; run; {
		select {
		case <-over:
			run = false
		default:
		}
		if end, err = j.Append(t.Context(), journaltest.MadeBatch(3), journal.Expect{Entity: journal.Whole, Version: end}); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
	if found := Check(t.Context(), path); !healthy(found) {
		t.Errorf("%+v", found)
	}
}

// Killed in the middle of a step, and between two, the journal has every change, and the next attempt ends.
func TestCompactKilled(t *testing.T) {
	for _, step := range []string{"within", "between"} {
		path := filepath.Join(t.TempDir(), "journal.db")
		scattered(t, path, 5_000, 8)
		before, err := all(t.Context(), path, journal.Query{})
		if err != nil {
			t.Fatal(err)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), compactEnv+"="+step+":"+path)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.Exited() {
			t.Fatalf("%s: it was not killed: %v %s", step, err, out)
		}
		for range 2 {
			after, err := all(t.Context(), path, journal.Query{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(before, after) {
				t.Fatal(step, "the changes are others")
			}
			compacted(t, path, Compacting{Before: later, Alone: true})
		}
		if rest := compacted(t, path, Compacting{Before: later, Alone: true}); rest.Changes > 0 {
			t.Errorf("%s: %+v was left", step, rest)
		}
	}
}

// compactAndDie kills this process within the second step, or after the first.
func compactAndDie(how string) int {
	step, path, _ := strings.Cut(how, ":")
	ctx := context.Background()
	j, err := Open(ctx, path)
	next := uint64(1)
	for n := range 2 {
		var p *part
		var packed []byte
		if err == nil {
			err = j.reading(ctx, func(tx *sql.Tx) (err error) {
				p, packed, err = pack(tx, path, next, later)
				return err
			})
		}
		if err == nil {
			next = p.last + 1
			err = j.writing(ctx, func(tx *sql.Tx) (bool, error) {
				stored, err := p.store(tx, path, packed)
				if n == 1 && step == "within" {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
				return stored, err
			})
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // the test says so if it was not killed
	return 1
}

// Damage of the archive is an error that names the first change of the part, and never another change. Other parts are read.
func TestArchiveDamaged(t *testing.T) {
	path := written(t, 4000)
	compacted(t, path, Compacting{Before: later, Alone: true})
	j := opened(t, path)
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(2*tailChecked)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := all(t.Context(), path, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	journalText, archiveText := readFile(t, path), readFile(t, path+ArchiveTail)
	flipped := func(at int) func(string) {
		return func(bad string) {
			text := []byte(archiveText)
			text[at] ^= 4
			write(t, bad+ArchiveTail, string(text))
		}
	}
	tests := map[string]struct {
		damage func(bad string)
		bad    uint64
	}{
		"its first byte": {flipped(0), 1},
		"its last byte":  {flipped(len(archiveText) - 1), 3*partChanges + 1},
		"missing":        {func(bad string) { remove(t, bad+ArchiveTail) }, 1},
		"cut":            {func(bad string) { write(t, bad+ArchiveTail, archiveText[:len(archiveText)-1]) }, 3*partChanges + 1},
		"of another":     {func(bad string) { write(t, bad+ArchiveTail, strings.Repeat("x", len(archiveText))) }, 1},
		"a hash":         {func(bad string) { alter(t, bad, "UPDATE archive SET hash = zeroblob(32) WHERE first = 1025") }, 1025},
		"a short sum":    {func(bad string) { alter(t, bad, "UPDATE archive SET sum = x'00' WHERE first = 1025") }, 1025},
		"a part gone":    {func(bad string) { alter(t, bad, "DELETE FROM archive WHERE first = 1025") }, 1025},
		"the last part":  {func(bad string) { alter(t, bad, "DELETE FROM archive WHERE first = 3073") }, 3073},
		"entities":       {func(bad string) { alter(t, bad, "UPDATE archive SET entities = char(10) WHERE first = 1025") }, 0},
		"too long":       {func(bad string) { alter(t, bad, "UPDATE archive SET last = last + 1 WHERE first = 3073") }, 4000},
	}
	for name, tt := range tests {
		bad := filepath.Join(t.TempDir(), "journal.db")
		write(t, bad, journalText)
		write(t, bad+ArchiveTail, archiveText)
		tt.damage(bad)
		got, err := all(t.Context(), bad, journal.Query{})
		if len(got) > 0 && !reflect.DeepEqual(want[:len(got)], got) {
			t.Errorf("%s: other changes", name)
		}
		var broken *journal.Broken
		if tt.bad > 0 && (!errors.As(err, &broken) || broken.Seq != tt.bad) {
			t.Errorf("%s: %v, want broken at %d", name, err, tt.bad)
		}
		if healthy(Check(t.Context(), bad)) != (tt.bad == 0) {
			t.Errorf("%s: %+v", name, Check(t.Context(), bad))
		}
		_, err = all(t.Context(), bad, journal.Query{Entity: "control/agent-1"})
		if !errors.As(err, &broken) {
			t.Errorf("%s, one entity: %v, want broken", name, err)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// What an interrupted step has written behind the last part is overwritten, and the file is one gzip file for other programs.
func TestArchiveIsLines(t *testing.T) {
	path := written(t, 2000)
	write(t, path+ArchiveTail, strings.Repeat("x", 1<<20))
	compacted(t, path, Compacting{Before: later})
	f, err := os.Open(path + ArchiveTail)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	n := 0
	for ; lines.Scan(); n++ {
		var l struct {
			Seq  int
			Data string
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Seq != n+1 || !json.Valid([]byte(l.Data)) {
			t.Fatalf("line %d: %s", n, lines.Text())
		}
	}
	if lines.Err() != nil || n != 1999 {
		t.Errorf("%d lines, %v", n, lines.Err())
	}
}

// scattered is a journal with many changes of eight agents, and a few of agents that come rarely. It returns
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

// Reading one entity gives its changes and no others, whatever part of the journal is asked for, from the table and from the archive.
func TestReadOneEntity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	const changes = 6_000
	rare := scattered(t, path, changes, 2)
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, archived := range []bool{false, true} {
		if archived {
			compacted(t, path, Compacting{Before: later})
			for range 2 {
				if _, err := opened(t, path).Append(t.Context(), journaltest.MadeBatch(journal.BatchChangesMax)); err != nil {
					t.Fatal(err)
				}
			}
		}
		j := opened(t, path)
		for range 20 {
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
					t.Fatalf("archived %v, %+v: %v", archived, q, err)
				}
				got = append(got, c.Seq)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("archived %v, %+v: %v, want %v", archived, q, got, want)
			}
		}
	}
}
