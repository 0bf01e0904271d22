package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Leave ends this machine's part in a cluster. With force it asks no leader, and no host. With lost an engine host goes on alone
// with its copy of the journal.
func Leave(ctx context.Context, a *cli.App, force, lost bool) error {
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
	replicated, copied, fault := false, false, error(nil)
	if c != nil {
		facts, is := engine.LoadFacts(worker.Folder(a.Dir))
		replicated, fault = facts.Stream, is
		copied = replicated || c.Joined() && engine.HasCopy(worker.Folder(a.Dir))
	}
	switch {
	case fault != nil && !force:
		return fault
	case lost && c != nil && c.Joined() && !copied:
		return refused("--others-lost needs a copy of the journal, and this machine has none: the journal of team %s is on the leader's machine alone. Start Fairlead there, or restore the leader from a backup; `fairlead cluster leave --force` leaves the team", c.Team)
	case lost && !copied:
		return refused("--others-lost works only on an engine host of a team whose journal is replicated")
	case lost:
		return othersLost(ctx, a, c)
	case replicated && !force:
		if done, err := leaveStream(ctx, a, c); done || err != nil {
			return err
		}
	case err != nil && !force:
		return fmt.Errorf("%w; --force leaves the team all the same", err)
	case c != nil && c.Joined() && !force:
		if err := leaveEngines(ctx, a, c); err != nil {
			return err
		}
	case c != nil && !c.Joined() && !replicated:
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
	kept := ""
	if c != nil && (c.Joined() || replicated || !force) {
		if kept, err = putAside(a.Dir); err != nil {
			return err
		}
	}
	if err := forget(a.Dir, "host.json", "epoch", "started.json"); err != nil {
		return err
	}
	text := "This machine has left the team, and its keys are removed. To come back it needs a new invitation."
	if kept != "" {
		text += " Its copy of the journal is now " + kept + "."
	}
	return a.Say(map[string]any{"left": true}, "%s", text)
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
			return refused("these hosts belong to the team: %s; drain or remove them first, with `fairlead host drain %s`, or pass --force",
				strings.Join(names, ", "), names[0])
		}
	}
	if err := forget(a.Dir); err != nil {
		return err
	}
	next := ""
	if running == nil {
		next = " `fairlead reload` closes the port."
	}
	return a.Say(map[string]any{"left": true}, "This machine no longer leads a cluster, and the certificate authority is removed.%s", next)
}

// leaveEngines lets an engine host leave, as long as the journal is not in the stream of the engine hosts.
func leaveEngines(ctx context.Context, a *cli.App, c *Cluster) error {
	facts, err := engine.LoadFacts(worker.Folder(a.Dir))
	if err != nil {
		return err
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

// leaveStream takes the journal back to this machine, if it leads. Another engine host is drained, as far as the others are enough;
// then it is not done.
func leaveStream(ctx context.Context, a *cli.App, c *Cluster) (done bool, err error) {
	client, err := a.Dial()
	if err != nil {
		facts, err := engine.LoadFacts(worker.Folder(a.Dir))
		if err != nil {
			return false, err
		}
		if w := c.Worker(facts); gone(ctx, a, &w) == nil { // it was drained or removed
			return false, nil
		}
		return false,
			refused("the journal is replicated by the engine hosts of team %s, and Fairlead does not run here; start it with `fairlead up`. If the other engine hosts are lost for good, `fairlead cluster leave --others-lost` continues with the copy on this machine", c.Team)
	}
	defer client.Close()
	all, err := client.Hosts(ctx)
	if err != nil {
		return false,
			fmt.Errorf("%w; run the command again when a leader answers; if the other engine hosts are lost for good, `fairlead down` and `fairlead cluster leave --others-lost` continue with the copy on this machine", err)
	}
	if all.Leader != c.Name {
		return false, leaveEngines(ctx, a, c)
	}
	if _, err := client.LeaveCluster(ctx); err != nil {
		return false, cli.Faulty(err)
	}
	err = become(ctx, a, leadWithin, func(_ *apiclient.Client, all view.Hosts) bool { return !all.Replicated },
		"the journal still moves to this machine; `fairlead hosts` shows when that is done",
		fmt.Sprintf("the journal is not back on this machine within %s; see .fairlead/log/daemon.log, and run the command again",
			leadWithin))
	if err != nil {
		return false, err
	}
	return true,
		a.Say(map[string]any{"replicated": false, "leader": c.Name},
			"The journal is on this machine alone, with the same history. The other engine hosts become ordinary hosts when they are connected. `fairlead host drain NAME` removes one; without other hosts, `fairlead cluster leave` ends the cluster.")
}

// knockWithin is how long the server of another engine host has to take a connection.
const knockWithin = 2 * time.Second

// othersLost makes this engine host the leader, with its copy of the journal. The other engine hosts must be lost: with their copies
// they could go on by themselves.
func othersLost(ctx context.Context, a *cli.App, c *Cluster) error {
	if free, err := workspace.Free(a.Dir); err != nil || !free {
		return errors.Join(err, refused("Fairlead runs here; stop it with `fairlead down` first"))
	}
	folder := worker.Folder(a.Dir)
	facts, err := engine.LoadFacts(folder)
	if err != nil {
		return err
	}
	if _, err := ca.Load(folder); err != nil {
		return err
	}
	own := engine.Facts{Lost: true}
	for _, e := range facts.Engines {
		if e.Name == c.Name {
			own.Engines = append(own.Engines, e)
			continue
		}
		at, err := e.Routes()
		if err != nil {
			return err
		}
		if conn, err := (&net.Dialer{Timeout: knockWithin}).DialContext(ctx, "tcp", at); err == nil {
			conn.Close()
			return refused("engine host %s is not lost: its server answers at %s. If most engine hosts can run, start Fairlead on them. Otherwise stop it there, and never start it there again with its present files", e.Name, at)
		}
	}
	// no leader has said where the journal is, so nothing was mirrored
	if _, err := os.Stat(journalFile(a.Dir)); !facts.Stream || errors.Is(err, os.ErrNotExist) {
		if err := engine.Salvage(ctx, folder, journalFile(a.Dir)); err != nil {
			return fmt.Errorf("%w; if another engine host has a copy, run the command there", err)
		}
	}
	last, err := verified(ctx, journalFile(a.Dir))
	if err != nil {
		return err
	}
	if err := c.Lead(a.Dir); err != nil {
		return err
	}
	if err := engine.StoreFacts(folder, own); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(folder, engine.StoreFolder)); err != nil {
		return err
	}
	return a.Say(map[string]any{"leader": c.Name, "seq": last.Seq, "at": last.Time},
		"The copy on this machine is complete up to change %d, of %s, and is now the journal of the team. This machine leads: start Fairlead with `fairlead up`. Never start the other engine hosts with their present files; run `fairlead cluster leave --force` on them.",
		last.Seq, last.Time.Local().Format(time.DateTime))
}

// verified reads a journal from its beginning, checks it, and returns its last change.
func verified(ctx context.Context, path string) (last journal.Change, err error) {
	j, err := sqlite.Open(ctx, path)
	if err != nil {
		return last, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := journal.Verify(ctx, j); err != nil {
		return last, err
	}
	head, _, err := j.Head(ctx)
	if err != nil {
		return last, err
	}
	for last, err = range j.Read(ctx, journal.Query{After: max(head, 1) - 1}) {
		if err != nil {
			return last, err
		}
	}
	return last, nil
}

func journalFile(dir string) string { return filepath.Join(dir, ".fairlead", "journal.db") }

// putAside moves the copy of the team's journal away from where a daemon of this machine alone would go on with it, and do the
// team's work a second time. It returns where the copy is then; empty: there was none.
func putAside(dir string) (kept string, err error) {
	aside := journalFile(dir) + ".left-" + time.Now().UTC().Format("20060102T150405")
	moved, err := sqlite.Move(journalFile(dir), aside)
	if err != nil {
		return "", fmt.Errorf("move the copy of the team's journal away: %w", err)
	}
	if moved {
		kept = aside
	}
	return kept, nil
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
		is = view.Host{} // what it did before is no reason to wait
		if _, err = client.DrainHost(ctx, w.Name); lost(err) {
			err = nil // a host without sessions has left already, and its connection is closed
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
			return &cli.Coded{
				Code: cli.ExitCancelled,
				Err:  errors.New("stopped waiting; the host leaves when its sessions have ended; then run the command again"),
			}
		}
	}
	if _, err := client.Down(ctx, false); err != nil && !apiclient.Away(err) {
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
	var problem *api.Problem
	return err != nil && !errors.As(err, new(*apiclient.Refused)) &&
		(!errors.As(err, &problem) || problem.Status >= http.StatusInternalServerError)
}

// gone checks that this host has left, when Fairlead does not run here: then the leader refuses it. Sessions of one that
// has not may still run here.
func gone(ctx context.Context, a *cli.App, w *worker.Config) error {
	id, err := ca.LoadIdentity(worker.Folder(a.Dir), time.Now)
	if err != nil {
		return err
	}
	conn, err := link.Dial(ctx,
		link.DialOptions{
			Identity: id, Addresses: func() []string { return w.Addresses }, Handler: http.NotFoundHandler(),
			Log: a.Logger(a.Verbose),
		})
	if _, ok := errors.AsType[*link.Refused](err); ok {
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
