package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/api/repos"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/cli/repositories"
	"github.com/fairlead-dev/fairlead/cli/search"
	"github.com/fairlead-dev/fairlead/read/view"
)

func psCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ps",
		Short: "List the agents: status, session, and anything that contradicts it",
		Long: `A line for each agent: its status, its current and desired state, its session and process, and
remarks. The status is derived from evidence, the first that applies of UNKNOWN, STOPPING, WAITING,
RATE LIMITED, RUNNING, BACKING OFF, FAILED and IDLE. A remark that begins with ? is evidence against the state; ` + "`fairlead why AGENT`" +
			` prints it.`,
		Example: `  fairlead ps
  fairlead ps --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			view, err := client.Agents(ctx)
			if err != nil {
				return err
			}
			if client.Offline != nil {
				view.Stopping = false // the daemon has stopped
			}
			view.Past = client.Past
			return a.Show(view, func() error { return agents.PrintTeam(a.App, a.Out, view, 0) })
		}),
	}
}

func whyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why AGENT",
		Short: "Print the evidence for the state of an agent, with its age",
		Long: `Each piece of evidence agrees with the state (+) or contradicts it (!). Below it are the agent's last
sessions and how they ended.`,
		Example: `  fairlead why coder
  fairlead why coder --json`,
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			why, err := client.Why(ctx, words[0])
			if err != nil {
				return err
			}
			return a.Show(why, func() error { return agents.PrintWhy(a.App, why) })
		}),
	}
}

// completeAgents offers names to the shell; without a daemon those of fairlead.yaml.
func (a *app) completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	conf, err := a.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, agent := range conf.Agents {
		names = append(names, agent.Name+"\t"+agent.Description)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func watchCommand(a *app) *cobra.Command {
	var opts channels.Watched
	cmd := &cobra.Command{
		Use:   "watch [AGENT|SESSION|CHANNEL]",
		Short: "Watch the team, one agent, a session or a channel, live",
		Long: `Without a name it keeps the table of ` + "`fairlead ps`" + ` up to date; if the output is no terminal, it
prints a line for each change. With an agent it prints what the agent says, session after session,
until Ctrl-C. With a session, such as coder-17, it prints that session's output to its end, also if
it is over; ` + "`fairlead why coder`" + ` names them. With a channel it prints the newest lines, and then each new
line. If an agent has the same name as a channel, '#CHANNEL' is the channel. Escape sequences in
what agents say have no effect.`,
		Example: `  fairlead watch
  fairlead watch coder
  fairlead watch coder-17`,
		Args: func(cmd *cobra.Command, words []string) error {
			if err := opts.Valid(); err != nil {
				return cli.Usage(cmd, err)
			}
			if len(words) == 0 && opts != (channels.Watched{Last: cli.WatchLast}) {
				return cli.Usage(cmd, errors.New("--no-follow, --moves and --last are for channels: name one"))
			}
			return cli.Args(cobra.MaximumNArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeWatched,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			if len(words) == 1 {
				return agents.WatchNamed(ctx, a.App, client, words[0], opts)
			}
			switch {
			case client.Offline != nil:
				return client.Offline
			case a.JSON || !a.Screenful():
				return agents.Follow(ctx, a.App, client.Client, apiclient.FromNow, apiclient.JournalQuery{})
			}
			return agents.WatchTeam(ctx, a.App, client.Client)
		}),
	}
	opts.Flags(cmd, "of a channel: ")
	return cmd
}

// completeWatched offers agents and channels.
func (a *app) completeWatched(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := a.completeAgents(cmd, words, begun)
	return append(names, channels.ChannelNames(a.App)...), directive
}

func eventsCommand(a *app) *cobra.Command {
	var query apiclient.JournalQuery
	var follow bool
	var since, until string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened: each change in the journal, one per line",
		Long: `A line has the number of the change, its time, and in words what happened to which agent, run, channel or
question, and who did it. --verbose adds the rule, the states and the event. --follow continues with new
changes. A word such as yesterday is its beginning for --since and its end for --until; last-night is from
18:00 to 08:00.`,
		Example: `  fairlead events --tail 20
  fairlead events --agent coder --since last-night
  fairlead events --agent coder --since 22:00 --until 07:00
  fairlead events --agent coder --follow
  fairlead events --json --after 1200`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			var err error
			if query.Since, query.Until, err = cli.SpanOf(since, until, time.Now()); err != nil {
				return &cli.Coded{Code: cli.ExitUsage, Err: err}
			}
			if follow && client.Offline != nil {
				return client.Offline
			}
			return agents.Events(ctx, a.App, client.Client, query, follow)
		}),
	}
	cmd.Flags().Uint64Var(&query.After, "after", 0, "only what came after this sequence number")
	cmd.Flags().IntVar(&query.Tail, "tail", 0, "begin with this number of the newest changes, at most 1000")
	cmd.Flags().StringVar(&query.Entity, "entity", "", "only this one, as in session/coder or team/team")
	cmd.Flags().StringVar(&query.Agent, "agent", "", "only what this agent did: its orders, sessions, questions and turns")
	cmd.Flags().StringVar(&since, "since", "",
		"only what came after: how long ago, as in 8h or 2d, a time as in 22:00, or today, yesterday, last-night")
	cmd.Flags().StringVar(&until, "until", "", "only what came before")
	cmd.Flags().BoolVar(&follow, "follow", false, "continue with new changes")
	return cmd
}

func searchCommand(a *app) *cobra.Command {
	var q api.SearchQuery
	var since string
	cmd := &cobra.Command{
		Use:   "search WORD...",
		Short: "Search messages, output, questions and changes",
		Long: `It searches the output of all sessions, channels, lead sessions, questions, runs, tasks, dispatches and the
history, the newest first. All words must occur in one passage; "quoted words" must follow each other.
Case and accents do not matter. A word with three characters or more also finds longer words that begin
with it; a shorter one finds only itself. Chinese, Japanese and Korean need no spaces.

The daemon keeps the index, a few seconds behind. Without a daemon the command reads the index as it
is and says how old it is. Nothing found is exit code 0.`,
		Example: `  fairlead search retry upload
  fairlead search '"connection reset"' --agent coder --since 7d
  fairlead search timeout --kind channel,question --json`,
		Args: func(cmd *cobra.Command, words []string) error {
			if strings.TrimSpace(strings.Join(words, " ")) == "" {
				return cli.Usage(cmd, errors.New("nothing to search: name at least one word"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			var err error
			if q.Since, _, err = cli.SpanOf(since, "", time.Now()); err != nil {
				return cli.Usage(cmd, err)
			}
			q.Text = strings.Join(words, " ")
			return a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
				return search.Print(ctx, a.App, client, q)
			})(cmd, words)
		},
	}
	cmd.Flags().StringSliceVar(&q.Kinds, "kind", nil,
		"only output, channel, crew, question, run, task, dispatch or history; several with commas")
	cmd.Flags().StringVar(&q.Agent, "agent", "", "only what concerns this agent")
	cmd.Flags().StringVar(&since, "since", "", "only what is not older: 90m, 7d, 2026-11-25, or a date and a time")
	cmd.Flags().IntVar(&q.Limit, "limit", 20, "the number of results, 100 at most")
	return cmd
}

func digestCommand(a *app) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "digest",
		Short: "Summarize what happened since you last looked",
		Long: `It prints failures, finished work, questions, answers and cost: the same lines as "Since you looked" in Mission
Control. Without --since it begins where everything was marked as seen there, or a day ago.
It prints twelve lines, and up to a hundred with --verbose.`,
		Example: `  fairlead digest --since 8h
  fairlead digest --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			from, _, err := cli.SpanOf(since, "", time.Now())
			if err != nil {
				return &cli.Coded{Code: cli.ExitUsage, Err: err}
			}
			d, err := client.Digest(ctx, from)
			switch {
			case err != nil:
				return err
			case a.JSON:
				return a.PrintJSON(d)
			}
			return agents.PrintDigest(a.App, d)
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "since then: how long ago, as in 8h or 2d, a time as in 22:00, or yesterday, last-night")
	return cmd
}

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

func reposCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repos",
		Short: "List all repositories in which your daemons run, with the number of things that need you",
		Long: `It prints a line for each of your daemons, found by its socket: how many things need you, how many agents work, and
the address of its page. It works in any folder. A socket that does not answer, or does not answer as Fairlead does, is
listed below with the reason. It asks at most 50 sockets. ` + "`fairlead open --dir FOLDER`" + ` opens the page of one.`,
		Example: "  fairlead repos\n  fairlead repos --json\n  fairlead open --dir ~/src/harbour-api",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			here, err := filepath.EvalSymlinks(a.Dir)
			if err != nil {
				here = a.Dir
			}
			all := repos.List(cmd.Context(), here)
			return a.Show(all, func() error { return repositories.Print(a.App, all) })
		},
	}
}

// reading is a command that only reads.
func (a *app) reading(do func(ctx context.Context, r *cli.Reader, words []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) (err error) {
		r, err := a.DialToRead(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, r.Close()) }()
		return do(cmd.Context(), r, words)
	}
}
