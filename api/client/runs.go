package client

import (
	"context"
	"net/url"
	"time"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Runs has the requests about runs of workflows.
type Runs struct{ client *Client }

// List returns all runs without their steps, newest first.
func (c Runs) List(ctx context.Context) ([]view.RunView, error) {
	all, err := Get[api.Runs](ctx, c.client, "/runs", nil)
	return all.Runs, err
}

// Show returns one run with its steps. For an unknown id the error is a *Problem with status 404 and
// the known ids.
func (c Runs) Show(ctx context.Context, id string) (view.RunView, error) {
	return Get[view.RunView](ctx, c.client, runPath(id, ""), nil)
}

// Start starts a run; it returns when the run is durable. The error is a *Refused, or a *Problem
// with status 422 and every fault of the workflow in its Errors.
func (c Runs) Start(ctx context.Context, flags view.RunFlags) (view.RunView, error) {
	return Post[view.RunView](ctx, c.client, "/runs", flags)
}

// Resume resumes a run that is over; flags that are left out keep their values.
func (c Runs) Resume(ctx context.Context, id string, flags view.RunFlags) (view.RunView, error) {
	return Post[view.RunView](ctx, c.client, runPath(id, "/resume"), flags)
}

// Cancel cancels a run, or only one step of it.
func (c Runs) Cancel(ctx context.Context, id, step, why string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/cancel"), api.CancelBody{Step: step, Note: why})
}

// Pause pauses a run: no further step begins.
func (c Runs) Pause(ctx context.Context, id, why string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/pause"), api.NoteBody{Note: why})
}

// Release continues a paused run.
func (c Runs) Release(ctx context.Context, id, why string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/release"), api.NoteBody{Note: why})
}

// Answer answers a step that waits for a person. Input is JSON. Up to 512 KiB always fit; with its
// quotes escaped it must fit into a body of 1 MiB.
func (c Runs) Answer(ctx context.Context, id, step string, answer view.StepAnswer) (api.Ordered, error) {
	verb := "/approve"
	if answer.Rejected {
		verb = "/reject"
	}
	return Post[api.Ordered](ctx, c.client, runPath(id, "/steps/"+url.PathEscape(step)+verb), api.AnswerBody{Note: answer.Note, Input: answer.Input, Shown: answer.Shown})
}

// Inbox returns everything that needs a person, the most urgent first.
func (c *Client) Inbox(ctx context.Context) ([]view.InboxItem, error) {
	all, err := Get[api.Inbox](ctx, c, "/inbox", nil)
	return all.Items, err
}

// Prune archives old runs; with dry it only reports which.
func (c Runs) Prune(ctx context.Context, keep int, olderThan time.Duration, all, dry bool) ([]runs.PrunedRun, error) {
	older := olderThan.Milliseconds()
	done, err := Post[api.Pruned](ctx, c.client, "/prune", api.PruneBody{Keep: &keep, OlderThanMS: &older, All: all, DryRun: dry})
	return done.Runs, err
}

func runPath(id, rest string) string { return "/runs/" + url.PathEscape(id) + rest }
