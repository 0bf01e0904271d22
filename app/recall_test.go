package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// TestRecallRun checks that an archived run is restored with its folder, and continues.
func TestRecallRun(t *testing.T) {
	t.Parallel()
	y := archive(t)
	// changes are counted from now on
	if _, err := y.Loop.Do(t.Context(), loop.Request{Event: &team.Event{What: team.DaemonStarted{Leader: "a"}}}); err != nil {
		t.Fatal(err)
	}
	was, err := y.Runs.RunByID(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	y.file(".agents/archive/runs/bad/somebody", "else's, under that name")
	n := uint64(0)
	for range 2 {
		if got := y.prune(0, 0, true, false); got != "bad old-2 old-1" && got != "bad" {
			t.Fatalf("archived %q", got)
		}
		// Its files are on the machine that archived it.
		for _, leads := range []string{"b", "a"} {
			if _, err := y.Loop.Do(t.Context(), loop.Request{Event: &team.Event{What: team.DaemonStarted{Leader: leads}}}); err != nil {
				t.Fatal(err)
			}
			if err := y.Loop.View(t.Context(),
				func(now *team.Team) { now.Hosts.Hosts = map[string]*host.Host{"a": {Name: "a", State: host.Joined}} }); err != nil {
				t.Fatal(err)
			}
			var no *table.Refusal
			if err := y.Runs.RecallRun(t.Context(), human, "bad"); leads == "b" && !errors.As(err, &no) || leads == "a" && err != nil {
				t.Fatalf("%s leads: %v", leads, err)
			}
		}
		if err := y.Loop.View(t.Context(), func(now *team.Team) {
			if more := now.Notes["bad"].Changes; more <= n {
				t.Errorf("it has %d changes, and had %d before it was archived", more, n)
			} else {
				n = more
			}
		}); err != nil {
			t.Fatal(err)
		}
		view, err := y.Runs.RunByID(t.Context(), "bad")
		if err != nil || view.Status != "failed" || view.Steps[0].Attempts != was.Steps[0].Attempts ||
			view.Steps[0].LastError != was.Steps[0].LastError {
			t.Fatalf("restored as %+v, %v", view, err)
		}
		y.until("bad", "its file says so", over)
		if _, err := os.Lstat(filepath.Join(y.dir, ".agents/runs/bad/logs/bad__only__attempt1.log")); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(y.dir, "bad.yaml"),
		[]byte("name: bad\nsteps:\n  - id: only\n    command: "+quoted(report(``))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Runs.ResumeRun(t.Context(), human, "bad", view.RunFlags{}); err != nil {
		t.Fatal(err)
	}
	if view := y.until("bad", "it is over", over); view.Status != "completed" {
		t.Errorf("it continued to %s", view.Status)
	}
	var unknown *team.Unknown
	var no *table.Refusal
	if err := y.Runs.RecallRun(t.Context(), human, "bad"); !errors.As(err, &unknown) && !errors.As(err, &no) {
		t.Errorf("a run that was never archived is restored: %v", err)
	}
	if err := y.Runs.RecallRun(t.Context(), human, "nobody"); !errors.As(err, &unknown) {
		t.Errorf("an unknown run is restored: %v", err)
	}
}

// TestFromArchive checks that only the run's own folder is restored.
func TestFromArchive(t *testing.T) {
	t.Parallel()
	y := archive(t)
	if got := y.prune(0, 0, false, false); got != "old-2 old-1" {
		t.Fatalf("archived %q", got)
	}
	state, err := runstate.ReadRunState(filepath.Join(y.dir, ".agents/archive/runs/old-1", runstate.RunStateName))
	if err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		_, err := os.Lstat(filepath.Join(y.dir, ".agents/runs/old-1"))
		return err == nil
	}
	if err := runs.FromArchive(y.dir, "old-1", "2001-01-01T00:00:00.000000Z"); err != nil || there() {
		t.Errorf("another run's folder was restored: %v", err)
	}
	for range 2 {
		if err := runs.FromArchive(y.dir, "old-1", state.UpdatedAt); err != nil || !there() {
			t.Errorf("the folder was not restored: %v", err)
		}
	}
}
