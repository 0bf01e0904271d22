package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// archive returns a world with runs of every kind: old-1 and old-2 are completed, bad has failed,
// on runs. Each is newer than the one before.
func archive(t *testing.T) *runWorld {
	t.Helper()
	y := newRunWorld(t)
	for _, run := range []struct{ id, script, status string }{
		{"old-1", report(``), "completed"}, {"old-2", report(``), "completed"}, {"bad", "exit 1", "failed"}, {"on", "sleep 300", "running"},
	} {
		flow := y.file(run.id+".yaml", fmt.Sprintf("name: %s\nsteps:\n  - id: only\n    command: %s\n", run.id, quoted(run.script)))
		one := 1
		y.start(view.RunFlags{Workflow: flow, RunID: run.id, MaxAttempts: &one})
		y.until(run.id, "it is "+run.status, func(v view.RunView) bool {
			return v.Status == run.status && (run.status != "running" || v.Counts.Running == 1) && !v.FileBehind
		})
	}
	return y
}

// prune returns the result for each run, and the present location of each run.
func (y *runWorld) prune(keep int, olderThan time.Duration, all, dry bool) string {
	y.t.Helper()
	said, err := y.Runs.PruneRuns(y.t.Context(), human, keep, olderThan, all, dry)
	if err != nil {
		y.t.Fatal(err)
	}
	var text []string
	for _, p := range said {
		switch {
		case p.Did == runs.RunWasArchived:
			text = append(text, p.ID)
			if _, err := os.Lstat(filepath.Join(p.To, runstate.RunStateName)); (err == nil) == dry {
				y.t.Errorf("the file of %s in %q: %v", p.ID, p.To, err)
			}
		case p.Why == "":
			y.t.Errorf("%s is kept without a reason", p.ID)
		}
	}
	return strings.Join(text, " ")
}

func TestPruneRuns(t *testing.T) {
	t.Parallel()
	y := archive(t)
	for _, c := range []struct {
		keep     int
		older    time.Duration
		all, dry bool
		want     string
	}{
		{0, 0, false, true, "old-2 old-1"},
		{0, 0, true, true, "bad old-2 old-1"},
		{3, 0, false, true, "old-1"},
		{4, 0, true, false, ""},
		{0, time.Hour, true, false, ""},
		{0, 0, false, false, "old-2 old-1"},
		{0, 0, false, false, ""}, // a second call has no effect
		{0, 0, true, false, "bad"},
		{0, 0, true, false, ""}, // the running one stays
	} {
		if got := y.prune(c.keep, c.older, c.all, c.dry); got != c.want {
			t.Errorf("%+v archives %q", c, got)
		}
	}
	views, err := y.Runs.Runs(t.Context())
	if err != nil || len(views) != 1 || views[0].ID != "on" {
		t.Errorf("left are %+v, %v", views, err)
	}
	log, err := os.ReadFile(filepath.Join(y.dir, ".agents/archive/runs/old-1/reports/old-1__only.json"))
	if err != nil || !strings.Contains(string(log), "COMPLETED") {
		t.Errorf("its report: %s, %v", log, err)
	}
	state, err := runstate.ReadRunState(filepath.Join(y.dir, ".agents/archive/runs/bad", runstate.RunStateName))
	if err != nil || state.Steps[0].Status != "FAILED" {
		t.Errorf("its state: %+v, %v", state, err)
	}
	var unknown *team.Unknown
	if _, err := y.Runs.RunByID(t.Context(), "old-1"); !errors.As(err, &unknown) {
		t.Errorf("it is still known: %v", err)
	}
	var no *table.Refusal
	if _, err := y.Runs.PruneRuns(t.Context(), human, -1, 0, false, false); !errors.As(err, &no) {
		t.Errorf("a negative limit: %v", err)
	}
	if err := os.Rename(filepath.Join(y.dir, ".agents/archive/runs/old-1"), filepath.Join(y.dir, ".agents/runs/old-1")); err != nil {
		t.Error(err)
	}
	if got := y.prune(0, 0, false, false); got != "old-1" { // the journal says that it is archived
		t.Errorf("a remaining folder is not archived, but %q", got)
	}
}

// TestPruneRunsAfterACrash checks a crash between the append and the move of the folder, an
// occupied name, a folder that another program has created since, and a symbolic link.
func TestPruneRunsAfterACrash(t *testing.T) {
	t.Parallel()
	y := archive(t)
	for _, id := range []string{"old-1", "old-2"} {
		if _, err := y.Runs.SubmitRun(t.Context(), human, id, team.RunArchived{}); err != nil {
			t.Fatal(err)
		}
	}
	y.file(".agents/archive/runs/old-1/somebody", "else's")
	path := filepath.Join(y.dir, ".agents/runs/old-2", runstate.RunStateName)
	state, err := runstate.ReadRunState(path)
	if err != nil {
		t.Fatal(err)
	}
	state.UpdatedAt = runstate.FormatRunTime(time.Now().Add(time.Hour))
	y.file(".agents/runs/old-2/"+runstate.RunStateName, string(state.Render()))
	if got := y.prune(0, 0, false, false); got != "old-1" {
		t.Errorf("archived %q", got)
	}
	if _, err := os.Lstat(filepath.Join(y.dir, ".agents/archive/runs/old-1.2", runstate.RunStateName)); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another program's run of that name was archived: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(y.dir, ".agents/archive")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(y.dir, ".agents/archive")); err != nil {
		t.Fatal(err)
	}
	if to, err := runs.ToArchive(y.dir, "bad", false); err == nil {
		t.Errorf("a link moved the folder out of the repository: %s", to)
	}
}
