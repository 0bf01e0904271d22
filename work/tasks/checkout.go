package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/change"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
)

// CheckOutTask makes a worktree of the person's repository in which a person works on a task that waits for one. dir is absolute; empty:
// beside the repository. governing is the separate yes for governing files.
func (c *Controller) CheckOutTask(ctx context.Context, id, dir, governing string) (shown view.TaskCheckout, err error) {
	const event = "checkout"
	ctx = context.WithoutCancel(ctx) // half a worktree is worse than an answer that is not read
	c.answers.Lock()
	defer c.answers.Unlock()
	t, r, err := c.waits(ctx, id, event, "")
	if err != nil {
		return shown, err
	}
	if asked := r.Task.Asked; asked != nil {
		t.Asked = task.Asked{Tree: asked.Tree, Commit: asked.Commit, From: asked.From}
	}
	made, err := t.CheckOut(ctx, dir, governing)
	return checkedOut(t, made), blocked(id, event, r, err)
}

// EndCheckout makes the commits of a person's checkout the task's, and removes it. If there are any, the task is checked and shown again.
func (c *Controller) EndCheckout(ctx context.Context, by change.Actor, id string) (shown view.TaskCheckout, err error) {
	const event = "checkout"
	ctx = context.WithoutCancel(ctx)
	c.answers.Lock()
	defer c.answers.Unlock()
	t, err := c.open(ctx, id)
	if err != nil {
		return shown, err
	}
	r, err := c.runs.RunByID(ctx, id)
	if err != nil {
		return shown, err
	}
	is, err := t.ByHand()
	if err != nil {
		return shown, err
	}
	if !asked(r) {
		if !is.Taken {
			return shown, refuse(id, event, *r.Task, "it does not wait for your answer now")
		}
		return checkedOut(t, is), t.EndByHand() // this was killed after the task went on
	}
	is, newer, err := t.TakeByHand(ctx)
	if err != nil {
		return shown, blocked(id, event, r, err)
	}
	if newer {
		again := state.Resume{Job: state.Checks, Why: "it was changed by hand"}
		if _, err := c.runs.SubmitRun(ctx, by, id, again); err != nil {
			return shown, fmt.Errorf("check task %s again, which has your commits: %w", id, err)
		}
	}
	shown = checkedOut(t, is)
	shown.Done, shown.Newer = true, newer
	return shown, t.EndByHand()
}

func checkedOut(t task.Review, c task.HandCheckout) view.TaskCheckout {
	return view.TaskCheckout{ID: t.ID, Dir: c.Dir, Branch: t.Branch, Base: t.Base}
}

// notByHand refuses an order about a task that a person has checked out.
func notByHand(t task.Review, event string) error { return runs.NotByHand(t.Task, event) }

// blocked is the answer to an order that a person has to do something for first.
func blocked(id, event string, r view.RunView, err error) error {
	if no, is := errors.AsType[*task.Blocked](err); is {
		return refuse(id, event, *r.Task, "%s", no.Why)
	}
	return err
}
