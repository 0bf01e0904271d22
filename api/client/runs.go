package client

import (
	"context"
	"net/url"
	"time"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/api"
)

// Runs returns all runs without their steps, newest first.
func (c *Client) Runs(ctx context.Context) ([]view.RunView, error) {
	all, err := get[api.Runs](ctx, c, "/runs", nil)
	return all.Runs, err
}

// Run returns one run with its steps. For an unknown id the error is a *Problem with status 404 and
// the known ids.
func (c *Client) Run(ctx context.Context, id string) (view.RunView, error) {
	return get[view.RunView](ctx, c, runPath(id, ""), nil)
}

// StartRun starts a run; it returns when the run is durable. The error is a *Refused, or a *Problem
// with status 422 and every fault of the workflow in its Errors.
func (c *Client) StartRun(ctx context.Context, flags view.RunFlags) (view.RunView, error) {
	return post[view.RunView](ctx, c, "/runs", flags)
}

// ResumeRun resumes a run that is over; flags that are left out keep their values.
func (c *Client) ResumeRun(ctx context.Context, id string, flags view.RunFlags) (view.RunView, error) {
	return post[view.RunView](ctx, c, runPath(id, "/resume"), flags)
}

// CancelRun cancels a run, or only one step of it.
func (c *Client) CancelRun(ctx context.Context, id, step, why string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, runPath(id, "/cancel"), api.CancelBody{Step: step, Note: why})
}

// PauseRun pauses a run: no further step begins.
func (c *Client) PauseRun(ctx context.Context, id, why string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, runPath(id, "/pause"), api.NoteBody{Note: why})
}

// ReleaseRun continues a paused run.
func (c *Client) ReleaseRun(ctx context.Context, id, why string) (api.Ordered, error) {
	return post[api.Ordered](ctx, c, runPath(id, "/release"), api.NoteBody{Note: why})
}

// Answer answers a step that waits for a person. Input is JSON. Up to 512 KiB always fit; with its
// quotes escaped it must fit into a body of 1 MiB.
func (c *Client) Answer(ctx context.Context, id, step string, answer view.StepAnswer) (api.Ordered, error) {
	verb := "/approve"
	if answer.Rejected {
		verb = "/reject"
	}
	return post[api.Ordered](ctx, c, runPath(id, "/steps/"+url.PathEscape(step)+verb), api.AnswerBody{Note: answer.Note, Input: answer.Input})
}

// Inbox returns everything that waits for a person.
func (c *Client) Inbox(ctx context.Context) ([]view.InboxItem, error) {
	all, err := get[api.Inbox](ctx, c, "/inbox", nil)
	return all.Items, err
}

// PruneRuns archives old runs; with dry it only reports which.
func (c *Client) PruneRuns(ctx context.Context, keep int, olderThan time.Duration, all, dry bool) ([]runs.PrunedRun, error) {
	older := olderThan.Milliseconds()
	done, err := post[api.Pruned](ctx, c, "/prune", api.PruneBody{Keep: &keep, OlderThanMS: &older, All: all, DryRun: dry})
	return done.Runs, err
}

func runPath(id, rest string) string { return "/runs/" + url.PathEscape(id) + rest }
