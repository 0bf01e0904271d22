package journaltest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

func testQueries(t *testing.T, j journal.Journal) {
	for range 3 {
		mustAppend(t, j, MadeBatch(10)...)
	}
	tests := []struct {
		q           journal.Query
		first, last uint64 // 0: nothing
	}{
		{journal.Query{}, 1, 30},
		{journal.Query{After: 1}, 2, 30},
		{journal.Query{After: 29}, 30, 30},
		{journal.Query{After: 30}, 0, 0},
		{journal.Query{After: 1 << 62}, 0, 0},
		{journal.Query{Until: 1}, 1, 1},
		{journal.Query{Until: 30}, 1, 30},
		{journal.Query{Until: 1 << 62}, 1, 30},
		{journal.Query{After: 9, Until: 12}, 10, 12},
		{journal.Query{After: 12, Until: 12}, 0, 0},
		{journal.Query{After: 20, Until: 12}, 0, 0},
	}
	for _, tt := range tests {
		var want []uint64
		for s := tt.first; s != 0 && s <= tt.last; s++ {
			want = append(want, s)
		}
		if got := seqsOf(collect(t, j.Read(t.Context(), tt.q))); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", tt.q, got, want)
		}
	}
}

func testStreams(t *testing.T, j journal.Journal) {
	for range 4 {
		mustAppend(t, j, MadeBatch(12)...) // agents 0 to 3 twice, 4 to 7 once in each batch
	}
	var want []uint64
	for b := range uint64(4) {
		want = append(want, b*12+2, b*12+10)
	}
	for _, q := range []journal.Query{{}, {After: 2}, {After: 3, Until: 37}, {Until: 38}, {After: 100}} {
		q.Entity = "control/agent-1"
		var part []uint64
		for _, s := range want {
			if s > q.After && (q.Until == 0 || s <= q.Until) {
				part = append(part, s)
			}
		}
		got := collect(t, j.Read(t.Context(), q))
		if !slices.Equal(seqsOf(got), part) {
			t.Errorf("%+v: %v, want %v", q, seqsOf(got), part)
		}
		for _, c := range got {
			if v := uint64(slices.Index(want, c.Seq) + 1); c.Version != v || c.Entity != q.Entity {
				t.Errorf("change %d: %s version %d, want %d", c.Seq, c.Entity, c.Version, v)
			}
		}
	}
	for _, none := range []string{"control/agent-9", "control/agent", "no such / name", "'; DROP TABLE change"} {
		if got := collect(t, j.Read(t.Context(), journal.Query{Entity: none})); len(got) != 0 {
			t.Errorf("%q has %d changes", none, len(got))
		}
	}
}

// testAppendWhileReading appends from within a read: the read ends where the journal
// ended when it began, and neither waits for the other.
func testAppendWhileReading(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(600)...)
	n := uint64(0)
	for c, err := range j.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; c.Seq != n {
			t.Fatalf("place %d has seq %d", n, c.Seq)
		}
		if n%100 == 0 {
			mustAppend(t, j, Made("control/meanwhile", int(n)))
			for _, err := range j.Read(t.Context(), journal.Query{After: 590}) { // a read within a read
				if err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	if n != 600 {
		t.Errorf("%d changes were read, want the 600 of the beginning", n)
	}
}

func testRestartable(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(5)...)
	seq := j.Read(t.Context(), journal.Query{})
	for range seq {
		break
	}
	if got := collect(t, seq); len(got) != 5 {
		t.Errorf("the second range over one Read yields %d changes, want 5", len(got))
	}
}

func testChain(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(20)...)
	mustAppend(t, j, MadeBatch(3)...)
	var prev journal.Hash
	for _, c := range collect(t, j.Read(t.Context(), journal.Query{})) {
		if want := c.Sum(prev); c.Hash != want {
			t.Fatalf("change %d: hash %s, want %s", c.Seq, c.Hash, want)
		}
		prev = c.Hash
	}
	if _, hash, _ := j.Head(t.Context()); hash != prev {
		t.Errorf("head's hash is %s, want %s", hash, prev)
	}
	mustVerify(t, j)
}

func testMany(t *testing.T, j journal.Journal) {
	const n = 10_000
	for range n / journal.BatchChangesMax {
		mustAppend(t, j, MadeBatch(journal.BatchChangesMax)...)
	}
	seen := uint64(0)
	for c, err := range j.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; c.Seq != seen {
			t.Fatalf("place %d has seq %d", seen, c.Seq)
		}
	}
	if seen != n {
		t.Errorf("%d changes, want %d", seen, n)
	}
	if got := collect(t, j.Read(t.Context(), journal.Query{Entity: "control/agent-3"})); len(got) != n/8 {
		t.Errorf("a stream has %d changes, want %d", len(got), n/8)
	}
	mustVerify(t, j)
}

func testSnapshots(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(10)...)
	all := collect(t, j.Read(t.Context(), journal.Query{}))
	save := func(seq uint64, text string) {
		t.Helper()
		if err := j.SaveSnapshot(t.Context(),
			journal.Snapshot{Seq: seq, Hash: all[seq-1].Hash, Format: "team 1", Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(seq uint64, text string) {
		t.Helper()
		s, ok, err := j.Latest(t.Context())
		if err != nil || !ok || s.Seq != seq || string(s.Data) != text || s.Hash != all[seq-1].Hash || s.Format != "team 1" {
			t.Errorf("latest is %d %q %q %v %v, want %d %q", s.Seq, s.Format, s.Data, ok, err, seq, text)
		}
	}
	save(4, "four")
	want(4, "four")
	save(7, "seven")
	want(7, "seven")
	save(5, "five") // late, and older: the newest stays
	want(7, "seven")
	save(7, "seven again")
	want(7, "seven again")
	for seq := uint64(8); seq <= 10; seq++ { // more than are kept
		save(seq, fmt.Sprint(seq))
	}
	want(10, "10")
	save(10, "")
	want(10, "")
	save(10, "\x00\xff any bytes")
	want(10, "\x00\xff any bytes")
}

func testForeignSnapshots(t *testing.T, j journal.Journal) {
	mustAppend(t, j, MadeBatch(5)...)
	all := collect(t, j.Read(t.Context(), journal.Query{}))
	for name, s := range map[string]journal.Snapshot{
		"another change's hash": {Seq: 3, Hash: all[3].Hash, Format: "f", Data: []byte("x")},
		"no hash":               {Seq: 3, Format: "f", Data: []byte("x")},
		"the future":            {Seq: 6, Hash: all[4].Hash, Format: "f", Data: []byte("x")},
		"the beginning":         {Seq: 0, Format: "f", Data: []byte("x")},
		"format with a newline": {Seq: 3, Hash: all[2].Hash, Format: "f\n", Data: []byte("x")},
	} {
		if err := j.SaveSnapshot(t.Context(), s); !isRefused(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if s, ok, err := j.Latest(t.Context()); ok || err != nil {
		t.Errorf("latest is %+v %v", s, err)
	}
}
