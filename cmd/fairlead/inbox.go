package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
)

func inboxCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List everything that needs a person, the most urgent first",
		Long: `It lists workflow steps that wait for approval, questions of agents, agents that gave up, runs that
failed, and daily limits that stop work. What holds up other work comes first, then what waits for an
answer, then what failed; within each, the longest wait comes first. Mission Control shows the same list.

For a step it shows what the step made and how to answer: with ` + "`fairlead approve`" + ` or ` + "`fairlead reject`" + `, in Mission Control, or with
a file. For a question it shows what the agent wants, why it must ask, and what happens without an
answer: answer with ` + "`fairlead answer`" + ` or in Mission Control.`,
		Example: `  fairlead inbox
  fairlead inbox --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return questions.Inbox(cmd.Context(), a.App) },
	}
}
