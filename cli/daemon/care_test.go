package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
)

// unreadable is a server whose files cannot be read.
type unreadable struct{ copyServer }

func (unreadable) Check(context.Context, journal.Journal) ([]sqlite.Finding, error) {
	return []sqlite.Finding{{What: "input/output error"}}, nil
}

// A disk that cannot be read is not looked at all the time.
func TestCareOfAnUnreadableCopy(t *testing.T) {
	t.Parallel()
	j, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	e := &engines{log: slog.New(slog.DiscardHandler), looked: true}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		care(t.Context(), e, unreadable{}, j)
		if took := time.Since(began); took != repairAgain || e.looked {
			t.Errorf("after %v, the mirror was looked at: %t", took, e.looked)
		}
	})
}

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
