package app

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestWorkingHasTheLastLine checks that running sessions and steps without an agent are listed with
// the last line of their output.
func TestWorkingHasTheLastLine(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml",
		"name: long\nsteps:\n  - id: build\n    command: [sh, -c, 'head -c 100000 /dev/zero | tr \"\\0\" x; echo; echo compiling main.go; echo; until [ -e go ]; do sleep 0.01; done']\n")
	y.start(view.RunFlags{Workflow: flow, RunID: "r1"})
	work := wait.Value(t, "its last line is shown", func() ([]view.WorkView, error) { return y.Status.Working(t.Context()) },
		func(all []view.WorkView) bool {
			return len(all) == 1 && strings.Contains(all[0].Last, "compiling")
		})[0]
	if work.Run != "r1" || work.Step != "build" || work.Workflow != "long" || work.Status != view.StatusRunning || work.Since == nil ||
		work.LastAt == nil || work.Last != "compiling main.go" {
		t.Errorf("%+v", work)
	}
	y.file("go", "")
	y.until("r1", "it ends", over)
	wait.Value(t, "nothing runs", func() ([]view.WorkView, error) { return y.Status.Working(t.Context()) },
		func(all []view.WorkView) bool { return len(all) == 0 })
}
