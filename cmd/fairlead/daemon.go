package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/cli/demo"
	"github.com/fairlead-dev/fairlead/cli/doctor"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cli/setup"
)

func upCommand(a *app) *cobra.Command {
	var opts daemon.UpOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the daemon: adopt running sessions and start agents",
		Long: `It starts Fairlead on this workspace, in the foreground. It locks the workspace, adopts every
session that outlived the last daemon, reads what was written into the agents' files meanwhile, and
only then starts agents.

When it is ready it prints one line on standard output: ready, and the address of Mission Control.
The address holds no secret. On a terminal with a display it opens the page and signs the browser
in; elsewhere ` + "`fairlead open`" + ` does. Ctrl-C, SIGTERM or ` + "`fairlead down`" + ` end it: sessions finish first, and a second
signal ends them. If it is killed in any other way, the agents keep working and the next
` + "`fairlead up`" + ` adopts them.

It prints on standard error what it adopts and what it will do. --plan only prints that: it journals
no change, writes no file and touches no process. Each agent has a line (adopt, start,
leave at rest, withdraw, ask), and below it the evidence: + agrees with the journal, ! contradicts
it. If a daemon runs already, it says so.`,
		Example: `  fairlead up
  fairlead up --detach --no-browser
  fairlead up --plan`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Plan && opts.Detach {
				return cli.Usage(cmd, errors.New("--plan starts nothing, so --detach has no meaning with it; pass one of the two"))
			}
			if opts.Plan {
				return daemon.Plan(cmd.Context(), a.App)
			}
			if opts.Detach {
				return daemon.UpDetached(cmd.Context(), a.App, opts)
			}
			return daemon.Up(cmd.Context(), a.App, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Listen, "listen", "", "address to serve on (default: listen in fairlead.yaml; port 0 picks one)")
	cmd.Flags().BoolVar(&opts.Detach, "detach", false, "return when the daemon is ready; it continues in the background")
	cmd.Flags().BoolVar(&opts.NoBrowser, "no-browser", false, "do not open Mission Control in a browser")
	cmd.Flags().StringVar(&opts.Governing, "governing", "",
		"confirm a change of fairlead.yaml that an agent may have made, with this `hash`")
	cmd.Flags().BoolVarP(&opts.Verbose, "verbose", "v", false, "log what the daemon does")
	cmd.Flags().BoolVar(&opts.Plan, "plan", false, "print what it would adopt and do, and do nothing")
	return cmd
}

func downCommand(a *app) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the daemon; sessions finish first",
		Long: `It asks the daemon to stop and waits until it has ended. Running sessions finish, and no new session
starts. Each agent_state.json then says pause; the desired states are kept for the next
` + "`fairlead up`" + `. --now ends the sessions with all their processes; an interrupted conversation
continues with the next ` + "`fairlead up`" + ` (` + "`resume`" + ` in fairlead.yaml). Ctrl-C ends only the waiting.

On a host it stops only the daemon of the host; the team continues. If three engine hosts replicate the journal, another
one leads when the leader is down; to hold the whole team, use ` + "`fairlead hold`" + `.`,
		Example: `  fairlead down
  fairlead down --now`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Down(cmd.Context(), a.App, now) },
	}
	cmd.Flags().BoolVar(&now, "now", false, "end sessions instead of letting them finish")
	return cmd
}

func reloadCommand(a *app) *cobra.Command {
	var want api.ReloadBody
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Load fairlead.yaml again in the running daemon",
		Long: `It makes the daemon load fairlead.yaml again, prints what changed, and returns when the daemon serves
with it. If the file has faults, it prints them with their lines, and the daemon keeps its
configuration. Running sessions continue with the settings that they started with.

A file that changed while a sandboxed agent ran that may write it is not loaded until a person has
confirmed the change: on a terminal the command shows it and asks, elsewhere it exits with 3, and
--governing confirms what ` + "`fairlead inbox`" + ` shows.`,
		Example: `  fairlead reload
  fairlead reload --json
  fairlead reload --governing 3f2a9c0e51d84b7790aa61c2f5e8d317`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Reload(cmd.Context(), a.App, want) },
	}
	cmd.Flags().StringVar(&want.Governing, "governing", "", "confirm the change of fairlead.yaml with this `hash`, as the inbox shows it")
	return cmd
}

func initCommand(a *app) *cobra.Command {
	var lead, alone bool
	var agents []string
	cmd := &cobra.Command{
		Use:         "init",
		Annotations: map[string]string{cli.HereOnly: "a workspace is made in the current folder"},
		Short:       "Write a first fairlead.yaml, with an agent that works at once",
		Long: `It writes a commented fairlead.yaml and the script of a first agent into the current folder, and an
.agents/.gitignore that keeps the files of runs out of git. It writes the first free port from 7466.
It changes no file that exists.

If agent programs that Fairlead supports are installed, it asks on a terminal which of them to add;
in a script, name each with --agent. They replace the scripted first agent.

--lead writes LEAD.md instead: the instructions for an agent that leads a crew. team.lead in
fairlead.yaml names that agent.`,
		Example: `  fairlead init
  fairlead init --agent claude --agent codex`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			switch {
			case lead && (alone || len(agents) > 0):
				return errors.New("--lead writes LEAD.md and nothing else; take the other flags out")
			case lead:
				return setup.InitLead(a.App)
			case alone && len(agents) > 0:
				return errors.New("--agent and --no-agents contradict each other; take one out")
			}
			chosen, err := setup.ChooseAgents(a.App, agents, alone)
			if err != nil {
				return err
			}
			return setup.Init(a.App, chosen)
		},
	}
	cmd.Flags().BoolVar(&lead, "lead", false, "write LEAD.md, the instructions of a lead, and nothing else")
	cmd.Flags().StringArrayVar(&agents, "agent", nil,
		"an installed agent program to put on the team: "+strings.Join(setup.DrivenNames(), ", "))
	cmd.Flags().BoolVar(&alone, "no-agents", false, "ask nothing, and write only the scripted agent")
	return cmd
}

func demoCommand(a *app) *cobra.Command {
	var opts demo.DemoOptions
	var machines int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try Fairlead with scripted agents in a scratch repository",
		Long: `It makes a scratch git repository, starts Mission Control, and runs scripted agents that do real
work there: they write files, run tests and commit. Two agents do three tasks, each in its own folder:
one task comes back with a comment, one with a conflict, and two then wait for you. Three agents work
at the same time, and one of these fails at times. Two talk in a channel, review each other's work, and
answer you. One leads a crew of eight. A workflow writes notes, runs tests, and then waits for your approval in the inbox.
It needs git, and no account, key or network.

--headless with --for runs it for a while without a page, then stops and prints what happened; with
--json as one line.

--hosts 3 shows a team of three hosts instead. Each host is a folder on this machine; they connect over
loopback. The demo kills all processes of a host while it works on a task. The leader notices that, a new
attempt of the step begins on another host, and the task lands. This takes about a minute and a half,
because the demo uses the same lease times as every team. Then the demo ends. It needs Linux.`,
		Example: `  fairlead demo
  fairlead demo --hosts 3
  fairlead demo --headless --for 20s --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("hosts") {
				return demo.Hosts(cmd.Context(), a.App, demo.HostsOptions{DemoOptions: opts, Number: machines})
			}
			if opts.Headless && opts.Length == 0 {
				opts.Length = 20 * time.Second
			}
			return demo.Demo(cmd.Context(), a.App, opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Headless, "headless", false, "no page and no browser")
	cmd.Flags().DurationVar(&opts.Length, "for", 0, "stop after this time (default: with Ctrl-C; headless 20s)")
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "do not remove the scratch repository")
	cmd.Flags().IntVar(&machines, "hosts", 0, "show a team with this `number` of hosts, 2 to 5, and kill one of them")
	cmd.Flags().StringVar(&opts.Listen, "listen", "127.0.0.1:0", "address to serve on")
	return cmd
}

func doctorCommand(a *app) *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems in this workspace, and say how to fix them",
		Long: `It checks the configuration, the agents' programs, the workspace, the whole hash chain of the
journal, the agents' files against the journal, the process beside each open session, the session
folders, the sockets, the daemon, the disk, the clock, and leftover processes.

It starts the agent programs that it finds in PATH and knows, four at a time, and asks each for its
version, whether it can resume conversations, how it takes the team's tools, and what sandbox holds
it. It starts no conversation, and without network where the kernel allows that. Findings are printed
in the order of the checks; on a terminal a line says which check it waits for.

It changes nothing. --fix fixes what it can and prints each step: it removes stale sockets and the
file of a dead daemon, ends leftover processes, and cuts off a torn last line of a transition log.
It never changes the journal. Exit code 1 means that there is a problem.`,
		Example: `  fairlead doctor
  fairlead doctor --fix`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return doctor.Doctor(cmd.Context(), a.App, fix)
		},
	}
	a.probeFlags(cmd)
	cmd.Flags().BoolVar(&fix, "fix", false, "fix what can be fixed, and report each fix; the journal is never changed")
	return cmd
}

// probeFlags make doctor the process that probes. People have no use for them.
func (a *app) probeFlags(cmd *cobra.Command) {
	probes := cmd.Flags().Bool("probe", false, "")
	apart := cmd.Flags().Bool("apart", false, "")
	for _, name := range []string{"probe", "apart"} {
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic("doctor: " + err.Error())
		}
	}
	verb := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		if *probes {
			return probe.Here(cmd.Context(), a.App, *apart)
		}
		return verb(cmd, words)
	}
}

func compactCommand(a *app) *cobra.Command {
	opts := daemon.CompactOptions{Older: cli.Days(7 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Compress old output and the old part of the journal",
		Long: `It compresses the output of sessions that ended before --older-than, and the changes of the journal
from before that. Nothing is lost: the hash chain stays, and search, the output in Mission Control,
transcripts, --at and the time slider show the same as before. Output becomes spool.0000.gz
and so on in the session's folder, and changes move to .fairlead/journal.db-archive; zcat reads
both. The journal needs its archive: copy and move them together.

It works with and without a daemon, and may be stopped at any time. While a daemon runs, the
journal's file keeps its size and uses the freed part for its next changes; without one, the file
becomes smaller.

` + "`team.disk`" + ` in fairlead.yaml is the disk that .fairlead should take. Near it, ` + "`fairlead up`" + `,
` + "`fairlead doctor`" + ` and a notice say so. --dry-run compresses the output without writing it,
so it takes as long.`,
		Example: `  fairlead compact --dry-run
  fairlead compact --older-than 12h`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Compact(cmd.Context(), a.App, opts) },
	}
	cmd.Flags().Var(&opts.Older, "older-than", "only what ended at least this time ago, such as 30d or 12h")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "say what would be freed, and change nothing")
	return cmd
}

func openCommand(a *app) *cobra.Command {
	var code, list bool
	var revoke string
	cmd := &cobra.Command{
		Use:   "open [AGENT:PORT]",
		Short: "Open Mission Control in a browser, or a server that an agent has started",
		Long: `The address that is opened contains a login code. The code is valid once and for 30 seconds; the page exchanges it
for a secret of its own and stays signed in until you revoke that with --revoke. With --code the code is printed to
be typed into the page, on a phone for example; the phone needs a tunnel to the port, or a proxy whose origin is
named under origins in fairlead.yaml.

With AGENT:PORT, or TASK:PORT, the server that listens at that port inside the agent's wall is opened. The address has
a secret that counts once; then the browser has a cookie. It leads there as long as the session runs.`,
		Example: "  fairlead open\n  fairlead open coder:3000\n  fairlead open --code\n  fairlead open --list\n  fairlead open --revoke l3",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, args []string) error {
			switch {
			case len(args) == 1 && (list || code || revoke != ""):
				return cli.Faulty(errors.New("AGENT:PORT stands alone, without --code, --list and --revoke"))
			case len(args) == 1:
				return openPort(ctx, a, client, args[0])
			case list:
				return listLogins(ctx, a, client)
			case revoke != "":
				if _, err := client.Logins.Revoke(ctx, revoke); err != nil {
					return err
				}
				return a.Say(map[string]string{"revoked": revoke}, "%s is signed out", revoke)
			}
			issued, err := client.Logins.NewCode(ctx)
			if err != nil {
				return err
			}
			page := client.Daemon().Address + "/"
			url := daemon.SignInURL(page, issued.Code)
			if a.JSON {
				return a.PrintJSON(map[string]any{
					"url": url, "page": page, "origins": append([]string{}, client.Daemon().Origins...),
					"code": issued.Code, "expires_at": issued.ExpiresAt,
				})
			}
			if code {
				for _, origin := range client.Daemon().Origins {
					page += " or " + origin + "/"
				}
				_, err := fmt.Fprintf(a.Out, "%s\nopen %s and enter this code within 30 seconds; it is valid once\n", issued.Code, page)
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s\nthis address is valid once and for 30 seconds; then the page is at %s\n", url, page)
			daemon.OpenBrowser(url)
			return err
		}),
	}
	cmd.Flags().BoolVar(&code, "code", false, "print a login code to type, and open nothing")
	cmd.Flags().BoolVar(&list, "list", false, "list the browsers that are signed in")
	cmd.Flags().StringVar(&revoke, "revoke", "", "sign the browser with this `ID` out")
	cmd.MarkFlagsMutuallyExclusive("code", "list", "revoke")
	return cmd
}

// openPort opens a server that an agent has started.
func openPort(ctx context.Context, a *app, client *apiclient.Client, where string) error {
	target, text, _ := strings.Cut(where, ":")
	port, err := strconv.ParseUint(text, 10, 16)
	if target == "" || err != nil || port == 0 {
		return cli.Faulty(fmt.Errorf("%q is no AGENT:PORT; write the agent or the task, a colon and the port, such as coder:3000", where))
	}
	opened, err := client.OpenPort(ctx, target, int(port))
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(opened)
	}
	_, err = fmt.Fprintf(a.Out, "%s\nthis address is valid once; then the browser reaches port %d of %s at %s\n", opened.URL, port, opened.Session, opened.Address)
	daemon.OpenBrowser(opened.URL)
	return err
}

// listLogins prints the browsers that are signed in.
func listLogins(ctx context.Context, a *app, client *apiclient.Client) error {
	all, err := client.Logins.List(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"logins": all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.Out, "no browser is signed in; `fairlead open` signs one in")
		return err
	}
	for _, l := range all {
		fmt.Fprintf(a.Out, "%-5s used %s ago, signed in %s  %s\n", l.ID, cli.Ago(time.Since(l.UsedAt)),
			l.CreatedAt.Local().Format(time.DateTime), cli.Line(l.Name, 80))
	}
	return nil
}
