package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/engine"
)

func (a *app) standingVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "standing",
		Short: "List the answers that stand: what is allowed or denied without asking again",
		Long: `An answer that was given with ` + "`--for session`" + ` or ` + "`--for always`" + ` answers every call exactly like
the one that it was given to, without anybody being asked. What fairlead.yaml allows and denies
(permissions) is not among them: it stands there.`,
		Args: args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *api.Client, _ []string) error {
			list, err := client.Standing(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"standing": append([]engine.StandingView{}, list...)})
			}
			return a.printStanding(list)
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "revoke ID",
		Short: "Have an answer stand no longer: the next call like it is asked about",
		Args:  args(cobra.ExactArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *api.Client, words []string) error {
			done, err := client.RevokeStanding(ctx, words[0])
			if err != nil {
				return faulty(err)
			}
			if a.json {
				return a.printJSON(map[string]any{"seq": done.Seq, "id": words[0]})
			}
			_, err = fmt.Fprintf(a.out, "%s stands no longer\n", plain(words[0]))
			return err
		}),
	})
	return cmd
}

func (a *app) printStanding(list []engine.StandingView) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.out, "no answer stands; give one with `fairlead answer ID yes --for session` or `--for always`")
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
