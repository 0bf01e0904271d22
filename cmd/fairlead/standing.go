package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/view"
)

// questionVerb is about answers that were saved. Questions themselves are in the inbox.
func (a *app) questionVerb() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "question",
		Short: "List and revoke saved answers",
		Long: `An answer to an agent's question can be saved: it then answers the same question again without
asking you. ` + "`fairlead inbox`" + ` lists open questions, ` + "`fairlead answer`" + ` answers them.`,
		Example: `  fairlead question saved
  fairlead question revoke s3`,
	}, a.savedVerb(), a.revokeVerb())
}

func (a *app) savedVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "saved",
		Short: "List the saved answers: what is allowed or denied without asking again",
		Long: `An answer that was given with ` + "`--for session`" + ` or ` + "`--for always`" + ` answers every identical call
without asking. The rules of fairlead.yaml (permissions) are not in this list.`,
		Example: "  fairlead question saved",
		Args:    args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *reader, _ []string) error {
			list, err := client.Standing(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"saved": append([]view.StandingView{}, list...)})
			}
			return a.printStanding(list)
		}),
	}
}

func (a *app) revokeVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Delete a saved answer: the next such call is asked about again",
		Long:    "ID is as `fairlead question saved` prints it.",
		Example: "  fairlead question revoke s3",
		Args:    args(cobra.ExactArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.RevokeStanding(ctx, words[0])
			if err != nil {
				return faulty(err)
			}
			if a.json {
				return a.printJSON(map[string]any{"seq": done.Seq, "id": words[0]})
			}
			_, err = fmt.Fprintf(a.out, "%s is revoked\n", plain(words[0]))
			return err
		}),
	}
}

func (a *app) printStanding(list []view.StandingView) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.out, "no saved answers; save one with `fairlead answer ID yes --for session` or `--for always`")
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSAYS\tAGENT\tFOR\tTOOL\tCALL\tBY\tSINCE")
	for _, s := range list {
		says, until := "no", "always"
		if s.Allow {
			says = "yes"
		}
		if s.Session != "" {
			until = plain(s.Session)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s ago\n", s.ID, says, plain(s.Agent), until, orDash(line(s.Tool, 30)), line(callWords(s.Call), 60), line(s.By, 30), ago(max(0, time.Since(s.At))))
	}
	return table.Flush()
}
