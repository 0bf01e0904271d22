package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

const (
	forgetEvery  = time.Minute     // how long the copies on other hosts stay after the checkout here
	removeWithin = 2 * time.Minute // a host may have to delete many files
)

// forgetRuns removes what is left of runs that are over, until ctx ends: their checkouts and files on other hosts when the
// checkout here is gone, and the refs here when the run is archived. What fails is tried again.
func (c *Controller) forgetRuns(ctx context.Context) {
	said := map[string]string{} // by run: what failed last, so that it is logged once
	for tick := time.NewTicker(forgetEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		files, err := os.ReadDir(c.copies.folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("it cannot be read which hosts have files of runs", "error", err)
		}
		fails := map[string]string{}
		for _, file := range files {
			run, is := strings.CutSuffix(file.Name(), ".json")
			if !is {
				continue
			}
			if err := c.forget(ctx, run); err != nil && ctx.Err() == nil {
				if fails[run] = err.Error(); said[run] != err.Error() {
					c.log.Warn("the files of a run that is over cannot be removed; it is tried again", "run", run, "error", err)
				}
			}
		}
		said = fails
	}
}

// over says what may be removed of a run: nothing, its copies on other hosts, or the refs here, too.
func (c *Controller) over(ctx context.Context, run string) (copies, refs bool, err error) {
	checkout, works := "", false
	if err := c.loop.View(ctx, func(t *team.Team) {
		checkout, _ = c.carried(t, run)
		refs = t.Runs[run] == nil
		works = t.Notes[run].Away != "" // its checkout was never here, or is not the newest one
		for id := range t.Hosts.Leases {
			if s := openSession(t, id); s != nil {
				of, _, _ := team.StepOf(s.For)
				works = works || of == run
			}
		}
	}); err != nil || works {
		return false, false, err
	}
	if checkout == "" {
		return true, refs, nil
	}
	if _, err = os.Lstat(checkout); errors.Is(err, fs.ErrNotExist) {
		return true, refs, nil
	}
	return false, false, err
}

// forget removes what is left of a run, as far as it is over. Hosts that are away are asked when they are back.
func (c *Controller) forget(ctx context.Context, run string) error {
	if copies, _, err := c.over(ctx, run); err != nil || !copies {
		return err
	}
	unlock, err := c.copies.lock(ctx, run)
	if err != nil {
		return err
	}
	defer unlock()
	is := c.copies.of(run)
	var free []func()
	defer func() {
		for _, unlock := range free {
			unlock()
		}
	}()
	for _, name := range append(slices.Collect(maps.Keys(is.Before)), is.Host) {
		unlock, busy := c.copies.tryLock(run + "@" + name)
		if busy != nil {
			return nil // a copy is on its way there, perhaps of the resumed run
		}
		free = append(free, unlock)
	}
	copies, refs, err := c.over(ctx, run) // it may have been resumed meanwhile
	if err != nil || !copies {
		return err
	}
	changed := is.Host != ""
	if changed {
		if is.Before == nil {
			is.Before = map[string]transfer.Sent{}
		}
		is.Before[is.Host] = is.Sent
	}
	is = tree{Before: is.Before, Newer: is.Newer}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(is.Before)) {
		gone, err := c.removeOn(ctx, name, run, is.Before[name])
		if gone {
			changed = true
			delete(is.Before, name)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("remove the files of run %s from host %s: %w", run, name, err))
		}
	}
	if len(is.Before) > 0 || !refs {
		if changed {
			faults = append(faults, c.copies.set(run, is))
		}
		return errors.Join(faults...)
	}
	if err := c.forgetLate(ctx, run); err != nil {
		return errors.Join(append(faults, err)...)
	}
	for _, kind := range []string{"carry", "steps"} {
		if err := transfer.Forget(ctx, worktree.Git{Dir: c.places.Root}, "refs/fairlead/"+kind+"/"+run+"/"); err != nil {
			return errors.Join(append(faults, err)...)
		}
	}
	return errors.Join(append(faults, os.Remove(c.copies.file(run)))...)
}

// removeOn removes the files of a run from a host. gone is also true if the host is no member of the team any longer.
func (c *Controller) removeOn(ctx context.Context, name, run string, s transfer.Sent) (gone bool, err error) {
	h, err := c.known(ctx, name)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil || !belongs(&h) {
		return true, nil //nolint:nilerr // the journal does not know the host
	}
	if h.State != host.Joined && h.State != host.Draining || c.is.Connected(name) == "" || misses(&h, run) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	err = c.trees(name).Remove(ctx, s, h.Engine != "") // it may lead one day
	return err == nil, err
}
