package membership

import (
	"context"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/read/view"
)

// takeOver uses what the previous leader has sent to this machine: the branches, and the runs whose newest files are here.
func (c *Controller) takeOver(ctx context.Context) error {
	type waits struct {
		run, on string
		n       uint64
		over    bool
	}
	var all []waits
	led, now := team.Led{}, uint64(0)
	var leaders []string // whose branches may be more than these here
	if err := c.loop.View(ctx, func(t *team.Team) {
		led, now = t.Led, t.Epoch
		for _, name := range t.Hosts.Names() {
			if t.Hosts.Hosts[name].Branches {
				leaders = append(leaders, name)
			}
		}
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
		mark, err := transfer.Arrived(ctx, repo, is.run)
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
			c.log.Warn("the newest files of a run had not arrived here when the previous leader was lost; the run waits", "run", is.run,
				"changes", is.n, "arrived", mark.N)
		default:
			if err := c.arrived(ctx, is.run); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(leaders, func(a, b string) int { // the last one has the newest
		switch {
		case a == led.Before:
			return -1
		case b == led.Before:
			return 1
		}
		return 0
	})
	for _, name := range leaders {
		if _, err := c.forward(ctx, name, true); err != nil {
			c.log.Warn("the branches of a previous leader could not be applied here", "host", name, "error", err)
		}
	}
	return nil
}

// forward moves the branches here to the commits of a previous leader's branches that have arrived. It returns how many are left there.
// Without all it looks only at those that were left the last time.
func (c *Controller) forward(ctx context.Context, from string, all bool) (int, error) {
	unlock, err := c.copies.lock(ctx, "_branches") // git refuses two changes of a branch, or of the folder, at the same time
	if err != nil {
		return 0, err
	}
	defer unlock()
	var only []string
	if err := c.loop.View(ctx, func(t *team.Team) {
		c.mu.Lock()
		for _, is := range c.left[from] {
			only = append(only, is.Branch)
		}
		c.mu.Unlock()
	}); err != nil {
		return 0, err
	}
	if all {
		only = nil
	} else if len(only) == 0 {
		return 0, nil
	}
	left, err := transfer.Forward(ctx, worktree.Git{Dir: c.places.Root}, from, only...)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was, now, said := c.left[from], []view.Left(nil), 0
	for _, is := range left {
		one := view.Left{Host: from, Branch: is.Branch, Why: is.Why, Since: time.Now()}
		if at := slices.IndexFunc(was, func(l view.Left) bool { return l.Branch == one.Branch }); at >= 0 {
			one.Since = was[at].Since
		} else if said++; said <= view.LeftMax {
			c.log.Warn("a branch lacks commits of a previous leader", "why", one.Why)
		}
		now = append(now, one)
	}
	if said > view.LeftMax {
		c.log.Warn("more branches lack commits of a previous leader", "host", from, "more", said-view.LeftMax)
	}
	c.left[from] = now
	return len(now), nil
}
