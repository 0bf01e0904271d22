package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

func sessionInputCommand(a *app, path *string) *cobra.Command {
	var wait, over bool
	cmd := &cobra.Command{
		Use:   "input TEXT...",
		Short: "Send a request: it starts a conversation with its own folder",
		Long: `The agent whose description fits best gets it; if none fits, MAIN keeps it. ` + "`fairlead dispatch route`" + `
shows the ranking. Agents may write to the paths that the request names; everything else that they
make goes to the conversation's outputs/. As TEXT, - reads standard input; several words are one
text. A request that comes while a conversation is open waits; --over ends the open one as
interrupted.

--wait shows which agent takes over, and returns with the answer; exit code 1 means that there is
none, because the conversation was interrupted or its task failed.`,
		Example: `  fairlead dispatch input "write a hello world in Python" --wait`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.Spoken(words)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return dispatchcli.SessionInput(cmd.Context(), a.App, *path, text, wait, over)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "show what happens, and return when it is answered")
	cmd.Flags().BoolVar(&over, "over", false, "end the conversation that is open as interrupted")
	return cmd
}

func sessionDelegateCommand(a *app, path *string) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "delegate AGENT TEXT...",
		Short: "Give an agent a task, when you do the work of MAIN by hand",
		Long: `MAIN gives an agent a task; with --from, in mode interactive, an agent asks another one for help. It
prints what to tell the agent: the task, and where its files belong. As TEXT, - reads standard
input.`,
		Example:           `  fairlead dispatch delegate backend "add an index to the orders table"`,
		Args:              cli.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeSessionAgent(path),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.Spoken(words[1:])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return dispatchcli.SessionDelegate(a.App, *path, words[0], text, from)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the agent that asks for help (default: MAIN delegates)")
	return cmd
}

func sessionDoneCommand(a *app, path *string) *cobra.Command {
	var failed bool
	var agent string
	cmd := &cobra.Command{
		Use:   "done [TEXT...]",
		Short: "Report that an agent has finished its task, with the result",
		Long: `For people and programs that do the work by hand. Without --agent it ends the task that was started
last. In mode orchestrator MAIN is in charge then; in mode interactive, the agent that asked. As
TEXT, - reads standard input.`,
		Example: `  fairlead dispatch done "the index is there"
  fairlead dispatch done --failed "there is no such table"`,
		RunE: func(cmd *cobra.Command, words []string) error {
			text := ""
			if len(words) > 0 {
				var err error
				if text, err = a.Spoken(words); err != nil {
					return cli.Usage(cmd, err)
				}
			}
			return dispatchcli.SessionDone(a.App, *path, agent, text, failed)
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "it failed")
	cmd.Flags().StringVar(&agent, "agent", "", "whose task (default: the one that was begun last)")
	if err := cmd.RegisterFlagCompletionFunc("agent", a.completeSessionAgent(path)); err != nil {
		panic("fairlead: session done has no --agent: " + err.Error())
	}
	return cmd
}

func sessionRespondCommand(a *app, path *string) *cobra.Command {
	var summary string
	cmd := &cobra.Command{
		Use:   "respond TEXT...",
		Short: "Answer the request, and close the conversation",
		Long: `For people and programs that do the work by hand. The files in the conversation's outputs/ are listed
in its line of messages.jsonl. A waiting request starts then. As TEXT, - reads standard input.`,
		Example: `  fairlead dispatch respond "the query takes 20 ms now"`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			text, err := a.Spoken(words)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			found, err := dispatchcli.Saying(a.App, *path, "responded", dispatch.NoHost)
			if err != nil {
				return err
			}
			done, err := dispatchcli.TellSession(a.App, found, dispatch.Respond{Text: text, Summary: summary})
			if err != nil {
				return err
			}
			return a.Show(done, func() error { return dispatchcli.PrintMoved(a.App, done, found.Session) })
		},
	}
	cmd.Flags().StringVar(&summary, "summary", "", "what it was about, for messages.jsonl (default: the input's first line)")
	return cmd
}

// completeSessionAgent offers the agents of the session.
func (a *app) completeSessionAgent(path *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
		if a.Place(nil) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := dispatchcli.Session(a.App, *path)
		if err != nil || len(words) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, d := range found.Session.Agents {
			if !strings.ContainsAny(cli.Plain(d.Name), "\t\n\uFFFD") {
				names = append(names, d.Name+"\t"+cli.Line(d.Text, cli.SummaryWidth))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
