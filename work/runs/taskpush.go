package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// PushTask pushes what a person was shown of a task last, or else what its folder has, to a branch of a remote. The error is a
// *table.Refusal if a person has to do something first, or the remote says no.
func (c *Controller) PushTask(ctx context.Context, id string, to task.Publishing) (done view.TaskPushed, err error) {
	is, err := c.landingOf(ctx, id, "push")
	if err != nil {
		return done, err
	}
	to.Governing = cmp.Or(to.Governing, is.yes)
	p, err := is.Publish(ctx, to)
	blocked, fault := (*task.Blocked)(nil), (*forge.Fault)(nil)
	if errors.As(err, &blocked) || errors.As(err, &fault) {
		return done, &table.Refusal{Subject: "task " + id, Event: "push", State: is.status, Row: "W9", Reason: err.Error()}
	}
	if err != nil {
		return done, fmt.Errorf("push task %s: %w", id, err)
	}
	return view.TaskPushed{ID: id, Remote: p.Remote, Branch: p.Branch, Commit: p.Commit, Shown: p.Shown, There: p.There}, nil
}
