package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/git/worktree/store"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

const (
	snapshotEvery = 5 * time.Minute // so a lost disk or a deleted folder costs a task at most this much work
	sizeFor       = 5 * time.Minute // how long the measured size of a folder counts
	foldersShown  = 5
)

// watchFolder schedules snapshots of a task's folder while its agent works.
func (c *Controller) watchFolder(id string, r *workflow.Run) {
	works := false
	if howOf(c.loop.State(), id).Task != nil {
		_, p, known := r.Find(task.StepWork)
		works = known && p.State == workflow.Running
	}
	switch _, scheduled := c.snapshots[id]; {
	case works && !scheduled:
		c.snapshots[id] = c.loop.Now().Add(snapshotEvery)
	case !works:
		delete(c.snapshots, id)
	}
}

// takeSnapshots keeps the content of the tasks' folders whose time has come.
func (c *Controller) takeSnapshots(now time.Time) {
	for id, at := range c.snapshots {
		if now.Before(at) {
			continue
		}
		r := c.loop.State().Runs[id]
		if r == nil {
			delete(c.snapshots, id)
			continue
		}
		c.snapshots[id] = now.Add(snapshotEvery)
		file := filepath.Join(runDir(r), task.FileName)
		c.loop.Go(func(ctx context.Context) {
			t, err := task.Load(file)
			if err == nil {
				_, err = t.Snapshot(ctx)
			}
			if err != nil && ctx.Err() == nil {
				c.log.Warn("the folder of a task could not be kept; the next try is in a few minutes", "task", id, "error", err)
			}
		})
	}
}

// beginRound makes the folder of a task ready for a round of its agent, and brings the newest commits of the base branch there. If these
// commits cannot be brought, the round begins without them.
func (c *Controller) beginRound(ctx context.Context, f StepFacts) error {
	t, err := f.task()
	if err == nil {
		if err := t.Settle(ctx); err != nil {
			return err
		}
		err = t.Refresh(ctx)
	}
	if err != nil {
		c.log.Warn("the newest commits of the base branch could not be brought to a task", "task", f.Cmd.RunID, "error", err)
	}
	return nil
}

// folderSizes remembers how large folders are, because measuring a folder reads the size of each of its files.
type folderSizes struct {
	lock  sync.Mutex
	known map[string]folderSize
}

type folderSize struct {
	bytes int64
	at    time.Time
}

func (s *folderSizes) of(ctx context.Context, dir string) (int64, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if was, ok := s.known[dir]; ok && time.Since(was.at) < sizeFor {
		return was.bytes, nil
	}
	bytes, err := file.DiskUse(ctx, dir)
	if err == nil {
		if s.known == nil {
			s.known = map[string]folderSize{}
		}
		s.known[dir] = folderSize{bytes, time.Now()}
	}
	return bytes, err
}

// forget forgets folders that are gone.
func (s *folderSizes) forget() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for dir := range s.known {
		if _, err := os.Lstat(dir); err != nil {
			delete(s.known, dir)
		}
	}
}

// diskFull says what uses the disk space of tasks (tasks.disk), if it is used up; empty: there is room.
func (c *Controller) diskFull(ctx context.Context, workspace string) (string, error) {
	most := c.opts.Config.Tasks.DiskBytes
	if most == 0 {
		return "", nil
	}
	root := filepath.Join(workspace, ".agents", worktree.WorktreesDir)
	caches := filepath.Join(workspace, ".fairlead", places.CachesName)
	c.sizes.forget()
	type use struct {
		name  string
		bytes int64
	}
	var all []use
	sum := int64(0)
	for dir, prefix := range map[string]string{root: "", caches: "caches of "} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			bytes, err := c.sizes.of(ctx, filepath.Join(dir, e.Name()))
			if err != nil {
				return "", fmt.Errorf("measure the folders of tasks: %w", err)
			}
			all = append(all, use{prefix + e.Name(), bytes})
			sum += bytes
		}
	}
	bytes, err := c.sizes.of(ctx, store.Of(workspace).Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("measure the copy of the repository: %w", err)
	}
	all = append(all, use{"the copy of the repository that they share", bytes})
	sum += bytes
	if sum < most {
		return "", nil
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Compare(b.bytes, a.bytes) })
	var shown []string
	for _, one := range all[:min(len(all), foldersShown)] {
		shown = append(shown, fmt.Sprintf("%s %s", one.name, file.Size(one.bytes)))
	}
	if more := len(all) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("the folders of tasks take %s of %s (tasks.disk in fairlead.yaml): %s in %s; end tasks that you do not need with `fairlead drop TASK`, which keeps their content, delete caches in %s, or give them more",
		file.Size(sum), file.Size(most), strings.Join(shown, ", "), root, caches), nil
}
