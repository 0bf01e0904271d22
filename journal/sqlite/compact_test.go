package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
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

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
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

// A compacted journal yields the same changes, whole and by entity, with its chain and its snapshot, in a smaller file,
// and grows as before. A dry run says the same numbers and changes nothing.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	rare := scattered(t, path, 12_000, 8)
	j := opened(t, path)
	middle, err := all(t.Context(), path, journal.Query{Until: 7777})
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
	if now := sizeOf(t, path); now != size || dry.Changes != uint64(len(before)) {
		t.Errorf("a dry run: %+v, the file has %d bytes and had %d", dry, now, size)
	}
	done := compacted(t, path, Compacting{Before: later, Alone: true})
	if done != dry || done.After*2 > done.Before || sizeOf(t, path)*3 > size*2 {
		t.Errorf("%+v, a dry run said %+v; the file has %d bytes and had %d", done, dry, sizeOf(t, path), size)
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
	for range 12 { // beyond the next stretch
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
	}{{0, 0}, {3, 300}, {3, 0}, {4, 100}, {24, 600}} {
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
	for name, q := range map[string]journal.Query{"all": {}, "some": {After: 3333, Until: 19_000}, "an entity": {Entity: of}} {
		path := filepath.Join(t.TempDir(), "journal.db")
		scattered(t, path, 20_000, 8)
		want, err := all(t.Context(), path, q)
		if err != nil || len(want) < 2000 {
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
	scattered(t, path, 12_000, 8)
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
		scattered(t, path, 20_000, 8)
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
	var s segment
	for range 2 {
		if err == nil {
			next := s.last + 1
			s = segment{}
			err = j.reading(ctx, func(c *conn) error { return s.read(c, next, later) })
		}
		if err == nil && step == "within" && s.first > 1 {
			if err = j.writer.exec("BEGIN IMMEDIATE"); err == nil {
				_, err = s.store(j.writer)
			}
			break
		}
		if err == nil {
			_, err = j.replace(ctx, &s)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // the test says so if it was not killed
	return 1
}

// A flipped bit in compressed data is an error that names a change, and never another change.
func TestCompactDamaged(t *testing.T) {
	path := written(t, 2000)
	compacted(t, path, Compacting{Before: later, Alone: true})
	want, err := all(t.Context(), path, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(path, readOnly)
	if err != nil {
		t.Fatal(err)
	}
	size, _, err := c.number("SELECT length(data) FROM batch ORDER BY first LIMIT 1")
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(1); at < size; at += size/23 + 1 {
		bad := filepath.Join(t.TempDir(), "journal.db")
		write(t, bad, string(text))
		alter(t, bad, fmt.Sprintf("UPDATE batch SET data = CAST(substr(data, 1, %d) || x'a7' || substr(data, %d) AS BLOB) WHERE first = 1", at, at+2))
		got, err := all(t.Context(), bad, journal.Query{Until: 256})
		var broken *journal.Broken
		if len(got) > 0 && !reflect.DeepEqual(want[:len(got)], got) {
			t.Errorf("byte %d: other changes", at)
		}
		if now, e := os.ReadFile(bad); e == nil && bytes.Equal(now, text) {
			continue // the byte was that one already
		}
		if !errors.As(err, &broken) || broken.Seq > 512 {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

// A journal that an older Fairlead works with is not compacted below it.
func TestCompactOlderFormat(t *testing.T) {
	path := written(t, 100)
	alter(t, path, "PRAGMA user_version = 4")
	_, err := Compact(t.Context(), path, Compacting{Before: later})
	var unusable *Unusable
	if !errors.As(err, &unusable) || !strings.Contains(err.Error(), "fairlead down") {
		t.Error(err)
	}
	if done := compacted(t, path, Compacting{Before: later, Alone: true}); done.Changes != 100 {
		t.Errorf("%+v", done)
	}
}
