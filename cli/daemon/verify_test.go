package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// unreadable is a server whose files cannot be read.
type unreadable struct{ copyServer }

func (unreadable) Check(context.Context, journal.Journal) ([]sqlite.Finding, error) {
	return []sqlite.Finding{{What: "input/output error"}}, nil
}

// mirrorOf is an empty journal in a file.
func mirrorOf(t *testing.T) journal.Journal {
	t.Helper()
	j, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// A disk that cannot be read is not looked at all the time.
func TestCareOfAnUnreadableCopy(t *testing.T) {
	t.Parallel()
	j := mirrorOf(t)
	e := &engines{log: slog.New(slog.DiscardHandler), looked: true}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		e.verifyCopies(t.Context(), unreadable{}, j)
		if took := time.Since(began); took != repairAgain || e.looked {
			t.Errorf("after %v, the mirror was looked at: %t", took, e.looked)
		}
	})
}

// The care for a journal ends before it, although the next look is in a day: each reload of a leader opens another one.
func TestCareEnds(t *testing.T) {
	t.Parallel()
	j := mirrorOf(t)
	e := &engines{compared: time.Now(), term: t.Context()}
	e.leads.Store(&engine.Lead{})
	ended := make(chan error, 1)
	end := e.beginVerifying(j, nil)
	go func() { ended <- end() }()
	if err := wait.For(t, "its end", ended); err != nil {
		t.Error(err)
	}
}

// A journal that was closed is not looked at.
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
	e.verifyCopies(t.Context(), nil, j)
	e.verifyLeading(t.Context(), nil, j, nil)
	if _, _, again := e.compare(t.Context(), nil, j); again != 0 {
		t.Errorf("it is looked at again after %v", again)
	}
}

// damagedLeader is the server of a host that leads, with a damaged copy.
type damagedLeader struct {
	copyServer
	others []string
}

func (damagedLeader) Check(context.Context, journal.Journal) ([]sqlite.Finding, error) {
	return []sqlite.Finding{{What: "message 3 is another one", Seq: 3}}, nil
}

func (s damagedLeader) Others() []string { return s.others }

// A leader with a damaged copy hands the lead to a host that can lead, and to no other one: it would not take it.
func TestLeadGoesToAHostThatCanLead(t *testing.T) {
	t.Parallel()
	j := mirrorOf(t)
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), []string{}
		e := &engines{log: slog.New(slog.DiscardHandler)}
		e.verifyLeading(t.Context(), damagedLeader{others: []string{"b", "c", "d"}}, j, func(name string) (unfit, error) {
			asked = append(asked, name)
			switch {
			case name == "b":
				return otherConfig, nil
			case name == "c":
				return "", errors.New("the lease is not renewed")
			case len(asked) < 6: // it is back when it is asked again
				return notConnected, nil
			}
			return "", nil
		})
		want := []string{"b", "c", "d", "d", "d", "d"} // only d can become one that can lead within seconds
		if !slices.Equal(asked, want) || time.Since(began) != 3*connectAgain {
			t.Errorf("asked %v, within %v", asked, time.Since(began))
		}
	})
}
