package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
)

func taskRestoreCommand(a *app) *cobra.Command {
	var at int
	cmd := &cobra.Command{
		Use:   "restore TASK",
		Short: "Make a task's folder again, from a snapshot of it",
		Long: `A folder that was deleted, or removed by ` + "`fairlead drop`" + ` or by landing, is made again: its branch, and what was not
committed. Then the files of tasks.copy are copied and the commands of tasks.setup run. It never replaces a folder
that has something in it. It needs no daemon.`,
		Example:           "  fairlead task restore T12 --at 3",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			return tasks.Restore(cmd.Context(), a.App, words[0], at)
		},
	}
	cmd.Flags().IntVar(&at, "at", 0, "the `number` of a snapshot (default: the newest one)")
	return cmd
}

func taskSnapshotsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshots TASK",
		Short: "List the snapshots of a task's folder",
		Long: `A snapshot is made every five minutes while the agent works, when a task is checked, shown or compared, and before its
folder is removed, if something has changed. The newest 50 are kept. It needs no daemon.`,
		Example:           "  fairlead task snapshots T12",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			return tasks.Snapshots(cmd.Context(), a.App, words[0])
		},
	}
}
