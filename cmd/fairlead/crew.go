package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
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
				return crewcli.AwaitCrew(ctx, a.App, client, done, crewcli.MembersOf(done.Team), crewcli.Hatched)
			}
			return crewcli.LeadAsked(a.App, done,
				fmt.Sprintf("will summon %s; `fairlead crew` shows which members have registered",
					cli.HowMany(len(done.Team.Agents), "agent", "agents")))
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when every member has registered or expired")
	return cmd
}

func wakeCommand(a *app) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "wake [AGENT...]",
		Short: "Wake sleeping crew members: all of them, or some by name",
		Long: `The lead is started if it has no session, and asked which members are with it. The others are woken:
for each, the lead gets its soul and what it said last. A member is awake when the lead reports it. Two
members may have the same name; each has an id, which ` + "`fairlead crew --json`" + ` shows.

--wait returns when the lead has reported or was silent for too long; exit code 1 means that a member
is not awake.`,
		Example: `  fairlead crew wake --wait
  fairlead crew wake Wren`,
		Args:              cli.Args(noEmptyNames),
		ValidArgsFunction: a.completeCrew,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			done, err := client.Crew.Wake(ctx, names)
			if err != nil {
				return err
			}
			who := crewcli.MembersOf(done.Team)
			if len(names) > 0 {
				who = slices.DeleteFunc(who, func(id string) bool { return !crewcli.Addressed(done.Team, id, names) })
			}
			if wait {
				return crewcli.AwaitCrew(ctx, a.App, client, done, who, crewcli.Reported)
			}
			asleep := slices.DeleteFunc(who, func(id string) bool { return crewcli.IsAwake(done.Team, id) })
			if len(asleep) == 0 {
				return crewcli.LeadAsked(a.App, done, "was asked which members are awake; by its last report, all are")
			}
			return crewcli.LeadAsked(a.App, done,
				"will wake "+cli.Line(crewcli.NamesOf(done.Team, asleep), cli.ErrorWidth)+"; `fairlead crew` shows which members are awake")
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the lead has reported which members are awake")
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
			return crewcli.LeadAsked(a.App, done, "will end its session; then all members sleep")
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the lead's session is over")
	return cmd
}

// noEmptyNames refuses an empty name, which is mostly a variable of a script that is not set.
func noEmptyNames(_ *cobra.Command, names []string) error {
	if slices.Contains(names, "") {
		return errors.New("an agent's name is empty; `fairlead crew` lists the names")
	}
	return nil
}

func crewShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print how a crew member described itself (its soul)",
		Long: `It prints the text that the member wrote when it took its name. The member gets this text back
each time it wakes, and it never changes. On a terminal, control characters are replaced.`,
		Example:           "  fairlead crew show Wren",
		Args:              cli.Args(cobra.MatchAll(cobra.ExactArgs(1), noEmptyNames)),
		ValidArgsFunction: a.completeCrew,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			doc, err := client.Crew.Document(ctx, words[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(doc)
			}
			soul := doc.Soul
			if soul == "" {
				return fmt.Errorf("%s is %s and has no soul: it has not said who it is", cli.Line(crewcli.CrewName(doc), crewcli.NameWidth),
					cli.Plain(doc.Status))
			}
			if cli.Tty(a.Out) {
				soul = cli.Plain(soul)
			}
			if _, err := io.WriteString(a.Out, soul); err != nil {
				return err
			}
			if soul[len(soul)-1] != '\n' {
				_, err = fmt.Fprintln(a.Out)
			}
			return err
		}),
	}
}

func importCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|FOLDER...",
		Short: "Import crew members from the documents of another machine",
		Long: `A file is the document of one member, as .fairlead/agents keeps it. Of a folder, every file that
ends in .json is imported. An imported member is unknown until the lead reports on it. A member
that is here already, or whose seat is taken, is refused. - reads standard input.`,
		Example: "  fairlead crew import ../laptop/.fairlead/agents",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			var errs []error
			for _, name := range names {
				files, err := crewcli.DocumentsIn(name)
				errs = append(errs, err)
				for _, file := range files {
					errs = append(errs, crewcli.ImportOne(ctx, a.App, client, file))
				}
			}
			return errors.Join(errs...)
		}),
	}
}

func transcriptCommand(a *app) *cobra.Command {
	var asked crewcli.SaidIn
	cmd := &cobra.Command{
		Use:   "transcript",
		Short: "Print what agents and people said, with speaker and session",
		Long: `It covers all channels and the sessions of the lead. It prints the newest lines, oldest first.
The journal keeps them, so they outlive the sessions.`,
		Example: `  fairlead crew transcript --limit 20
  fairlead crew transcript --speaker Wren --search parser`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, words []string) error {
			if asked.Limit < 1 {
				return cli.Usage(cmd, errors.New("--limit is how many lines to show: at least 1"))
			}
			return a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
				return crewcli.Transcript(ctx, a.App, client.Client, asked)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&asked.Speaker, "speaker", "", "only what this one said")
	cmd.Flags().StringVar(&asked.Session, "session", "", "only what was said in this session, as the lines with ── name it")
	cmd.Flags().StringVar(&asked.Search, "search", "", "only what has these words in it, in any case")
	cmd.Flags().IntVar(&asked.Limit, "limit", crewcli.TranscriptLast, "at most so many")
	if err := cmd.RegisterFlagCompletionFunc("speaker", a.completeCrew); err != nil {
		panic("fairlead: transcript has no --speaker: " + err.Error())
	}
	return cmd
}
