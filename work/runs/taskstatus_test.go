package runs

import (
	"testing"
	"time"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// A task that waits to land names the tasks that land on its branch before it, in their order, and no others.
func TestLandsAfter(t *testing.T) {
	t.Parallel()
	now := &team.Team{Notes: map[string]team.RunMeta{}, Runs: map[string]*workflow.Run{}, Tasks: map[string]*state.Task{}}
	for id, of := range map[string]struct {
		base   string
		status state.Status
		at     int64
	}{
		"T1": {"main", state.Landing, 1}, "T2": {"next", state.Landing, 2}, "T3": {"main", state.Landing, 4}, "T4": {"main", state.Landing, 3},
		"T5": {"next", state.Landing, 5}, "T6": {"main", state.NeedsYou, 0},
	} {
		now.Notes[id] = team.RunMeta{Settings: team.RunSettings{How: `{"task":{"base":"` + of.base + `"}}`}}
		now.Runs[id] = &workflow.Run{}
		now.Tasks[id] = &state.Task{Value: state.Value{Status: of.status, Since: time.Unix(of.at, 0)}}
	}
	for id, want := range map[string]string{
		"T1": "", "T4": "it lands on main after T1", "T3": "it lands on main after T1, T4", "T5": "it lands on next after T2",
	} {
		if got := landsAfter(now, id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// TestAttachedHere has the prompt of a task that began on another machine.
func TestAttachedHere(t *testing.T) {
	t.Parallel()
	got := attachedHere("/b/.agents/runs/T1",
		"Do it.\n\nFiles that belong to the task:\n- /a/.agents/runs/T1/attachments/x y.txt\n- /a/.agents/runs/T2/attachments/z\n- /b/.agents/runs/T1/attachments/w\n")
	if want := "Do it.\n\nFiles that belong to the task:\n- /b/.agents/runs/T1/attachments/x y.txt\n- /a/.agents/runs/T2/attachments/z\n- /b/.agents/runs/T1/attachments/w\n"; got != want {
		t.Error(got)
	}
}
