package main

import (
	"context"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/view"
)

// questionCommand is about answers that were saved. Questions themselves are in the inbox.
func questionCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "question",
		Short: "List and revoke saved answers",
		Long: `An answer to an agent's question can be saved: it then answers the same question again without
asking you. ` + "`fairlead inbox`" + ` lists open questions, ` + "`fairlead answer`" + ` answers them.`,
		Example: `  fairlead question saved
  fairlead question revoke s3`,
	}, savedCommand(a), revokeCommand(a))
}

func savedCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "saved",
		Short: "List the saved answers: what is allowed or denied without asking again",
		Long: `An answer that was given with ` + "`--for session`" + ` or ` + "`--for always`" + ` answers every identical call
without asking. The rules of fairlead.yaml (permissions) are not in this list.`,
		Example: "  fairlead question saved",
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			list, err := client.Questions.Saved(ctx)
			if err != nil {
				return err
			}
			return a.Show(map[string]any{"saved": append([]view.StandingView{}, list...)}, func() error { return questions.PrintStanding(a.App, list) })
		}),
	}
}

func revokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Delete a saved answer: the next such call is asked about again",
		Long:    "ID is as `fairlead question saved` prints it.",
		Example: "  fairlead question revoke s3",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.Questions.Revoke(ctx, words[0])
			if err != nil {
				return cli.Faulty(err)
			}
			return a.Say(map[string]any{"seq": done.Seq, "id": words[0]}, "%s is revoked", cli.Plain(words[0]))
		}),
	}
}
