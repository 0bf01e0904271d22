package main

import (
	"context"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
)

func undoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "undo TASK",
		Short: "Take back what a task has landed",
		Long: `If the landed commit is the tip of the branch and nothing else has it (no remote-tracking branch, no other branch or
tag, no worktree without a branch, no other task), the branch and its clean checkout are moved back. Otherwise a new task
reverts all that has landed; it is checked and shown to you, and ` + "`fairlead merge`" + ` lands it. A revert that conflicts with newer
changes is refused, with the files.

After that the task is shown to you again, and ` + "`fairlead merge TASK`" + ` lands it again: this undoes the undo. What a pull request has
merged is taken back on the forge.`,
		Example:           "  fairlead undo T12",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return tasks.Undo(ctx, a.App, client, words[0])
		}),
	}
}
