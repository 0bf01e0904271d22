package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
)

// Controller answers about tasks.
type Controller struct {
	loop *loop.Loop
	runs *runs.Controller

	answers sync.Mutex // one answer or change of comments at a time: they look first, then act
	looks   chan struct{}
	touched touched
}

// looksMax is how many requests run git at the same time; others wait.
const looksMax = 4

// New returns the controller of tasks.
func New(l *loop.Loop, runs *runs.Controller) *Controller {
	return &Controller{loop: l, runs: runs, looks: make(chan struct{}, looksMax)}
}

// open reads the task of a run. The error is *team.Unknown if the run does not exist or is not a task.
func (c *Controller) open(ctx context.Context, id string) (task.Review, error) {
	t, _, err := c.load(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		err = &table.Refusal{Subject: "task " + id, Event: "open", State: "gone", Reason: fmt.Sprintf(
			"its folder %s has no %s any more, so it can only be dropped: `fairlead drop %s`", t.Run, task.FileName, id)}
	}
	return task.Review{Task: t}, err
}

// openToRemove is open for a task that is dropped: if a person has deleted the run's folder, the journal has enough.
func (c *Controller) openToRemove(ctx context.Context, id string) (task.Task, error) {
	t, workspace, err := c.load(ctx, id)
	if !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	place, err := task.Place(ctx, workspace, t.Base)
	if err != nil {
		return t, err
	}
	t.Repo, t.Git, t.Prefix = place.Repo, place.Git, place.Prefix
	return t, os.MkdirAll(t.Run, runs.DirMode) // git's index for the task is made there
}

// load reads a task.json. If there is none, which wraps fs.ErrNotExist, the task is what the journal has of it.
func (c *Controller) load(ctx context.Context, id string) (t task.Task, workspace string, err error) {
	if err := c.loop.View(ctx, func(now *team.Team) { workspace, t = runs.JournaledTask(now, id) }); err != nil {
		return t, "", err
	}
	if t.ID == "" {
		return t, "", &team.Unknown{What: "task", Name: id}
	}
	loaded, err := task.Load(filepath.Join(t.Run, task.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return t, workspace, err
	}
	return loaded, workspace, err
}

// look is a place among those that run git.
func (c *Controller) look(ctx context.Context) (release func(), err error) {
	select {
	case c.looks <- struct{}{}:
		return func() { <-c.looks }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noteBytesMax bounds the note of an answer; the whole text is in a file.
const noteBytesMax = 900

// refuse is the answer to an order that does not fit the task's state.
func refuse(id, event string, now view.TaskView, format string, args ...any) error {
	return &table.Refusal{Subject: "task " + id, Event: event, State: now.Status, Row: "W9", Reason: fmt.Sprintf(format, args...)}
}

// RequestTask sends the comments and a text back to the agent. shown is the commit that the person looked at; empty:
// it is not checked. If its landing met a conflict or a check that failed, the agent is told that, too, and gets the newest base.
func (c *Controller) RequestTask(ctx context.Context, by change.Actor, id, text, shown string) (uint64, error) {
	const event = "request"
	ctx = context.WithoutCancel(ctx) // a merge into a large folder may take longer than the caller waits
	c.answers.Lock()
	defer c.answers.Unlock()
	t, r, err := c.waits(ctx, id, event, shown)
	if err != nil {
		return 0, err
	}
	if err := notByHand(t, event); err != nil {
		return 0, err
	}
	all, err := t.Comments()
	if err != nil {
		return 0, err
	}
	round, err := t.Round(ctx)
	if err != nil {
		return 0, err
	}
	words, note := task.RequestText(text, c.placed(ctx, t, r, all))
	if r.Task.Unlanded() {
		var failed task.Failure
		if err := c.loop.View(ctx, func(now *team.Team) { failed = now.Tasks[id].Failure }); err != nil {
			return 0, err
		}
		more, err := t.SendBack(ctx, failed)
		if err != nil {
			return 0, blocked(id, event, r, fmt.Errorf("bring the newest %s to task %s: %w", t.Base, id, err))
		}
		words, note = strings.TrimPrefix(words+"\n"+more+"\n", "\n"), cmp.Or(note, clip.Text(r.Task.Why, noteBytesMax))
	}
	if words == "" {
		return 0, refuse(id, event, *r.Task, "there is nothing to send; write a text, or comment on a line first")
	}
	name := filepath.Join(t.Run, task.RequestName(round))
	if err := os.WriteFile(name, []byte(words), 0o600); err != nil {
		return 0, err
	}
	seq, err := c.runs.Answer(ctx, by, id, task.StepApprove, view.StepAnswer{Rejected: true, Note: note})
	if errors.As(err, new(*table.Refusal)) { // after any other error the answer may have been taken
		return 0, errors.Join(err, os.Remove(name))
	} else if err != nil {
		return 0, err
	}
	for i := range all {
		if all[i].New() {
			all[i].Sent = round
		}
	}
	return seq, t.SetComments(all)
}

// MergeTask approves what a question shows, or lands it again after landing failed. shown is the commit, and tree the
// tree that the person looked at; the order is refused if the question shows another one. governing is the separate yes for
// governing files.
func (c *Controller) MergeTask(ctx context.Context, by change.Actor, id, shown, tree, governing string) (uint64, error) {
	const event = "merge"
	c.answers.Lock()
	defer c.answers.Unlock()
	r, err := c.runs.RunByID(ctx, id)
	if err != nil {
		return 0, err
	}
	if r.Task != nil && r.Task.FailedStep == task.StepLand {
		t, err := c.open(ctx, id)
		if err != nil {
			return 0, err
		}
		if err := c.runs.StillApproved(ctx, id, shown, tree, func(commit string) bool { return t.Has(ctx, commit) }); err != nil {
			return 0, err
		}
		if _, err := c.runs.ResumeRun(ctx, by, id, view.RunFlags{}); err != nil {
			return 0, err
		}
		return c.head(ctx)
	}
	if _, r, err = c.waits(ctx, id, event, shown); err != nil {
		return 0, err
	}
	if shown != "" && tree == "" && r.Task.Asked != nil {
		tree = r.Task.Asked.Tree
	}
	return c.runs.Answer(ctx, by, id, task.StepApprove, view.StepAnswer{Tree: tree, Governing: governing})
}

// SyncTask fetches the remote of a task's repository, and brings what has come to its folder's origin. It moves no branch.
func (c *Controller) SyncTask(ctx context.Context, id string) (shown view.TaskSync, err error) {
	t, err := c.open(ctx, id)
	if err != nil {
		return shown, err
	}
	done, err := t.Sync(ctx)
	blocked, fault := (*task.Blocked)(nil), (*forge.Fault)(nil)
	if errors.As(err, &blocked) || errors.As(err, &fault) {
		r, unknown := c.runs.RunByID(ctx, id)
		if unknown != nil {
			return shown, unknown
		}
		return shown, refuse(id, "sync", *r.Task, "%v", err)
	}
	if err != nil {
		return shown, fmt.Errorf("fetch the remote for task %s: %w", id, err)
	}
	c.runs.Fetched()
	shown = view.TaskSync{
		Remote: done.Remote, Base: t.Base, Behind: done.Behind, Ahead: done.Ahead, More: done.More, Branches: []view.SyncedBranch{},
	}
	for _, b := range done.Branches {
		shown.Branches = append(shown.Branches, view.SyncedBranch(b))
	}
	return shown, nil
}

func (c *Controller) head(ctx context.Context) (seq uint64, err error) {
	err = c.loop.View(ctx, func(*team.Team) { seq = c.loop.Head() })
	return seq, err
}

// waits refuses unless a person is asked about the task, and about that commit.
func (c *Controller) waits(ctx context.Context, id, event, shown string) (t task.Review, r view.RunView, err error) {
	if t, err = c.open(ctx, id); err != nil {
		return t, r, err
	}
	if r, err = c.runs.RunByID(ctx, id); err != nil {
		return t, r, err
	}
	if !asked(r) {
		return t, r, refuse(id, event, *r.Task, "it does not wait for your answer now")
	}
	if now := r.Task.Asked; shown != "" && (now == nil || now.Commit != shown) {
		err = refuse(id, event, *r.Task, "it was changed since you looked at commit %.10s; look at it again", shown)
	}
	return t, r, err
}

// asked reports whether the step approve waits for a person.
func asked(r view.RunView) bool {
	for _, s := range r.Steps {
		if s.ID == task.StepApprove && r.Stage != string(workflow.Stopped) {
			return s.Status == string(workflow.Waiting)
		}
	}
	return false
}

// DropTask removes the checkout of a person if all there is the task's, cancels the task, waits until none of its processes is left, and
// removes its folder. It returns the ref under which the content stays.
func (c *Controller) DropTask(ctx context.Context, by change.Actor, id, why string) (ref string, err error) {
	t, err := c.openToRemove(ctx, id)
	if err != nil {
		return "", err
	}
	release, err := c.runs.BetweenJobs(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	r, err := c.runs.RunByID(ctx, id)
	if err != nil {
		return "", err
	}
	if err := t.DropByHand(ctx); err != nil {
		return "", blocked(id, "drop", r, err)
	}
	if r.Task.Status != view.TaskDone && r.Task.Status != view.TaskDropped {
		if _, err := c.runs.CancelRun(ctx, by, id, "", cmp.Or(why, "dropped")); err != nil {
			return "", err
		}
	}
	for {
		busy, before := false, uint64(0)
		if before, err = c.head(ctx); err != nil { // before the look, so that no end is missed
			return "", err
		}
		if r, err = c.runs.RunByID(ctx, id); err != nil {
			return "", err
		}
		for _, s := range r.Steps {
			busy = busy || s.Session != ""
		}
		if !busy {
			break
		}
		if err := c.loop.Until(ctx, func(*team.Team) bool { return c.loop.Head() > before }); err != nil {
			return "", errors.Join(errors.New("its processes have not ended yet; drop it again later"), err)
		}
	}
	return t.Remove(ctx)
}
