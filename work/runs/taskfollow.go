package runs

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
)

// followEvery is how long a commit of the person's may be unknown in a task's folder: one look reads some files, and git starts only if
// a ref has changed.
const followEvery = time.Minute

// follower is what brings the newest commits to open tasks. Only the loop's goroutine reads or writes it, except warned.
type follower struct {
	open  map[string]bool // tasks that are not over
	next  time.Time       // when their repositories are looked at; zero: no task is open
	fetch time.Time       // the next fetch is not before
	busy  bool

	warned string // the error that was logged last; only the look that runs has it
}

// watchRepository begins or ends following the repository of a task.
func (c *Controller) watchRepository(id string, r *workflow.Run) {
	f := &c.follow
	if howOf(c.loop.State(), id).Task == nil || runIsDone(r) {
		delete(f.open, id)
	} else {
		f.open[id] = true
	}
	switch {
	case len(f.open) == 0:
		f.next = time.Time{}
	case f.next.IsZero():
		f.next = c.loop.Now().Add(followEvery)
	}
}

// followDue looks for new commits in the repositories of open tasks, and fetches their remote if tasks.fetch says so.
func (c *Controller) followDue(now time.Time) {
	f, every := &c.follow, c.opts.Config.Tasks.Fetch
	if f.next.IsZero() || now.Before(f.next) {
		return
	}
	if f.next = now.Add(followEvery); len(f.open) == 0 { // the last one was archived
		f.next = time.Time{}
	}
	if f.busy || len(f.open) == 0 {
		return
	}
	var files []string
	for id := range f.open {
		if r := c.loop.State().Runs[id]; r != nil {
			files = append(files, filepath.Join(runDir(r), task.FileName))
		}
	}
	fetch := every > 0 && !c.opts.RunsOnly && c.fetchStopped.Load() == nil && !now.Before(f.fetch)
	if fetch {
		f.fetch = now.Add(every)
	}
	f.busy = true
	c.loop.Go(func(ctx context.Context) {
		c.followRepositories(ctx, files, fetch)
		_ = c.loop.View(ctx, func(*team.Team) { f.busy = false }) // it fails only if the loop has stopped
	})
}

// followRepositories looks at each repository once, and fetches each remote once.
func (c *Controller) followRepositories(ctx context.Context, files []string, fetch bool) {
	type place struct{ repo, prefix string }
	type remote struct{ git, name string }
	followed, fetched := map[place]bool{}, map[remote]bool{}
	for _, file := range files {
		t, err := task.Load(file)
		if err != nil { // its run's folder was deleted: it can only be dropped
			continue
		}
		if _, err := os.Lstat(t.Tree); err != nil {
			continue
		}
		if at := (place{t.Repo, t.Prefix}); !followed[at] {
			followed[at] = true
			if err := t.Follow(ctx); err != nil && ctx.Err() == nil && err.Error() != c.follow.warned {
				c.follow.warned = err.Error()
				c.log.Warn("the newest commits of the repository could not be brought to the tasks; Fairlead tries again each minute",
					"task", t.ID, "error", err)
			}
		}
		if of := (remote{t.Git, t.Remote}); fetch && !fetched[of] {
			fetched[of] = true
			if _, err := t.Sync(ctx); err != nil && ctx.Err() == nil {
				c.fetchStopped.Store(&FetchStop{err.Error(), c.loop.Now()})
				c.log.Warn("the remote could not be fetched; Fairlead does not try again before `fairlead reload`, or a `fairlead task sync` that works",
					"task", t.ID, "error", err)
				fetch = false
			}
		}
	}
}

// FetchStop is why tasks.fetch fetches no more, and since when.
type FetchStop struct {
	Why string
	At  time.Time
}

// FetchStopped is nil while tasks.fetch goes on, and while no task is open. It runs in the loop.
func (c *Controller) FetchStopped() *FetchStop {
	if len(c.follow.open) == 0 {
		return nil
	}
	return c.fetchStopped.Load()
}

// Fetched notes that a person's fetch has worked: tasks.fetch goes on.
func (c *Controller) Fetched() { c.fetchStopped.Store(nil) }
