package runs

import (
	"context"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

const diffBytesMax = 1 << 20 // of a task's difference for the page

// TaskDiff returns what a task has changed, as it was last shown to a person. The error is *team.Unknown if the run
// does not exist or is not a task.
func (c *Controller) TaskDiff(ctx context.Context, id string) (view.TaskDiff, error) {
	var dir string
	if err := c.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil && howOf(t, id).Task != nil {
			dir = runDir(r)
		}
	}); err != nil {
		return view.TaskDiff{}, err
	}
	if dir == "" {
		return view.TaskDiff{}, &team.Unknown{What: "task", Name: id}
	}
	t, err := task.Load(filepath.Join(dir, task.FileName))
	if err != nil {
		return view.TaskDiff{}, err
	}
	shown := view.TaskDiff{Base: t.Base}
	shown.Text, shown.Cut, err = t.Difference(ctx, diffBytesMax)
	return shown, err
}
