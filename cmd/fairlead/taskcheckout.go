package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
)

func checkoutCommand(a *app) *cobra.Command {
	var what api.CheckoutBody
	cmd := &cobra.Command{
		Use:   "checkout TASK [DIR]",
		Short: "Work on a task by hand, in a worktree of your repository",
		Long: `While a task waits for you, this makes an ordinary worktree of your repository (git worktree add) with what was shown
to you, on the task's branch. DIR is beside the repository, with the task's id after its name, if you name none. Hooks and
filters of git (such as Git LFS) do not run. Files that decide what runs later are listed first, and written only with
--governing.

Commit there what you like. A conflict with the base: git merge main, resolve it, git commit. Then --done makes your
commits the task's and removes the worktree; the task is checked and shown to you again. It is refused, and says why,
while something there is not committed; files that git ignores go with the worktree. Until then the task is neither merged,
sent back nor dropped, so that nothing of yours is left out.`,
		Example:           "  fairlead checkout T12\n  fairlead checkout T12 ../retries\n  fairlead checkout T12 --done",
		Args:              cli.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			if len(words) > 1 {
				what.Dir = words[1]
			}
			return tasks.Checkout(ctx, a.App, client, words[0], what)
		}),
	}
	cmd.Flags().BoolVar(&what.Done, "done", false, "take what you have committed there, and remove the worktree")
	cmd.Flags().StringVar(&what.Governing, "governing", "",
		"the `hash` of the governing files that you looked at, as fairlead diff prints it: a separate yes to have them written")
	return cmd
}
