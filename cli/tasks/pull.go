package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// pull does one round of a task's pull request, and returns fields of the step's report.
func pull(ctx context.Context, a *cli.App, t task.Task) (map[string]any, error) {
	f, err := task.ForgeOf(ctx, t)
	if err != nil {
		return nil, err
	}
	round, _ := strconv.Atoi(os.Getenv(task.RoundEnv)) // 0 is the first round
	look, err := task.PullRequest(ctx, t, a.Out, f, round, time.Now())
	if err != nil {
		return nil, err
	}
	metrics := map[string]string{view.MetricPull: string(look.Outcome)}
	if look.Pull.URL != "" {
		metrics[view.MetricPullURL] = look.Pull.URL
	}
	if look.Fault != "" {
		metrics["waits_for"] = string(look.Fault)
	}
	fields := map[string]any{"metrics": metrics, "logs": view.Some(look.Said)}
	switch look.Outcome {
	case task.Waits:
		fields["again_in_seconds"] = max(1, int(look.Again.Round(time.Second)/time.Second))
	case task.Returns:
		fields["gate_failure"] = look.Why
	case task.Merged:
		metrics["landed_commit"] = look.Commit
	case task.Closed, task.Nothing:
	}
	for _, line := range look.Said {
		if _, err := fmt.Fprintln(a.Out, cli.Plain(line)); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// Pull approves a task and lands it as a pull request, whatever its configuration says.
func Pull(ctx context.Context, a *cli.App, client *apiclient.Client, id string, yes api.MergeBody, wait bool) error {
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	if t.How != task.PR {
		if _, err := task.ForgeOf(ctx, t); err != nil {
			if blocked := (*task.Blocked)(nil); errors.As(err, &blocked) {
				return &cli.Coded{Code: cli.ExitRefused, Err: err}
			}
			return err
		}
		r, err := shownTask(ctx, client, id)
		if err != nil {
			return err
		}
		if !waitsForApproval(r) {
			return notNow(r)
		}
		return merge(ctx, a, client, id, yes, wait, &t)
	}
	return Merge(ctx, a, client, id, yes, wait)
}

// pullURL is the address of a task's pull request; empty: there is none yet.
func pullURL(r view.RunView) string {
	for _, s := range r.Steps {
		if url := s.Metrics[view.MetricPullURL]; s.ID == task.StepLand && url != "" {
			return url
		}
	}
	return ""
}

func sayPull(a *cli.App, r view.RunView) error {
	name := cli.Plain(r.ID)
	_, err := fmt.Fprintf(a.Out,
		"task %s has the pull request %s\nits checks and comments come back to %s by themselves; the task ends when it is merged or closed there\n",
		name, cli.Plain(pullURL(r)), cli.Plain(r.Task.Agent))
	return err
}
