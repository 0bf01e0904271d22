package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
)

// A journal at rest has no idle reader and no row of a large batch, each connection keeps a small part of the file, and what comes next works as before.
func TestRest(t *testing.T) {
	j := opened(t, filepath.Join(t.TempDir(), "journal.db"))
	batch := journaltest.MadeBatch(10)
	batch[0].Data = []byte(`"` + strings.Repeat("x", 100_000) + `"`)
	read := func() (n int) {
		for _, err := range j.Read(t.Context(), journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	for round := 1; round <= 3; round++ {
		if _, err := j.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != 10*round {
			t.Fatalf("%d changes, want %d", got, 10*round)
		}
		if len(j.readers) == 0 || j.row == nil {
			t.Fatal("there was nothing to give back")
		}
		if kept, _, err := j.writer.number("PRAGMA cache_size"); err != nil || kept != -cacheKiB {
			t.Fatalf("the writer keeps %d, %v", kept, err)
		}
		j.Rest()
		if len(j.readers) != 0 || len(j.slots) != 0 || j.row != nil {
			t.Errorf("%d idle readers in %d slots, and a row of %d bytes", len(j.readers), len(j.slots), len(j.row))
		}
		for _, arg := range j.writer.args[:cap(j.writer.args)] {
			if row, ok := arg.Value.([]byte); ok {
				t.Errorf("the writer keeps a row of %d bytes", len(row))
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j.Rest()
}
