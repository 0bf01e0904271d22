package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	crewcli "github.com/fairlead-dev/fairlead/cli/crew"
)

func summonCommand(a *app) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "summon",
		Short: "Summon the crew: as many members as team.size says",
		Long: `The lead receives the list of free seats and starts one member on each. A member is alive when the
lead has registered it. A member that is not registered within team.hatch_timeout expires. A crew is
summoned once; after that, ` + "`fairlead crew wake`" + ` wakes it.

--wait returns when no member is still expected; exit code 1 means that a member did not register.`,
		Example: "  fairlead crew summon --wait",
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			done, err := client.Crew.Summon(ctx)
			if err != nil {
				return err
			}
			if wait {
				return crewcli.AwaitCrew(ctx, a.App, client, done, crewcli.EverybodyOf(done.Team), crewcli.Hatched)
			}
			return crewcli.LeadAsked(a.App, done, fmt.Sprintf("is to summon %s; `fairlead crew` shows who comes", cli.HowMany(len(done.Team.Agents), "agent", "agents")))
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when everybody has come, or expired")
	return cmd
}

func wakeCommand(a *app) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "wake [AGENT...]",
		Short: "Wake sleeping crew members: all of them, or some by name",
		Long: `The lead is started if it has no session, and asked which members are with it. The others are woken:
for each, the lead gets its soul and what it said last. A member is awake when the lead says so. Two
members may have the same name; each has an id, which ` + "`fairlead crew --json`" + ` shows.

--wait returns when the lead has reported or was silent for too long; exit code 1 means that a member
is not awake.`,
		Example: `  fairlead crew wake --wait
  fairlead crew wake Wren`,
		Args:              cli.Args(namesSomebody),
		ValidArgsFunction: a.completeCrew,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			done, err := client.Crew.Wake(ctx, names)
			if err != nil {
				return err
			}
			who := crewcli.EverybodyOf(done.Team)
			if len(names) > 0 {
				who = slices.DeleteFunc(who, func(id string) bool { return !crewcli.Addressed(done.Team, id, names) })
			}
			if wait {
				return crewcli.AwaitCrew(ctx, a.App, client, done, who, crewcli.Reported)
			}
			asleep := slices.DeleteFunc(who, func(id string) bool { return crewcli.IsAwake(done.Team, id) })
			if len(asleep) == 0 {
				return crewcli.LeadAsked(a.App, done, "is asked who is awake: everybody was, by its last word")
			}
			return crewcli.LeadAsked(a.App, done, "is to wake "+cli.Line(crewcli.NamesOf(done.Team, asleep), cli.ErrorWidth)+"; `fairlead crew` shows who does")
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the lead has said who is awake")
	return cmd
}

func sleepCommand(a *app) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "sleep",
		Short: "Let the crew sleep: the session of the lead ends",
		Long: `Members live in the session of the lead, so they sleep when it ends. Their souls and what they said
are kept; ` + "`fairlead crew wake`" + ` gives them back. --wait returns when the session is over.`,
		Example: "  fairlead crew sleep --wait",
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			done, err := client.Crew.Sleep(ctx)
			if err != nil {
				return err
			}
			if wait {
				return crewcli.AwaitCrew(ctx, a.App, client, done, nil, crewcli.LeadGone)
			}
			if done.Team.Lead.Session == "" {
				return crewcli.LeadAsked(a.App, done, "has no session: the crew sleeps already")
			}
			return crewcli.LeadAsked(a.App, done, "is to end its session; then everybody sleeps")
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the lead's session is over")
	return cmd
}

// namesSomebody refuses an empty name, which is mostly a variable of a script that is not set.
func namesSomebody(_ *cobra.Command, names []string) error {
	if slices.Contains(names, "") {
		return errors.New("an agent's name is empty; `fairlead crew` lists the names")
	}
	return nil
}
