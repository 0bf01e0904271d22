package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
	"github.com/fairlead-dev/fairlead/view"
)

func usageCommand(a *app) *cobra.Command {
	var archived, asCSV bool
	var by string
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show tokens and cost: by day, agent, task and model",
		Long: `The numbers are what agents report. An agent that reports nothing has no row. Days are UTC, and only
the newest days are kept. fairlead.yaml sets limits. --archived also shows archived runs; it reads the
whole journal for them. --by sums up by one thing, with the total. The model is what the agent's program
says; what an agent used without naming one is "not reported".`,
		Example: `  fairlead usage
  fairlead usage --by model
  fairlead usage --archived --json
  fairlead usage --csv > usage.csv`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			used, err := client.Usage(ctx, archived)
			if err != nil {
				return err
			}
			groups := used.By(by)
			switch {
			case by != "" && !slices.Contains(view.UsageBy, by):
				return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("--by takes %s, not %q", strings.Join(view.UsageBy, ", "), by)}
			case by != "" && asCSV:
				_, err := a.Out.Write(groups.CSV())
				return err
			case by != "" && a.JSON:
				return a.PrintJSON(groups)
			case by != "":
				return agents.PrintGroups(a.App, groups)
			case asCSV:
				_, err := a.Out.Write(view.UsageCSV(used))
				return err
			case a.JSON:
				return a.PrintJSON(used)
			}
			return agents.PrintUsage(a.App, used, archived)
		}),
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV: a line for each agent and day, for each run, and for each model")
	cmd.Flags().StringVar(&by, "by", "", "sum up by `WHAT`: day, agent, task or model")
	cmd.Flags().BoolVar(&archived, "archived", false, "also the runs that were archived")
	return cmd
}

func retryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "retry AGENT",
		Short: "Start a rate-limited agent before its limit resets",
		Long: `A rate limit pauses the agent until its provider's limit resets; its desired state stays. This
command starts it now, for example after you bought more.`,
		Example:           "  fairlead retry coder",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.RetryAgent(ctx, words[0])
			if err != nil {
				return cli.Faulty(err)
			}
			return a.Say(map[string]any{"seq": done.Seq, "agent": words[0]}, "%s is tried again", cli.Plain(words[0]))
		}),
	}
}
