package main

import (
	"context"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
)

// notifyCommand is about the receivers of notices, which fairlead.yaml names.
func notifyCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "notify",
		Short: "List and test the receivers of notices",
		Long: `Fairlead notifies you when something waits for you or went wrong: on the desktop, by a webhook, by Slack,
Discord, ntfy, Telegram, e-mail and other services. fairlead.yaml names the receivers below notify.targets;
without any nothing is sent. ` + "`fairlead docs config`" + ` explains the settings.`,
		Example: `  fairlead notify test
  fairlead notify list`,
	}, notifyListCommand(a), notifyTestCommand(a))
}

func notifyListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the receivers: whether they can be reached, and what waits to be sent",
		Long: `For each receiver: what it is sent, its quiet hours, how many messages it got in the last hour and how many
matters these only counted, and why it cannot be reached. Addresses are secret and not shown.`,
		Example: `  fairlead notify list
  fairlead notify list --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return questions.NoticeTargets(ctx, a.App, client)
		}),
	}
}

func notifyTestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "test [TARGET]",
		Short: "Send a test notice to one receiver, or to all, and print the result",
		Long: `The daemon sends it now, also in quiet hours. The exit code is 1 if a receiver did not get it. After a change of
fairlead.yaml run ` + "`fairlead reload`" + ` first.`,
		Example: `  fairlead notify test
  fairlead notify test phone`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			target := ""
			if len(words) > 0 {
				target = words[0]
			}
			return questions.TestNotice(ctx, a.App, client, target)
		}),
	}
}
