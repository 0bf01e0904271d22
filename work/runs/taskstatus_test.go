package runs

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/task"
)

// A task that waits to land names the tasks that land on its branch before it, in their order, and no others.
func TestLandsAfter(t *testing.T) {
	t.Parallel()
	state := &team.Team{Notes: map[string]team.RunMeta{}}
	for id, branch := range map[string]string{"T1": "main", "T2": "next", "T3": "main", "T4": "main", "T5": "next", "T6": ""} {
		state.Notes[id] = team.RunMeta{Settings: team.RunSettings{OneAtATime: map[string]string{task.StepLand: branch}}}
	}
	state.Pool.Sessions = map[string]*team.Session{
		"T1/land":  {For: team.ForStep("T1", task.StepLand)},
		"T2/land":  {For: team.ForStep("T2", task.StepLand)},
		"T5/check": {For: team.ForStep("T5", task.StepCheck)},
	}
	for _, id := range []string{"T4", "T6", "T5", "T3"} {
		state.Pool.Queue = append(state.Pool.Queue, team.Request{For: team.ForStep(id, task.StepLand)})
	}
	for id, want := range map[string]string{
		"T1": "", "T4": "it lands on main after T1", "T3": "it lands on main after T1, T4", "T5": "it lands on next after T2", "T6": "",
	} {
		if got := landsAfter(state, id); got != want {
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
