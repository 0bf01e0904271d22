package hosts

import (
	"context"

	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/worktree"
	"github.com/fairlead-dev/fairlead/worktree/carry"
)

// takeOver uses what the previous leader has sent to this machine: the branches, and the runs whose newest files are here.
func takeOver(ctx context.Context, c *HostController) error {
	type waits struct {
		run, on string
		n       uint64
		over    bool
	}
	var all []waits
	led, now := team.Led{}, uint64(0)
	if err := c.View(ctx, func(t *team.Team) {
		led, now = t.Led, t.Epoch
		for _, id := range t.RunIDs() {
			note := t.Notes[id]
			switch over := t.Runs[id].Status() == workflow.IsCompleted; {
			case note.Away != "":
				all = append(all, waits{id, note.Away, note.Changes, false})
			case over && led.Since == now && led.Before != "":
				all = append(all, waits{id, led.Before, note.Changes, true})
			}
		}
	}); err != nil {
		return err
	}
	repo := worktree.Git{Dir: c.places.Root}
	for _, is := range all {
		if !is.over {
			if err := c.copies.forgetPlace(is.run); err != nil {
				c.log.Warn("could not record that other hosts may have newer files of a run", "run", is.run, "error", err)
			}
		}
		mark, err := carry.Arrived(ctx, repo, is.run)
		switch {
		case err != nil:
			c.log.Warn("could not read whether the newest files of a run are here; the run waits", "run", is.run, "error", err)
		case is.over && (mark.N == 0 || mark.N >= is.n): // nothing of it is here, or all
		case mark.Run != is.run || mark.N < is.n:
			if err := c.copies.newer(is.run, is.on); err != nil {
				c.log.Warn("could not record that the previous leader has newer files of a run", "run", is.run, "error", err)
			}
			if is.over {
				continue
			}
			c.log.Warn("the newest files of a run had not arrived here when the previous leader was lost; the run waits", "run", is.run, "changes", is.n, "arrived", mark.N)
		default:
			if err := arrived(ctx, c, is.run); err != nil {
				return err
			}
		}
	}
	if led.Before != "" {
		if err := forward(ctx, c, led.Before); err != nil {
			c.log.Warn("the branches of the previous leader could not be applied here", "host", led.Before, "error", err)
		}
	}
	return nil
}

// forward moves the branches here to the commits of the previous leader's branches.
func forward(ctx context.Context, c *HostController, from string) error {
	left, err := carry.Forward(ctx, worktree.Git{Dir: c.places.Root}, from)
	for _, what := range left {
		c.log.Warn("a branch differs from the one on the previous leader", "why", what)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = left
	return err
}
