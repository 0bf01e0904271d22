package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
)

func pushCommand(a *app) *cobra.Command {
	var to api.PushBody
	cmd := &cobra.Command{
		Use:   "push TASK",
		Short: "Push a task's branch to a remote, without a forge",
		Long: `Exactly what was shown to you last is pushed, as one commit by you on the commit of the base branch that it was compared
with. If nothing was shown yet, it is what the task's folder has, and the command says so. It approves nothing and lands
nothing. The next push adds a commit to the branch. Commits that only the remote has are never replaced without --force.

The daemon pushes with your login, asks for no password and takes at most three minutes. Hooks of git do not run.`,
		Example:           "  fairlead push T12\n  fairlead push T12 --remote backup --as wip/retries",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return tasks.Push(ctx, a.App, client, words[0], to)
		}),
	}
	cmd.Flags().StringVar(&to.Branch, "as", "", "the `branch` on the remote (default: the task's own name)")
	cmd.Flags().BoolVar(&to.Force, "force", false, "replace the branch on the remote, also if it has commits that the task does not have")
	cmd.Flags().StringVar(&to.Governing, "governing", "",
		"the `hash` of the governing files that you looked at, as fairlead diff prints it: a separate yes to what decides what runs later")
	cmd.Flags().StringVar(&to.Remote, "remote", "", "the `remote` of the repository (default: tasks.remote, or origin)")
	return cmd
}
