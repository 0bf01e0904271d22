package main

import (
	"context"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/hosts"
)

// clusterCommand is about what this machine is in a cluster.
func clusterCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "cluster",
		Short: "Let other machines run sessions of this team",
		Long: `A team runs on one machine unless you make it a cluster. Then this machine leads: it has the journal
and decides. Other machines join with an invitation and run sessions of agents that have ` + "`host`" + ` in
fairlead.yaml. ` + "`fairlead host`" + ` invites and removes these machines, ` + "`fairlead hosts`" + ` lists them.`,
		Example: `  fairlead cluster init --listen 192.168.1.5:4222
  fairlead cluster status`,
	}, clusterInitCommand(a), clusterListenCommand(a), clusterStatusCommand(a), clusterLeadCommand(a), clusterLeaveCommand(a))
}

func clusterInitCommand(a *app) *cobra.Command {
	var want hosts.Cluster
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make this machine the leader of a cluster",
		Long: `It makes the team's certificate authority and this machine's certificate in .fairlead/cluster, where
only you can read them. The daemon then listens for other hosts on one port: for those that join and
those that run sessions. Both sides check each other's certificate of the team (TLS 1.3).

Without --listen it listens on ` + hosts.ListenDefault + `, which only this machine can reach. --listen takes the
address at which other machines reach this one; 0.0.0.0:4222 means every address. A firewall must let the
hosts connect to that port. Hosts need no open port.

If the daemon runs already, run ` + "`fairlead reload`" + ` so that it listens.`,
		Example: `  fairlead cluster init --listen 192.168.1.5:4222
  fairlead cluster init --listen build.lan:4222 --capacity 8`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return hosts.Init(a.App, want) },
	}
	cmd.Flags().StringVar(&want.Name, "name", "", "the `name` of this machine as a host (default: its host name)")
	cmd.Flags().StringVar(&want.Listen, "listen", "", "`address` and port for other hosts (default: "+hosts.ListenDefault+")")
	cmd.Flags().IntVar(&want.Capacity, "capacity", 0,
		"`number` of sessions of agents with host in fairlead.yaml that run here at one time (default: 4)")
	cmd.Flags().StringVar(&want.Team, "team", "", "the `name` of the team for its hosts (default: the name of the folder)")
	return cmd
}

func clusterListenCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "listen ADDRESS:PORT",
		Short: "Change the address at which this machine listens for hosts",
		Long: `For a leader whose address has changed, or that listened on loopback until now. The authority, the hosts
and the journal stay as they are. The leader listens there after ` + "`fairlead reload`" + ` or the next ` + "`fairlead up`" + `, with
a certificate for the new address. Then run ` + "`fairlead host leader`" + ` on each host. No session is lost if the hosts
are connected again within 45 seconds.

An engine host that does not lead can get another address, too. After its restart it sends the address to the
leader, and all hosts learn it from the leader.`,
		Example: "  fairlead cluster listen 192.168.1.5:4222",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, words []string) error { return hosts.Listen(a.App, words[0]) },
	}
}

func clusterStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what this machine is in a cluster",
		Long: `It prints the team, the role and the name of this machine, the leader's addresses, when the
certificate ends, and the fingerprint of the team's certificate authority. For a replicated journal it also
prints which host leads, and whether the copies are in sync.`,
		Example: "  fairlead cluster status",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return hosts.Status(cmd.Context(), a.App) },
	}
}

func clusterLeadCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "lead NAME",
		Short: "Let another engine host lead",
		Long: `Use it before maintenance of the leader's machine, and again to return to that machine. Run it on the leader, or on
the host that will lead. The old leader becomes a host, and its sessions continue there. For some seconds orders
are refused. A run with its own worktree inside the repository continues on the new leader; any other run waits
until the machine on which it began leads again.`,
		Example:           "  fairlead cluster lead b",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeHosts,
		RunE:              func(cmd *cobra.Command, words []string) error { return hosts.Lead(cmd.Context(), a.App, words[0]) },
	}
}

func clusterLeaveCommand(a *app) *cobra.Command {
	var force, lost bool
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "End this machine's part in a cluster",
		Long: `On a host it drains the host first: no new session starts there, and the command waits until the last
session has ended. Then it stops Fairlead on the host and removes the host's keys. To come back the host
needs a new invitation. If the leader is gone for good, --force removes the keys without the leader; a session
that still runs ends by its own deadline.

On the leader it removes the certificate authority, so that no host can connect again. It is refused while
other hosts belong to the team: remove them first. The journal and the repository stay as they are.

An engine host that leaves renames its copy of the journal to .fairlead/journal.db.left-TIME.
On the leader of three engine hosts the command takes the journal back to this machine, with the same history;
the other engine hosts become ordinary hosts. Run it again to end the cluster.

If most engine hosts are lost for good, orders are refused. --others-lost lets this one lead with its own
copy of the journal, which is verified first. Orders that only the lost ones have are missing then.
Use the engine host whose copy is longest: ` + "`fairlead events --json | tail -n 1`" + ` shows where the copy ends
while Fairlead does not run there. The others must never start again with their present files.`,
		Example: `  fairlead cluster leave
  fairlead cluster leave --force
  fairlead cluster leave --others-lost`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return hosts.Leave(cmd.Context(), a.App, force, lost) },
	}
	cmd.Flags().BoolVar(&lost, "others-lost", false, "the other engine hosts are lost for good: lead with the copy of this machine")
	cmd.Flags().BoolVar(&force, "force", false, "remove the keys also if the leader does not answer, or if hosts belong to the team")
	return cmd
}

// hostCommand is about the machines of a team.
func hostCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "host",
		Short: "Invite a machine, join a team, drain and remove hosts",
		Long: `A host is a machine that runs sessions of the team. ` + "`fairlead host invite`" + ` on the leader prints a token;
` + "`fairlead host join`" + ` on the other machine uses it. Before that, run ` + "`fairlead cluster init`" + ` on the leader.`,
		Example: `  fairlead host invite --label gpu
  fairlead host drain b`,
	}, hostInviteCommand(a), hostJoinCommand(a), hostLeaderCommand(a), hostDrainCommand(a), hostRemoveCommand(a))
}

func hostInviteCommand(a *app) *cobra.Command {
	var labels []string
	var engine bool
	cmd := &cobra.Command{
		Use:   "invite",
		Short: "Print a token with which one machine can join",
		Long: `The token is valid for 15 minutes and for one host. Keep it secret: every person who has it can join. The
daemon stores only its hash. --label gives the host a label; agents with ` + "`host: {labels: [gpu]}`" + ` in
fairlead.yaml run on hosts with that label.

--engine invites an engine host, which also stores the journal. With three engine hosts, the leader included,
the journal is on all three, so no history is lost with one machine.`,
		Example: `  fairlead host invite
  fairlead host invite --engine
  fairlead host invite --label gpu --label big`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return hosts.Invite(ctx, a.App, client, labels, engine)
		}),
	}
	cmd.Flags().BoolVar(&engine, "engine", false, "the host also stores the journal")
	cmd.Flags().StringArrayVar(&labels, "label", nil, "a `label` of the host; may be repeated")
	return cmd
}

func hostJoinCommand(a *app) *cobra.Command {
	var opts hosts.Joining
	cmd := &cobra.Command{
		Use:         "join TOKEN",
		Annotations: map[string]string{cli.HereOnly: "a host is made in the current folder"},
		Short:       "Make this machine a host of a team",
		Long: `TOKEN is what ` + "`fairlead host invite`" + ` printed on the leader; - reads it from standard input, so that other
users of this machine do not see it. Run the command in an empty folder, which becomes a git repository,
or at the top of a clone of the team's repository. It makes this machine's keys in .fairlead/cluster,
proves to the leader that it has the token, and gets a certificate.

Then ` + "`fairlead up`" + ` runs the host: it connects to the leader and runs the sessions that the leader places
there. The agents' programs must be installed here, and you must be signed in to their providers.

--engine is for a token of ` + "`fairlead host invite --engine`" + `: the host also stores the journal. Run the command in
a clone of the repository. --listen is the address at which the other engine hosts reach this machine. The
NATS server of the host listens on the next port.`,
		Example: `  fairlead host join fli1_...
  fairlead host join - --name b --capacity 8 < token
  fairlead host join - --engine --listen 192.168.1.7:4222 < token`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			return hosts.Join(cmd.Context(), a.App, words, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Name, "name", "", "the `name` of this machine as a host (default: its host name)")
	cmd.Flags().StringArrayVar(&opts.Labels, "label", nil, "a `label` of the host, in addition to those of the invitation; may be repeated")
	cmd.Flags().IntVar(&opts.Capacity, "capacity", 0, "`number` of sessions that run here at one time (default: 4)")
	cmd.Flags().BoolVar(&opts.Engine, "engine", false, "the host also stores the journal")
	cmd.Flags().StringVar(&opts.Listen, "listen", "", "`address` and port at which the other engine hosts reach this machine")
	return cmd
}

func hostLeaderCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "leader ADDRESS:PORT...",
		Short: "Set the addresses of the leader on a host",
		Long: `Run it on the host, when the leader's address has changed. The host tries the addresses in turn, and accepts only
the leader of its own team. Its keys, labels and sessions stay as they are; it need not join again.
A running daemon uses the addresses when it has no connection; on an engine host it uses them after its next start.`,
		Example: `  fairlead host leader 192.168.1.8:4222
  fairlead host leader build.lan:4222 192.168.1.8:4222`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, words []string) error { return hosts.Leader(a.App, words) },
	}
}

func hostDrainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "drain NAME",
		Short:             "Let a host finish its sessions and leave",
		Long:              `It gets no new session. When its last session has ended, it leaves the team.`,
		Example:           "  fairlead host drain b",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeHosts,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return hosts.Drain(ctx, a.App, client, words[0])
		}),
	}
}

func hostRemoveCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a host out of the team at once",
		Long: `Use it for a machine that is lost, or that you do not trust; drain any other host instead. Its connection is
closed, and its certificate is refused from then on. Sessions that run there end by their own deadline within a
minute. As on_lost in fairlead.yaml says, a new attempt begins on another host, the step waits, or you are asked.

An engine host of a replicated journal can be removed or drained only while three others are connected: invite
another one first. Fairlead then makes the third copy of the journal again.

It asks for confirmation, unless you pass --yes.`,
		Example:           "  fairlead host remove b\n  fairlead host remove b --yes",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeHosts,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return hosts.Remove(ctx, a.App, client, words[0], yes)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func hostsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "hosts",
		Short: "List the machines of the team, with their sessions and leases",
		Long: `A line for each host: its state, its sessions and how many it may run, how long ago it renewed its lease,
its labels, its version and address, and what it is doing. A host renews every 5 seconds. Without a
renewal it is doubted after 15 seconds, its sessions end by their own deadline after 45, and it is lost after 65.
Then new attempts of their steps begin on other hosts, or wait, as on_lost in fairlead.yaml says.`,
		Example: `  fairlead hosts
  fairlead hosts --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			return hosts.List(ctx, a.App, client)
		}),
	}
}

// completeHosts offers the names of hosts to the shell.
func (a *app) completeHosts(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if client, err := a.Dial(); err == nil {
		defer client.Close()
		all, _ := client.Hosts(cmd.Context()) // without an answer nothing is offered
		for i := range all.Hosts {
			names = append(names, all.Hosts[i].Name+"\t"+all.Hosts[i].State)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
