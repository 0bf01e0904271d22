package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// opened opens a journal in a test's folder.
func opened(t testing.TB, path string) *Journal {
	t.Helper()
	j, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func TestSuite(t *testing.T) {
	journaltest.Run(t,
		func(t *testing.T) journal.Journal { return opened(t, filepath.Join(t.TempDir(), "journal.db")) },
		journaltest.Shared(func(t *testing.T) func() journal.Journal {
			path := filepath.Join(t.TempDir(), "journal.db")
			return func() journal.Journal { return opened(t, path) }
		}))
}
