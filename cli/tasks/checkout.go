package tasks

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Checkout makes a worktree in which a person works on a task, or takes what was committed there.
func Checkout(ctx context.Context, a *cli.App, client *apiclient.Client, id string, what api.CheckoutBody) error {
	r, err := shownTask(ctx, client, id)
	if err != nil {
		return err
	}
	if what.Dir != "" {
		if what.Dir, err = filepath.Abs(what.Dir); err != nil {
			return err
		}
	}
	done, err := client.Runs.Checkout(ctx, id, what)
	if err != nil {
		return needsYes(a, r, api.MergeBody{Governing: what.Governing}, cli.Faulty(err))
	}
	return answered(a, id, done, nil, func() string { return checkoutWords(done) })
}

func checkoutWords(done view.TaskCheckout) string {
	id, dir, base := cli.Plain(done.ID), cli.Plain(done.Dir), cli.Plain(done.Base)
	switch {
	case done.Newer:
		return fmt.Sprintf("task %s has what was committed in %s, which is removed; it is checked and shown to you again: fairlead diff %[1]s, then fairlead merge %[1]s",
			id, dir)
	case done.Done:
		return fmt.Sprintf("%s is removed; it had no new commits, and task %s is as it was", dir, id)
	}
	return fmt.Sprintf("task %s is in %s, on branch %s\nwork and commit there; `git merge %s` brings the base in. `fairlead checkout %[1]s --done` takes your commits",
		id, dir, cli.Plain(done.Branch), base)
}

// checkedOutWords say where a person works on a task; empty: nowhere.
func checkedOutWords(t *view.TaskView) string {
	if t.Checkout == "" {
		return ""
	}
	return fmt.Sprintf("checked out in %s: commit there, then fairlead checkout %s --done", cli.Line(t.Checkout, cli.ErrorWidth), cli.Plain(t.ID))
}
