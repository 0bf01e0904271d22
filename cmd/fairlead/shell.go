package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/shell"
)

func shellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "shell AGENT|TASK [-- COMMAND...]",
		Short: "Open a shell in the view of an agent, or in the folder of a task",
		Long: `The shell sees and writes what the agent does, in the agent's workspace or in the folder of the task, and nothing else of
your files. This is the way to look into a task's folder and to edit it by hand: git and other programs run what the
agent has configured there, and here they can do no more than the agent. If a session of it runs, the shell has the same home and
temporary folder. With a COMMAND, that runs in place of the shell, and its exit code is this command's.

The shell is always in a view, also if the agent has ` + "`sandbox: off`" + `; where this machine can make none, it is refused, and
` + "`fairlead doctor`" + ` says what helps. What is left running in it ends with it. The journal records who opened it.`,
		Example: `  fairlead shell T1
  fairlead shell coder -- git log --oneline`,
		Args: cli.Args(func(cmd *cobra.Command, words []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case len(words) == 0 || dash == 0:
				return errors.New("name an agent or a task")
			case len(words) > 1 && dash != 1:
				return errors.New("write -- before the command")
			}
			return nil
		}),
		ValidArgsFunction: func(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(words) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			agents, _ := a.completeAgents(cmd, words, begun)
			tasks, directive := a.completeRuns(cmd, words, begun)
			return append(agents, tasks...), directive
		},
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return shell.Run(ctx, a.App, client, words[0], words[1:])
		}),
	}
}
