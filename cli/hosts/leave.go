package hosts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cluster/ca"
	"github.com/fairlead-dev/fairlead/cluster/engine"
	"github.com/fairlead-dev/fairlead/cluster/link"
	"github.com/fairlead-dev/fairlead/cluster/worker"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"
)

// Leave ends this machine's part in a cluster. With force it asks no leader, and no host.
func Leave(ctx context.Context, a *cli.App, force bool) error {
	if err := person(a, "leave"); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	c, err := Load(a.Dir)
	if err != nil {
		return err
	}
	w, err := Joined(a.Dir)
	switch {
	case err != nil && !force:
		return fmt.Errorf("%w; --force leaves the team all the same", err)
	case c != nil && c.Joined() && !force:
		if err := leaveEngines(ctx, a, c); err != nil {
			return err
		}
	case c != nil && !c.Joined():
		return leadNoMore(ctx, a, c, force)
	case w != nil && !force:
		leave := drained
		if !running(a) {
			leave = gone
		}
		if err := leave(ctx, a, w); err != nil {
			return fmt.Errorf("%w; if the leader is gone for good, --force leaves without it", err)
		}
	case w == nil && c == nil && err == nil:
		if _, err := os.Stat(filepath.Join(worker.Folder(a.Dir), "host.crt")); errors.Is(err, os.ErrNotExist) {
			return refused("this repository belongs to no cluster")
		}
	}
	if free, err := workspace.Free(a.Dir); err != nil || !free {
		return errors.Join(err, refused("Fairlead runs here; stop it with `fairlead down` first"))
	}
	if err := forget(a.Dir, "host.json", "epoch", "started.json"); err != nil {
		return err
	}
	return a.Say(map[string]any{"left": true}, "This machine has left the team, and its keys are removed. To come back it needs a new invitation.")
}

// leadNoMore removes the authority of a team without other hosts.
func leadNoMore(ctx context.Context, a *cli.App, c *Cluster, force bool) error {
	client, running := a.Dial()
	if running == nil {
		defer client.Close()
	}
	if _, err := os.Stat(BookFile(a.Dir)); !force && !errors.Is(err, os.ErrNotExist) { // a host may have joined
		if running != nil {
			return refused("no daemon runs, so it is not known whether other hosts belong to the team; start it with `fairlead up`, or pass --force")
		}
		all, err := client.Hosts(ctx)
		if err != nil {
			return err
		}
		var names []string
		for _, h := range all.Hosts {
			if h.Name != c.Name && h.State != string(host.Left) {
				names = append(names, h.Name)
			}
		}
		if len(names) > 0 {
			return refused("these hosts belong to the team: %s; drain or remove them first, with `fairlead host drain %s`, or pass --force", strings.Join(names, ", "), names[0])
		}
	}
	if err := forget(a.Dir); err != nil {
		return err
	}
	next := ""
	if running == nil {
		next = " `fairlead reload` closes the port."
	}
	return a.Say(map[string]any{"left": true}, "This machine leads no cluster any longer, and the certificate authority is removed.%s", next)
}

// leaveEngines lets an engine host leave, as long as the journal is not in the stream of the engine hosts.
func leaveEngines(ctx context.Context, a *cli.App, c *Cluster) error {
	facts, err := engine.LoadFacts(worker.Folder(a.Dir))
	if err != nil {
		return err
	}
	if facts.Stream {
		return refused("the journal is replicated by the engine hosts of team %s, and this is one of them; if the team is gone for good, --force leaves without it", c.Team)
	}
	w := c.Worker(facts)
	leave := drained
	if !running(a) {
		leave = gone
	}
	if err := leave(ctx, a, &w); err != nil {
		return fmt.Errorf("%w; if the leader is gone for good, --force leaves without it", err)
	}
	return nil
}

// forget removes the files of the cluster.
func forget(dir string, also ...string) error {
	if err := forgetLead(dir, also...); err != nil {
		return err
	}
	return ca.Forget(worker.Folder(dir))
}

// forgetLead removes what only an engine host has, the first file first: it says what the machine is. The store of its server
// goes, too: another cluster would find servers in it that it does not have.
func forgetLead(dir string, also ...string) error {
	for _, name := range append(also, "cluster.json", engine.FactsFile, invitationsFile, engine.StoreFolder) {
		if err := os.RemoveAll(filepath.Join(worker.Folder(dir), name)); err != nil {
			return fmt.Errorf("forget the cluster: %w", err)
		}
	}
	return ca.ForgetAuthority(worker.Folder(dir))
}

// drained drains this host, waits until it has left, and stops Fairlead here. The leader is reached through it.
func drained(ctx context.Context, a *cli.App, w *worker.Config) error {
	client, err := a.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	is, err := state(ctx, client, w.Name)
	if err == nil && is.State != string(host.Draining) && is.State != string(host.Left) {
		_, err = client.DrainHost(ctx, w.Name)
		if lost(err) { // a host without sessions has left already, and its connection is closed
			is, err = view.Host{}, nil
		}
	}
	if err != nil {
		return fmt.Errorf("drain this host: %w", err)
	}
	var ended *apiclient.NoDaemon // a host that has left ends by itself
	for said := ""; is.State != string(host.Left) && !errors.As(err, &ended); is, err = state(ctx, client, w.Name) {
		text := is.Why
		if lost(err) {
			text = "waiting for the leader to answer"
		} else if err != nil {
			return err
		}
		if text != "" && text != said && !a.JSON {
			fmt.Fprintln(a.Err, cli.Line(text, textMax))
			said = text
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("stopped waiting; the host leaves when its sessions have ended; then run the command again")}
		}
	}
	if err := client.Down(ctx, false); err != nil && !apiclient.Away(err) {
		return err
	}
	for {
		free, err := workspace.Free(a.Dir)
		if err == nil && free && is.State != string(host.Left) {
			return gone(ctx, a, w)
		}
		if err == nil && !free {
			err = cli.Pause(ctx, cli.DownPoll)
		}
		if free || err != nil {
			return err
		}
	}
}

// lost reports that a request did not get to the leader, or its answer not to this host. It can be repeated.
func lost(err error) bool {
	var refused *apiclient.Refused
	var problem *api.Problem
	return err != nil && !errors.As(err, &refused) && (!errors.As(err, &problem) || problem.Status >= http.StatusInternalServerError)
}

// gone checks that this host has left, when Fairlead does not run here: then the leader refuses it. Sessions of one that
// has not may still run here.
func gone(ctx context.Context, a *cli.App, w *worker.Config) error {
	id, err := ca.LoadIdentity(worker.Folder(a.Dir), time.Now)
	if err != nil {
		return err
	}
	conn, err := link.Dial(ctx, link.DialOptions{Identity: id, Addresses: func() []string { return w.Addresses }, Handler: http.NotFoundHandler(), Log: a.Logger(a.Verbose)})
	var no *link.Refused
	if errors.As(err, &no) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was asked on it
	return refused("host %s belongs to team %s, and Fairlead does not run here; start it with `fairlead up`, and run the command again: it waits for the sessions", w.Name, w.Team)
}

// state is what the leader says of a host.
func state(ctx context.Context, client *apiclient.Client, name string) (view.Host, error) {
	all, err := client.Hosts(ctx)
	at := slices.IndexFunc(all.Hosts, func(h view.Host) bool { return h.Name == name })
	switch {
	case err != nil:
		return view.Host{}, err
	case at < 0:
		return view.Host{State: string(host.Left)}, nil
	}
	return all.Hosts[at], nil
}
