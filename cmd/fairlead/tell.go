package main

import (
	"context"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
)

func tellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tell AGENT TEXT...",
		Short: "Tell an agent something while it works",
		Long: `AGENT is an agent, one of its sessions (coder-12) or a task (T12). A program that reads during its answer, such
as Claude Code, gets the text before its next step, or after its answer if that was the last one. Otherwise a
task goes on with it when the answer is over, and an agent that runs session after session begins its next one
with it. The command says which. The text is on disk first, and is due until the program confirms that it has
read it.
As TEXT, - reads standard input; several words are one text.`,
		Example:           `  fairlead tell coder "use the v2 client"`,
		Args:              cli.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.Spoken(words[1:])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return agents.Tell(ctx, a.App, client, words[0], text)
			})(cmd, words)
		},
	}
}
