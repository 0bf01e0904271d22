package daemon

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/journal/sqlite"
)

// The care for a journal ends with it: each reload of a leader opens another one.
func TestCareOfAClosedJournal(t *testing.T) {
	t.Parallel()
	j, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	e := &engines{compared: time.Now()}
	care(t.Context(), e, nil, j)
	careLeading(t.Context(), e, nil, nil, j)
	if _, _, again := compare(t.Context(), e, nil, j); again != 0 {
		t.Errorf("it is looked at again after %v", again)
	}
}
