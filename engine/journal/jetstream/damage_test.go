package jetstream

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// node is one of the servers of a test, for Repair.
type node struct {
	t *testing.T
	c *servers
	i int
}

func (n node) Name() string                { return n.c.options[n.i].ServerName }
func (n node) Store() string               { return n.c.options[n.i].StoreDir }
func (n node) Stop(context.Context) error  { n.c.stop(n.i); return nil }
func (n node) Start(context.Context) error { n.c.start(n.t, n.i); return nil }

// blocks are the files of a stream's messages in one store.
func (n node) blocks(stream string) []string {
	n.t.Helper()
	found, err := filepath.Glob(filepath.Join(n.Store(), "jetstream", "$G", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(found) == 0 {
		n.t.Fatal("no blocks", err)
	}
	return found
}

func rewrite(t *testing.T, path string, with func([]byte) []byte) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, with(slices.Clone(old)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// One copy of three is damaged while its server is down. Then that server leads, if the servers allow it. No host reads
// anything that was not appended, damage that the server serves is found, and after the repair the copy is whole.
func TestDamagedCopies(t *testing.T) {
	t.Parallel()
	if testsize.Race {
		t.Skip("the servers write 20 MB each, too slow with the race detector")
	}
	for _, tt := range []struct {
		name   string
		short  bool
		served bool // the server does not find it when it starts
		do     func(n node, stream string)
	}{
		{"bit flip", true, true, func(n node, stream string) {
			rewrite(n.t, n.blocks(stream)[0], func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
		}},
		{"block truncated", false, true, func(n node, stream string) {
			rewrite(n.t, n.blocks(stream)[0], func(b []byte) []byte { return b[:len(b)/2] })
		}},
		{"block removed", false, true, func(n node, stream string) {
			if err := os.Remove(n.blocks(stream)[1]); err != nil {
				n.t.Fatal(err)
			}
		}},
		{"store removed", false, false, func(n node, stream string) {
			if err := os.RemoveAll(n.Store()); err != nil {
				n.t.Fatal(err)
			}
		}},
	} {
		if tt.short || testsize.CI() {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				damaged(t, tt.served, tt.do)
			})
		}
	}
}

func damaged(t *testing.T, served bool, do func(n node, stream string)) {
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	c := started(t, 3)
	nc := c.connect(t)
	stream := c.create(t, nc)
	j := opened(t, nc, stream, "")
	big := journaltest.MadeBatch(4)
	for i := range big { // so that there are several blocks
		big[i].Data = []byte(`"` + strings.Repeat("x", 700_000) + `"`)
	}
	for range 8 {
		if _, err := j.Append(ctx, big); err != nil {
			t.Fatal(err)
		}
	}
	bad := node{t, c, (c.leader(t, stream) + 1) % 3}
	c.stored(t, bad.i, stream, 8)
	c.stop(bad.i)
	do(bad, stream)
	c.start(t, bad.i)
	if copied := ScrubCopy(ctx, bad.Store(), stream, bad.Name(), j); served == copied[0].OK {
		t.Errorf("the comparison of the files with the mirror finds %+v", copied)
	}
	good := node{t, c, (bad.i + 1) % 3}
	if copied := ScrubCopy(ctx, good.Store(), stream, good.Name(), j); !copied[0].OK {
		t.Errorf("of a good copy it finds %+v", copied)
	}
	if err := Lead(ctx, nc, stream, bad.Name()); err != nil {
		t.Fatal(err)
	}
	found := Scrub(ctx, nc, stream, j)
	if served == found[0].OK {
		t.Errorf("the comparison with the mirror finds %+v", found)
	}
	var reports atomic.Int64
	fresh, err := Open(ctx, nc,
		Options{Stream: stream, Mirror: filepath.Join(t.TempDir(), "fresh.db"), Report: func(error) { reports.Add(1) }})
	var d *Damage
	if errors.As(err, &d) == !served || (reports.Load() == 1) != served {
		t.Errorf("a host that joins: %v, %d reports", err, reports.Load())
	}
	if err == nil {
		if err := errors.Join(journal.Verify(ctx, fresh), fresh.Close()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Repair(ctx, nc, stream, j, bad); err != nil {
		t.Fatal(err)
	}
	if at := c.leader(t, stream); at != bad.i {
		t.Errorf("server %d leads, not the repaired one", at)
	}
	if last, err := j.Append(ctx, big[:1]); err != nil || last != 33 {
		t.Errorf("after the repair: %d, %v", last, err)
	}
	all := opened(t, nc, stream, "")
	if err := journal.Verify(ctx, all); err != nil {
		t.Error(err)
	}
	if seq, _, err := all.Head(ctx); seq != 33 || err != nil {
		t.Errorf("a host that joins then reads up to %d, %v", seq, err)
	}
}

// hurried is a server during whose repair the daemon is asked to end. A start that is not wanted any longer fails.
type hurried struct {
	node
	end func()
}

func (h hurried) Stop(ctx context.Context) error {
	defer h.end()
	return h.node.Stop(ctx)
}

func (h hurried) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.node.Start(ctx)
}

// A repair that is given up, also because its time is over, leaves a server that runs.
func TestRepairGivenUp(t *testing.T) {
	t.Parallel()
	c := started(t, 3)
	nc := c.connect(t)
	stream := c.create(t, nc)
	j := opened(t, nc, stream, "")
	if _, err := j.Append(t.Context(), []journal.Change{journaltest.Made("control/x", 0)}); err != nil {
		t.Fatal(err)
	}
	bad := node{t, c, (c.leader(t, stream) + 1) % 3}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	if _, err := Repair(ctx, nc, stream, j, hurried{bad, end}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !c.run[bad.i].Running() {
		t.Error("the server does not run")
	}
}

// The folder of a repository may have any name: it is no pattern.
func TestCopyInAnyFolder(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "a[b]*?")
	for _, dir := range []string{"$G/streams/S/msgs", "$G/streams/T/msgs", "$SYS/_js_/S-R3F-1"} {
		if err := os.MkdirAll(filepath.Join(store, "jetstream", dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(store, "jetstream", dir, "1.blk"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !HasCopy(store, "S") || !HasCopy(store, "T") || HasCopy(store, "U") || HasCopy(filepath.Join(store, "none"), "S") {
		t.Error("the copies are not found")
	}
	if _, err := putAside(store, []string{"S"}, []string{"S-R3F-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(store, "jetstream", "$SYS", "_js_", "S-R3F-1")); HasCopy(store, "S") || !HasCopy(store, "T") ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the repaired copy is not removed, or another one is: %v", err)
	}
}

// A server with a damaged copy loses the lead of the stream, and does not get it back when the damage is met once more.
func TestLeadElsewhere(t *testing.T) {
	t.Parallel()
	c := started(t, 3)
	nc := c.connect(t)
	stream := c.create(t, nc)
	bad := node{t, c, c.leader(t, stream)}
	at := bad.i
	for range 3 {
		if err := LeadElsewhere(t.Context(), nc, stream, bad.Name()); err != nil {
			t.Fatal(err)
		}
		if at = c.leader(t, stream); at == bad.i {
			t.Error("the server with the damaged copy leads")
		}
	}
	if err := LeadElsewhere(t.Context(), nc, stream, ""); err != nil {
		t.Fatal(err)
	}
	if now := c.leader(t, stream); now == at {
		t.Errorf("server %d still leads", now)
	}
}
