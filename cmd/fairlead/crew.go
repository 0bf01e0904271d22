package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	crewcli "github.com/fairlead-dev/fairlead/cli/crew"
)

// crewCommand shows the crew, and groups the commands about it.
func crewCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "crew",
		Short: "Show the lead and its crew, and summon, wake or look at its members",
		Long: `The crew is an agent that leads (team.lead in fairlead.yaml) and the members that it summoned.
` + "`fairlead crew`" + ` prints a line for each seat, with the lead in the middle. Which members are
awake is what the lead reported; a member that it has not reported on in its session is shown as
unknown. Below the list it prints what you can do next, and the latest problems.

--all also shows expired members: they were summoned and never came.`,
		Example: `  fairlead crew
  fairlead crew summon --wait
  fairlead crew show Wren`,
		Args: knownVerb,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			view, err := client.Crew.Show(ctx, all)
			if err != nil {
				return err
			}
			return a.Show(view, func() error { return crewcli.PrintCrew(a.App, view) })
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show expired members")
	return noun(cmd, summonCommand(a), wakeCommand(a), sleepCommand(a), crewShowCommand(a), transcriptCommand(a), importCommand(a))
}

// completeCrew completes the names of the crew's present agents; none if no daemon runs.
func (a *app) completeCrew(cmd *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	client, err := a.Dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), crewcli.CrewWait)
	defer cancel()
	view, err := client.Crew.Show(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, doc := range view.Agents {
		if doc.Name != nil && !strings.ContainsAny(cli.Plain(*doc.Name), "\t\n\uFFFD") {
			names = append(names, *doc.Name+"\t"+doc.Status)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
