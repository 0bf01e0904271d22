package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// freeName frees the name of a run whose folder a person has deleted. A run that is over is archived first, as when its
// file is written next. The new run continues after its last lease, so that no session, report or output of it counts.
func (c *Controller) freeName(ctx context.Context, by change.Actor, req *runRequest) error {
	dir, archived := "", false
	if err := c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[req.id]; r != nil && atEnd(r) {
			dir = runDir(r)
		}
		_, archived = t.Archive[req.id]
	}); err != nil {
		return err
	}
	if dir != "" {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return err // it exists
		}
		if _, err := c.SubmitRun(ctx, by, req.id, team.RunArchived{}); loop.IsAnswer(err) {
			return nil // something of it still runs, so the start is refused
		} else if err != nil {
			return err
		}
		archived = true
	}
	if !archived {
		return nil
	}
	was, _, _, err := c.archivedRun(ctx, req.id)
	if err != nil {
		return err
	}
	for _, folder := range []string{runDir(was), filepath.Join(was.RepoDir, archiveDir(), req.id)} {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
			return err // it exists
		}
	}
	req.freed, req.leaseFloor = true, was.LastLease()
	return nil
}

// reserve gives the name of a run to one order until release is called. Of several orders for one name
// the others are refused before they make anything: what they made and removed would be another run's.
func (c *Controller) reserve(ctx context.Context, id string) (release func(), err error) {
	taken := false
	err = c.loop.View(ctx, func(t *team.Team) {
		taken = t.Runs[id] != nil || c.starting[id]
		if !taken {
			c.starting[id] = true
		}
	})
	switch {
	case err != nil:
		return nil, err
	case taken:
		return nil, refuseTaken(id)
	}
	return func() {
		_ = c.loop.View(context.WithoutCancel(ctx), func(*team.Team) { delete(c.starting, id) }) // it fails only if the loop has stopped
	}, nil
}
