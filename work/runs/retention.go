package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// archiveTriesMax bounds the archived folders with the same name. Other programs may reuse a name,
// and a person should learn of thousands of repetitions.
const archiveTriesMax = 1000

// The results of pruning a run.
const (
	RunWasArchived = "archived"
	RunWasKept     = "kept"
)

// PrunedRun is a run with what prune did to it, and why.
type PrunedRun struct {
	ID          string    `json:"run_id"`
	Workflow    string    `json:"workflow_name,omitempty"`
	Status      string    `json:"status" doc:"completed, failed, cancelled, running or waiting"`
	UpdatedAt   time.Time `json:"updated_at"`
	Did         string    `json:"did" enum:"archived,kept"`
	To          string    `json:"to,omitempty" doc:"Where its folder is now"`
	Why         string    `json:"why,omitempty" doc:"Why it is left; or what of it could not be put away"`
	WorktreeRef string    `json:"worktree_ref,omitempty" doc:"What its git worktree held is kept there"`
}

// oldRun is a candidate for pruning, as it was when prune read it.
type oldRun struct {
	PrunedRun
	repo, dir string
	how       howRun
	file      runstate.RunState // from the journal
}

// PruneRuns archives old runs (SPEC X5). It moves their folders from .agents/runs to
// .agents/archive/runs and removes them from the team's state. The journal keeps them, and nothing
// is deleted.
//
// The newest keep runs remain, whatever their status, and so do runs that changed less than
// olderThan ago. Failed and cancelled runs are archived only with all. Active and waiting runs are
// never archived. With dry, PruneRuns only reports.
//
// It returns all runs, newest first, each with the result and reason, and last the runs that a crash
// left half archived. The error is a *table.Refusal if the arguments are invalid.
func (c *Controller) PruneRuns(ctx context.Context, by change.Actor, keep int, olderThan time.Duration, all, dry bool) ([]PrunedRun,
	error,
) {
	if keep < 0 || olderThan < 0 {
		return nil, &table.Refusal{
			Subject: "runs", Event: "prune_asked", State: "asked", Row: "X5",
			Reason: "neither the number of runs that stay nor their age is below 0",
		}
	}
	runs, halves, now, err := c.oldRuns(ctx)
	if err != nil {
		return nil, err
	}
	said := []PrunedRun{}
	for n := range runs {
		r := &runs[n]
		r.Did, r.Why = RunWasKept, r.keeps(n, keep, olderThan, all, now)
		if r.Why == "" {
			if err := c.putAway(ctx, by, r, dry); err != nil {
				return said, err
			}
		}
		said = append(said, r.PrunedRun)
	}
	for _, half := range halves {
		if half.To, err = ToArchive(half.repo, half.ID, dry); err != nil {
			return said, err
		}
		half.Did = RunWasArchived
		said = append(said, half.PrunedRun)
	}
	return said, nil
}

// keeps is the reason to keep a run, or empty. n is its position among all runs.
func (r *oldRun) keeps(n, keep int, olderThan time.Duration, all bool, now time.Time) string {
	age := now.Sub(r.UpdatedAt)
	switch status := workflow.Status(r.Status); {
	case status == workflow.IsRunning || status == workflow.IsWaiting:
		return "it is not over; cancel it first"
	case n < keep:
		return fmt.Sprintf("it is one of the newest %d", keep)
	case age < olderThan:
		return fmt.Sprintf("it changed %s ago", age.Round(time.Second))
	case status != workflow.IsCompleted && !all:
		return "it has not completed (" + r.Status + "), and may be resumed; it goes only where all are asked for"
	case r.dir != filepath.Join(runsDir(r.repo), r.ID):
		return "its folder is elsewhere: " + r.dir
	default:
		return ""
	}
}

// oldRuns returns all runs, newest first. halves are runs that the journal lists as archived and
// whose folders have not been moved.
func (c *Controller) oldRuns(ctx context.Context) (runs, halves []oldRun, now time.Time, err error) {
	here, err := sessions.SettledDir(c.opts.Config.Dir)
	if err != nil {
		return nil, nil, now, err
	}
	repos, archived := map[string]bool{here: true}, map[string]time.Time{}
	err = c.loop.View(ctx, func(t *team.Team) {
		now = c.loop.Now()
		maps.Copy(archived, t.Archive)
		for _, id := range t.RunIDs() {
			r := t.Runs[id]
			repos[r.RepoDir] = true
			runs = append(runs, oldRun{
				PrunedRun: PrunedRun{ID: id, Workflow: r.Plan.Name, Status: string(r.Status()), UpdatedAt: r.UpdatedAt},
				repo:      r.RepoDir, dir: runDir(r), how: howOf(t, id),
			})
		}
	})
	slices.SortStableFunc(runs, func(a, b oldRun) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	for _, repo := range slices.Sorted(maps.Keys(repos)) {
		for _, id := range slices.Sorted(maps.Keys(archived)) {
			state, err := runstate.ReadRunState(filepath.Join(runsDir(repo), id, runstate.RunStateName))
			if err != nil || state.RunID != id || state.UpdatedAt > runstate.FormatRunTime(archived[id]) {
				continue // it was archived, or another program reused the name
			}
			halves = append(halves,
				oldRun{PrunedRun: PrunedRun{ID: id, Workflow: state.WorkflowName, Status: "archived", UpdatedAt: archived[id]}, repo: repo})
		}
	}
	return runs, halves, now, err
}

// putAway archives one run. It records that in the journal first, so that the run cannot resume
// while its folder moves. The next prune finishes the move after a crash.
func (c *Controller) putAway(ctx context.Context, by change.Actor, r *oldRun, dry bool) (err error) {
	if dry {
		r.Did = RunWasArchived
		r.To, err = ToArchive(r.repo, r.ID, true)
		return err
	}
	if err := c.loop.View(ctx, func(t *team.Team) {
		if now := t.Runs[r.ID]; now != nil {
			r.file = runstate.RunStateOf(now)
		}
	}); err != nil {
		return err
	}
	if _, err := c.SubmitRun(ctx, by, r.ID, team.RunArchived{}); loop.IsAnswer(err) {
		r.Why = err.Error() // it was resumed or archived in the meantime
		return nil
	} else if err != nil {
		return err
	}
	r.Did = RunWasArchived
	if _, err := os.Lstat(r.how.Worktree); err == nil {
		end, err := c.retireWorktree(ctx, r.ID, r.repo, r.how)
		if r.WorktreeRef = end.Ref; err != nil {
			end.Stays = err.Error()
		}
		if end.Stays != "" {
			r.Why = "its git worktree " + r.how.Worktree + " stays: " + end.Stays
		}
	}
	if r.To, err = ToArchive(r.repo, r.ID, false); err != nil || r.To == "" {
		return err
	}
	c.log.Info("a run was put away", "run", r.ID, "to", r.To, "by", by.ID)
	return r.settleFile()
}

// settleFile updates the archived run_state.json to the state in the journal.
func (r *oldRun) settleFile() error {
	path := filepath.Join(r.To, runstate.RunStateName)
	state, err := runstate.ReadRunState(path)
	if err == nil && state.UpdatedAt >= r.file.UpdatedAt || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // it is up to date, or another program wrote it and it stays unchanged
	}
	if err := file.ReplaceUnsynced(path, r.file.Render(), workspace.StateMode); err != nil {
		return fmt.Errorf("run %s is put away, but its file is behind the journal: %w", r.ID, err)
	}
	return nil
}

func archiveDir() string { return filepath.Join(".agents", "archive", "runs") }

// ToArchive moves a run's folder and returns the new path, or an empty path if the run has no
// folder. With dry it only returns the path. It refuses links that lead out of the repository.
func ToArchive(repo, id string, dry bool) (to string, err error) {
	defer func() { err = wrapped("put the folder of run "+id+" away", err) }()
	root, err := os.OpenRoot(repo)
	if err != nil {
		return "", err
	}
	defer root.Close()
	from := filepath.Join(".agents", "runs", id)
	if info, err := root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder, and Fairlead does not follow a symbolic link; remove it", filepath.Join(repo, from))
	}
	to = filepath.Join(archiveDir(), id)
	for n := 2; ; n++ {
		_, err := root.Lstat(to)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil || n > archiveTriesMax {
			return "", errors.Join(err, fmt.Errorf("there is no free name like %s; tidy the archive up", filepath.Join(repo, to)))
		}
		to = filepath.Join(archiveDir(), fmt.Sprintf("%s.%d", id, n))
	}
	if dry {
		return filepath.Join(repo, to), nil
	}
	if err := root.MkdirAll(archiveDir(), DirMode); err != nil {
		return "", err
	}
	if err := root.Rename(from, to); err != nil {
		return "", err
	}
	return filepath.Join(repo, to), nil
}
