package client

import (
	"context"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/view"
)

// Comments returns a person's comments on a task that are not sent yet.
func (c Runs) Comments(ctx context.Context, id string) ([]view.TaskComment, error) {
	all, err := Get[view.TaskComments](ctx, c.client, runPath(id, "/comments"), nil)
	return all.Comments, err
}

// Comment keeps a comment until the next request, and returns all of them.
func (c Runs) Comment(ctx context.Context, id string, one api.CommentBody) ([]view.TaskComment, error) {
	all, err := Post[view.TaskComments](ctx, c.client, runPath(id, "/comments"), one)
	return all.Comments, err
}

// Request sends the comments and a text back to the task's agent.
func (c Runs) Request(ctx context.Context, id string, what api.RequestBody) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/request"), what)
}

// Merge approves a task, or lands it again after landing failed. It returns when that is recorded.
func (c Runs) Merge(ctx context.Context, id string, what api.MergeBody) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/merge"), what)
}

// Drop ends a task and removes its folder.
func (c Runs) Drop(ctx context.Context, id string) (api.Dropped, error) {
	return Post[api.Dropped](ctx, c.client, runPath(id, "/drop"), struct{}{})
}
