package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestNameOfADeletedRun checks that the name of a run is free once its folder is deleted (seed 004: "delete the entire run
// directory to start fresh"), and only then. The journal keeps the old run, and nothing of it counts for the new one.
func TestNameOfADeletedRun(t *testing.T) {
	t.Parallel()
	y := archive(t)
	folder := func(id string) string { return filepath.Join(y.dir, ".agents", "runs", id) }
	archived := func(id string) string { return filepath.Join(y.dir, ".agents", "archive", "runs", id) }
	again := func(id string) error {
		one := 1
		_, err := y.Runs.StartRun(t.Context(), human, view.RunFlags{Workflow: filepath.Join(y.dir, id+".yaml"), RunID: id, MaxAttempts: &one})
		return err
	}
	refused := func(id, words string) {
		t.Helper()
		var no *table.Refusal
		if err := again(id); !errors.As(err, &no) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", id, err)
		}
	}
	refused("old-1", "there is a run of that name already")
	refused("bad", "there is a run of that name already")
	y.clear(folder("on"))
	refused("on", "there is a run of that name already") // it is not over

	for id, status := range map[string]string{"old-1": "completed", "bad": "failed"} {
		before, err := y.Runs.RunByID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		y.clear(folder(id))
		if err := again(id); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		shown := y.until(id, "it is over again", func(v view.RunView) bool { return v.Status == status && !v.FileBehind })
		if shown.Steps[0].LastSession == before.Steps[0].LastSession || !shown.CreatedAt.After(before.CreatedAt) {
			t.Errorf("%s: its session is %s, as that of the deleted run", id, shown.Steps[0].LastSession)
		}
		if state, err := runstate.ReadRunState(filepath.Join(folder(id), runstate.RunStateName)); err != nil ||
			state.CreatedAt != runstate.FormatRunTime(shown.CreatedAt) || state.Steps[0].Attempts != 1 {
			t.Errorf("%s: %+v, %v", id, state, err)
		}
	}

	if did := y.prune(0, 0, false, false); !strings.Contains(did, "old-2") {
		t.Fatalf("archived are %s", did)
	}
	refused("old-2", "`fairlead run resume old-2` brings it back, and its name is free once its folder is deleted")
	y.clear(archived("old-2"))
	if err := again("old-2"); err != nil {
		t.Fatal(err)
	}
	y.until("old-2", "it has completed", func(v view.RunView) bool { return v.Status == "completed" })
	left := 0
	for ch, err := range y.Loop.Journal().Read(t.Context(), journal.Query{Entity: "run/old-2"}) {
		if err != nil {
			t.Fatal(err)
		}
		if ch.Trigger == "run_archived" {
			left++
		}
	}
	if left != 1 {
		t.Errorf("the journal has %d ends of the old run", left)
	}
	if err := y.Loop.View(t.Context(), func(now *team.Team) {
		if _, gone := now.Archive["old-2"]; gone || now.Runs["old-2"] == nil {
			t.Error("it is archived")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(archived("old-2")); err == nil {
		t.Error("there is a folder in the archive")
	}
}
