package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
)

func runListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the runs of workflows, the newest first",
		Long:    "It prints a line for each run: its workflow, its status, and how many of its steps are done.",
		Example: "  fairlead run list",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runs.ListRuns(cmd.Context(), a.App) },
	}
}

func runShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show RUN",
		Short:             "Show the steps of a run, and what each one waits for",
		Long:              "It prints each step with its status, its attempts, and where its report and its log are.",
		Example:           "  fairlead run show 20260801-101500-build",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, words []string) error { return runs.ShowRun(cmd.Context(), a.App, words[0]) },
	}
}

// completeRuns offers the runs that have files.
func (a *app) completeRuns(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if a.Place(nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, _ := runs.RunFiles(a.Dir)
	var names []string
	for _, r := range found {
		names = append(names, cli.Plain(r.RunID)+"\t"+cli.Line(r.WorkflowName, cli.StepWidth))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
