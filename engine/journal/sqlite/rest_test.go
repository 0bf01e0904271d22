package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// A journal at rest has no idle reader, each connection keeps a small part of the file, and what comes next works as before.
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
		if j.readers.Stats().Idle == 0 {
			t.Fatal("there was nothing to give back")
		}
		var kept int
		if err := j.writer.QueryRow("PRAGMA cache_size").Scan(&kept); err != nil || kept != -writerCacheKiB {
			t.Fatalf("the writer keeps %d, %v", kept, err)
		}
		j.Rest()
		if open := j.readers.Stats().OpenConnections; open != 0 {
			t.Errorf("%d idle readers", open)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j.Rest()
}
