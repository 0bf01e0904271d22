package tasks

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
)

const (
	overlapTasksMax = 20              // open tasks whose files are compared: git starts once for each that has changed
	overlapFilesMax = 5               // files that are named of two tasks
	overlapEvery    = 5 * time.Second // git looks for new snapshots at most so often; a snapshot is made each five minutes
)

// touched has the files that open tasks change, as they were read last.
type touched struct {
	sync.Mutex
	at    time.Time
	files map[string]filesAt // by task
	asked string             // the tasks that it is about, and when each had changed
}

type filesAt struct {
	at    string // what they depend on: see task.TouchedAt
	files []string
}

// Overlaps are, by task, the other open tasks that change the same files and land on the same branch. It compares what was kept of the
// folders, and makes no snapshot. A task whose files cannot be read has none.
func (c *Controller) Overlaps(ctx context.Context, all []view.RunView) map[string][]view.TaskOverlap {
	var open []*view.TaskView
	for i := range all {
		if t := all[i].Task; t != nil && isOpen(t.Status) && len(open) < overlapTasksMax {
			open = append(open, t)
		}
	}
	if len(open) < 2 {
		return nil
	}
	return overlaps(open, c.touchedBy(ctx, open))
}

func isOpen(status string) bool {
	return status != view.TaskDone && status != view.TaskDropped && status != view.TaskBlocked
}

// touchedBy reads the files that tasks change, unless they were read a moment ago.
func (c *Controller) touchedBy(ctx context.Context, open []*view.TaskView) map[string][]string {
	var ids, states []string
	for _, one := range open {
		ids = append(ids, one.ID)
		states = append(states, one.ID+" "+one.UpdatedAt.String()) // it is shown after a new snapshot
	}
	slices.Sort(states)
	asked := strings.Join(states, " ")
	known := &c.touched
	known.Lock()
	defer known.Unlock()
	if known.asked != asked || time.Since(known.at) > overlapEvery {
		if files, err := c.readTouched(ctx, ids, known.files); err == nil {
			known.files, known.asked, known.at = files, asked, time.Now()
		}
	}
	by := map[string][]string{}
	for id, one := range known.files {
		by[id] = one.files
	}
	return by
}

func (c *Controller) readTouched(ctx context.Context, ids []string, before map[string]filesAt) (map[string]filesAt, error) {
	release, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var dirs []string
	if err := c.loop.View(ctx, func(now *team.Team) {
		for _, id := range ids {
			if _, t := runs.JournaledTask(now, id); t.Run != "" {
				dirs = append(dirs, t.Run)
			}
		}
	}); err != nil {
		return nil, err
	}
	var all []task.Task
	for _, dir := range dirs {
		if t, err := task.Load(filepath.Join(dir, task.FileName)); err == nil { // without its folder it can only be dropped
			all = append(all, t)
		}
	}
	at, err := task.TouchedAt(ctx, all)
	if err != nil {
		return nil, err
	}
	files := map[string]filesAt{}
	for _, t := range all {
		now := at[t.ID]
		if was := before[t.ID]; was.at == now || now == "" {
			files[t.ID] = filesAt{now, was.files}
			continue
		}
		names, err := t.Touched(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, err
		} else if err == nil {
			files[t.ID] = filesAt{now, names}
		}
	}
	return files, nil
}

// overlaps compares the files of each two tasks.
func overlaps(open []*view.TaskView, files map[string][]string) map[string][]view.TaskOverlap {
	found := map[string][]view.TaskOverlap{}
	for _, one := range open {
		own := map[string]bool{}
		for _, name := range files[one.ID] {
			own[name] = true
		}
		for _, other := range open {
			if other == one || one.Base != other.Base {
				continue
			}
			shared := view.TaskOverlap{ID: other.ID, Status: other.Status}
			for _, name := range files[other.ID] {
				switch {
				case !own[name]:
				case len(shared.Files) == overlapFilesMax:
					shared.More++
				default:
					shared.Files = append(shared.Files, strings.ToValidUTF8(name, "\uFFFD"))
				}
			}
			if len(shared.Files) > 0 {
				found[one.ID] = append(found[one.ID], shared)
			}
		}
	}
	return found
}
