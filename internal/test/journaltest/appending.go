package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

func testEmpty(t *testing.T, j journal.Journal) {
	seq, hash, err := j.Head(t.Context())
	if seq != 0 || !hash.IsZero() || err != nil {
		t.Errorf("head %d %s %v, want 0, zero, nil", seq, hash, err)
	}
	for _, q := range []journal.Query{{}, {After: 7}, {Until: 7}, {Entity: "control/coder"}, {After: 1 << 60, Until: 3}} {
		if got := collect(t, j.Read(t.Context(), q)); len(got) != 0 {
			t.Errorf("%+v yields %d changes", q, len(got))
		}
	}
	if _, ok, err := j.Latest(t.Context()); ok || err != nil {
		t.Errorf("latest snapshot: %v %v, want none", ok, err)
	}
	mustVerify(t, j)
}

func testFields(t *testing.T, j journal.Journal) {
	east := time.FixedZone("east", 5*3600+1800)
	put := []journal.Change{
		Made("control/coder", 0),
		{Entity: "run/f8c1a491", Time: time.Unix(0, 1)}, // as little as possible
		{Entity: "session/Coder_1.x-7", Time: start.In(east), Data: []byte(`"\u0000 <&> é"`), Trigger: "späť → ja"},
		{Entity: "team/team", Time: time.Unix(-1, 999), Data: []byte(" {\n\t\"kept\" :  1e3 } ")}, // byte for byte
		{
			Entity: "control/coder", Time: time.Now(), Data: []byte("null"), Cause: 1, Machine: "control",
			Actor: change.Actor{Kind: "engine", ID: "recovery"},
		},
	}
	mustAppend(t, j, put...)
	got := collect(t, j.Read(t.Context(), journal.Query{}))
	if len(got) != len(put) {
		t.Fatalf("%d changes, want %d", len(got), len(put))
	}
	for i := range got {
		if err := same(got[i], put[i]); err != nil {
			t.Error(err)
		}
	}
	if v := []uint64{got[0].Version, got[1].Version, got[4].Version}; !slices.Equal(v, []uint64{1, 1, 2}) {
		t.Errorf("versions %v, want 1 1 2", v)
	}
	mustVerify(t, j)
}

func testConsecutive(t *testing.T, j journal.Journal) {
	want := uint64(0)
	for _, n := range []int{1, 3, 1, 64, 2} {
		want += uint64(n)
		if last := mustAppend(t, j, MadeBatch(n)...); last != want {
			t.Errorf("last is %d, want %d", last, want)
		}
	}
	for i, c := range collect(t, j.Read(t.Context(), journal.Query{})) {
		if c.Seq != uint64(i+1) {
			t.Fatalf("place %d has seq %d", i+1, c.Seq)
		}
	}
	if seq, hash, err := j.Head(t.Context()); seq != want || hash.IsZero() || err != nil {
		t.Errorf("head %d %s %v, want %d", seq, hash, err, want)
	}
}

// testAtomic appends from many goroutines while others read: a batch is never seen in part.
func testAtomic(t *testing.T, j journal.Journal) {
	const writers, batches, size = 4, 12, 5
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for b := range batches {
				batch := make([]journal.Change, size)
				for i := range batch {
					batch[i] = Made(fmt.Sprintf("control/w%d", w), b)
				}
				if _, err := j.Append(t.Context(), batch); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { work.Wait(); close(written) }()
	for over := false; !over; {
		select {
		case <-written:
			over = true
		default:
		}
		got := collect(t, j.Read(t.Context(), journal.Query{}))
		if len(got)%size != 0 {
			t.Fatalf("%d changes were seen: a part of a batch", len(got))
		}
		for i := 0; i < len(got); i += size {
			for _, c := range got[i : i+size] {
				if c.Entity != got[i].Entity {
					t.Fatalf("change %d of %s is within a batch of %s", c.Seq, c.Entity, got[i].Entity)
				}
			}
		}
	}
	if seq, _, _ := j.Head(t.Context()); seq != writers*batches*size {
		t.Errorf("head is %d, want %d", seq, writers*batches*size)
	}
	mustVerify(t, j)
}

func testExpect(t *testing.T, j journal.Journal) {
	const a, b = "control/a", "control/b"
	put := func(entity string, expect ...journal.Expect) error {
		_, err := j.Append(t.Context(), []journal.Change{Made(entity, 1)}, expect...)
		return err
	}
	steps := []struct {
		entity string
		expect []journal.Expect
		want   *journal.Conflict
	}{
		{a, []journal.Expect{{Entity: a, Version: 0}}, nil},
		{a, []journal.Expect{{Entity: a, Version: 0}}, &journal.Conflict{Entity: a, Want: 0, Has: 1}},
		{a, []journal.Expect{{Entity: a, Version: 2}}, &journal.Conflict{Entity: a, Want: 2, Has: 1}},
		{a, []journal.Expect{{Entity: a, Version: 1}, {Entity: b, Version: 0}}, nil},
		{b, []journal.Expect{{Entity: a, Version: 2}, {Entity: b, Version: 1}}, &journal.Conflict{Entity: b, Want: 1, Has: 0}},
		{b, []journal.Expect{{Entity: a, Version: 2}}, nil}, // an expectation about what is only read
		{a, nil, nil},
		{b, []journal.Expect{{Entity: "control/nobody", Version: 0}, {Entity: a, Version: 3}}, nil},
		{b, []journal.Expect{{Entity: journal.Whole, Version: 5}}, nil},
		{b, []journal.Expect{{Entity: journal.Whole, Version: 5}}, &journal.Conflict{Entity: journal.Whole, Want: 5, Has: 6}},
		{
			b,
			[]journal.Expect{{Entity: journal.Whole, Version: 8}, {Entity: a, Version: 3}},
			&journal.Conflict{Entity: journal.Whole, Want: 8, Has: 6},
		},
		{b, []journal.Expect{{Entity: "control/nobody", Version: 4}}, &journal.Conflict{Entity: "control/nobody", Want: 4, Has: 0}},
	}
	stored := uint64(0)
	for i, s := range steps {
		err := put(s.entity, s.expect...)
		if s.want == nil {
			stored++
			if err != nil {
				t.Errorf("step %d: %v", i, err)
			}
		} else if c := isConflict(err); c == nil || *c != *s.want {
			t.Errorf("step %d: %v, want %v", i, err, s.want)
		}
		if seq, _, _ := j.Head(t.Context()); seq != stored {
			t.Fatalf("step %d: head %d, want %d", i, seq, stored)
		}
	}
	// A conflict in the middle stores nothing of the batch, and the next append goes on as if it had not been.
	if _, err := j.Append(t.Context(), []journal.Change{Made("control/new", 1), Made(a, 1)},
		journal.Expect{Entity: a, Version: 99}); isConflict(err) == nil {
		t.Errorf("want a conflict, got %v", err)
	}
	if got := collect(t, j.Read(t.Context(), journal.Query{Entity: "control/new"})); len(got) != 0 {
		t.Errorf("a refused batch left %d changes", len(got))
	}
	mustAppend(t, j, Made("control/new", 1))
	mustVerify(t, j)
}

// testContention lets goroutines raise one stream, each by read, decide, append: like
// a counter, no step may be lost and none counted twice.
func testContention(t *testing.T, j journal.Journal) {
	contend(t, "control/shared", 4, 25, func(int) journal.Journal { return j })
	mustVerify(t, j)
}

func contend(t *testing.T, entity string, goroutines, each int, handle func(i int) journal.Journal) {
	t.Helper()
	var work sync.WaitGroup
	var mu sync.Mutex
	conflicts := 0
	for g := range goroutines {
		work.Go(func() {
			j, version := handle(g), uint64(0)
			for n := 0; n < each; {
				step := Made(entity, n)
				step.Data = fmt.Appendf(nil, "%d", version+1)
				last, err := j.Append(t.Context(), []journal.Change{step, Made("team/team", n)},
					journal.Expect{Entity: entity, Version: version})
				if c := isConflict(err); c != nil {
					if c.Has == version || c.Want != version {
						t.Errorf("conflict %+v where %d was expected", c, version)
						return
					}
					version = c.Has
					mu.Lock()
					conflicts++
					mu.Unlock()
					continue
				}
				if err != nil || last == 0 {
					t.Errorf("append: %d %v", last, err)
					return
				}
				n++
				version++
			}
		})
	}
	work.Wait()
	got := collect(t, handle(0).Read(t.Context(), journal.Query{Entity: entity}))
	if len(got) != goroutines*each {
		t.Fatalf("%d changes, want %d (%d conflicts)", len(got), goroutines*each, conflicts)
	}
	for i, c := range got {
		if c.Version != uint64(i+1) {
			t.Fatalf("place %d has version %d", i+1, c.Version)
		}
		if string(c.Data) != fmt.Sprint(c.Version) {
			t.Fatalf("version %d was decided on as version %s", c.Version, c.Data)
		}
	}
}

func testEmptyBatch(t *testing.T, j journal.Journal) {
	if last, err := j.Append(t.Context(), nil); last != 0 || err != nil {
		t.Errorf("nothing into nothing: %d %v", last, err)
	}
	mustAppend(t, j, MadeBatch(3)...)
	if last, err := j.Append(t.Context(), []journal.Change{}); last != 3 || err != nil {
		t.Errorf("nothing: %d %v, want 3", last, err)
	}
	if _, err := j.Append(t.Context(), nil, journal.Expect{Entity: "control/agent-0", Version: 5}); isConflict(err) == nil {
		t.Errorf("nothing, but expecting: %v, want a conflict", err)
	}
}

func testAlias(t *testing.T, j journal.Journal) {
	batch := []journal.Change{Made("control/a", 1)}
	put := Made("control/a", 1)
	mustAppend(t, j, batch...)
	if batch[0].Seq != 0 || batch[0].Version != 0 || !batch[0].Hash.IsZero() {
		t.Error("append wrote into the caller's batch")
	}
	for i := range batch[0].Data {
		batch[0].Data[i] = 'x'
	}
	got := collect(t, j.Read(t.Context(), journal.Query{}))
	if err := same(got[0], put); err != nil {
		t.Error("the caller's later writes show: ", err)
	}
	for i := range got[0].Data {
		got[0].Data[i] = 'y'
	}
	if err := same(collect(t, j.Read(t.Context(), journal.Query{}))[0], put); err != nil {
		t.Error("a reader's writes show: ", err)
	}
}

func testLimitsAccepted(t *testing.T, j journal.Journal) {
	big := Made("control/big", 1)
	big.Data = []byte(`"` + strings.Repeat("x", journal.DataBytesMax-2) + `"`)
	longest := Made("control/"+strings.Repeat("n", journal.EntityBytesMax-len("control/")), 2)
	longest.Trigger = strings.Repeat("t", journal.WordBytesMax)
	full := MadeBatch(journal.BatchChangesMax)
	mustAppend(t, j, big, big, big, big, big, big, longest)
	mustAppend(t, j, full...)
	got := collect(t, j.Read(t.Context(), journal.Query{}))
	if len(got) != 7+len(full) {
		t.Fatalf("%d changes, want %d", len(got), 7+len(full))
	}
	if err := errors.Join(same(got[0], big), same(got[6], longest), same(got[len(got)-1], full[len(full)-1])); err != nil {
		t.Error(err)
	}
	mustVerify(t, j)
}

func testLimitsRefused(t *testing.T, j journal.Journal) {
	with := func(change func(*journal.Change)) []journal.Change {
		c := Made("control/a", 1)
		change(&c)
		return []journal.Change{Made("control/before", 1), c}
	}
	tests := map[string][]journal.Change{
		"too many":              MadeBatch(journal.BatchChangesMax + 1),
		"data too long":         with(func(c *journal.Change) { c.Data = []byte(`"` + strings.Repeat("x", journal.DataBytesMax) + `"`) }),
		"no entity":             with(func(c *journal.Change) { c.Entity = "" }),
		"no slash":              with(func(c *journal.Change) { c.Entity = "control" }),
		"no name":               with(func(c *journal.Change) { c.Entity = "control/" }),
		"no kind":               with(func(c *journal.Change) { c.Entity = "/coder" }),
		"three slashes":         with(func(c *journal.Change) { c.Entity = "control/a/b/c" }),
		"an empty part":         with(func(c *journal.Change) { c.Entity = "control/a/" }),
		"an empty name":         with(func(c *journal.Change) { c.Entity = "control//b" }),
		"dots":                  with(func(c *journal.Change) { c.Entity = "control/.." }),
		"space":                 with(func(c *journal.Change) { c.Entity = "control/a b" }),
		"wildcard":              with(func(c *journal.Change) { c.Entity = "control/*" }),
		"new line":              with(func(c *journal.Change) { c.Entity = "control/a\n" }),
		"not ASCII":             with(func(c *journal.Change) { c.Entity = "control/ä" }),
		"entity too long":       with(func(c *journal.Change) { c.Entity = "control/" + strings.Repeat("n", journal.EntityBytesMax) }),
		"word too long":         with(func(c *journal.Change) { c.Trigger = strings.Repeat("t", journal.WordBytesMax+1) }),
		"word with an escape":   with(func(c *journal.Change) { c.Actor.ID = "\x1b[2J" }),
		"word not UTF-8":        with(func(c *journal.Change) { c.From = "\xff" }),
		"no time":               with(func(c *journal.Change) { c.Time = time.Time{} }),
		"time before the range": with(func(c *journal.Change) { c.Time = time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC) }),
		"time after the range":  with(func(c *journal.Change) { c.Time = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }),
	}
	for name, batch := range tests {
		last, err := j.Append(t.Context(), batch)
		if !isRefused(err) || last != 0 {
			t.Errorf("%s: %d %v, want a refusal", name, last, err)
		} else if len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: the refusal is not fit to be shown: %q", name, err)
		}
	}
	if _, err := j.Append(t.Context(), MadeBatch(1), journal.Expect{Entity: "no good"}); !isRefused(err) {
		t.Errorf("expectation about a name that cannot be: %v, want a refusal", err)
	}
	if seq, _, _ := j.Head(t.Context()); seq != 0 {
		t.Errorf("refusals stored %d changes", seq)
	}
}

func testCancelled(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(3)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Append(ctx, MadeBatch(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if _, _, err := j.Head(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("head: %v", err)
	}
	if n, err := firstError(t, j.Read(ctx, journal.Query{})); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("read: %d changes, %v", n, err)
	}
	if _, _, err := j.Latest(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("latest: %v", err)
	}
	if seq, _, err := j.Head(t.Context()); seq != 3 || err != nil {
		t.Errorf("head is %d %v, want 3", seq, err)
	}
	mustAppend(t, j, MadeBatch(1)...)
}

func testClosed(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(900)...)
	mustAppend(t, j, MadeBatch(900)...)
	next := j.Read(t.Context(), journal.Query{})
	n := 0
	var err error
	for _, e := range next {
		if err = e; err != nil {
			break
		}
		if n++; n == 1 {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(err, journal.ErrClosed) {
		t.Errorf("read under way: %d changes, then %v, want ErrClosed", n, err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := j.Append(t.Context(), MadeBatch(1)); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, _, err := j.Head(t.Context()); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("head: %v", err)
	}
	if _, err := firstError(t, j.Read(t.Context(), journal.Query{})); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := firstError(t, j.Watch(t.Context(), journal.Query{})); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("watch: %v", err)
	}
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 1, Format: "x"}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("save snapshot: %v", err)
	}
	if _, _, err := j.Latest(t.Context()); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("latest: %v", err)
	}
}
