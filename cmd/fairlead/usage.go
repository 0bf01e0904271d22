package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) usageVerb() *cobra.Command {
	var archived bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show tokens and cost: by agent, by day, by run",
		Long: `The numbers are what agents report. An agent that reports nothing has no row. Days are UTC, and only
the newest days are kept. fairlead.yaml sets limits. --archived also shows archived runs; it reads the
whole journal for them.`,
		Example: `  fairlead usage
  fairlead usage --archived --json`,
		Args: args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *reader, _ []string) error {
			used, err := client.Usage(ctx, archived)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(used)
			}
			return a.printUsage(used, archived)
		}),
	}
	cmd.Flags().BoolVar(&archived, "archived", false, "also the runs that were archived")
	return cmd
}

func (a *app) retryVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "retry AGENT",
		Short: "Start a rate-limited agent before its limit resets",
		Long: `A rate limit pauses the agent until its provider's limit resets; its desired state stays. This
command starts it now, for example after you bought more.`,
		Example:           "  fairlead retry coder",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.RetryAgent(ctx, words[0])
			if err != nil {
				return faulty(err)
			}
			if a.json {
				return a.printJSON(map[string]any{"seq": done.Seq, "agent": words[0]})
			}
			_, err = fmt.Fprintf(a.out, "%s is tried again\n", plain(words[0]))
			return err
		}),
	}
}

func (a *app) printUsage(used view.UsageTable, archived bool) error {
	more := ""
	if !archived && used.Archived > 0 {
		more = howMany(used.Archived, "archived run is", "archived runs are") + " not shown; `fairlead usage --archived` does\n"
	}
	if len(used.Agents)+len(used.Days)+len(used.Runs) == 0 {
		_, err := fmt.Fprintln(a.out, "nobody has reported any use yet")
		if err == nil {
			_, err = io.WriteString(a.out, more)
		}
		return err
	}
	parts := []struct {
		head string
		rows []view.UsageRow
		name func(view.UsageRow) string
	}{
		{"AGENT", used.Agents, func(r view.UsageRow) string { return plain(r.Agent) }},
		{"DAY\tAGENT", used.Days, func(r view.UsageRow) string { return plain(r.Day) + "\t" + plain(r.Agent) }},
		{"RUN\tWORKFLOW", used.Runs, func(r view.UsageRow) string {
			return plain(r.Run) + "\t" + line(r.Workflow, stepWidth) + archivedMark(r)
		}},
	}
	shown := false
	for _, part := range parts {
		if len(part.rows) == 0 {
			continue
		}
		if shown {
			fmt.Fprintln(a.out)
		}
		shown = true
		if err := printUses(a.out, part.head, part.rows, part.name); err != nil {
			return err
		}
	}
	_, err := io.WriteString(a.out, more)
	return err
}

func archivedMark(r view.UsageRow) string {
	if r.Archived {
		return " (archived)"
	}
	return ""
}

func printUses(out io.Writer, head string, rows []view.UsageRow, name func(view.UsageRow) string) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, head+"\tSESSIONS\tTOKENS IN\tOUT\tCOST")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t$%.2f\n", name(r), r.Sessions, r.InputTokens, r.OutputTokens, r.CostUSD)
	}
	return table.Flush()
}
