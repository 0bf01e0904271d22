package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cluster/ca"
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
	case c != nil:
		return leadNoMore(ctx, a, c, force)
	case w != nil && !force:
		if err := drained(ctx, a, w.Name); err != nil {
			return err
		}
	case w == nil && err == nil:
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
	if err := forget(a.Dir, "cluster.json", "authority.key", invitationsFile); err != nil {
		return err
	}
	next := ""
	if running == nil {
		next = " `fairlead reload` closes the port."
	}
	return a.Say(map[string]any{"left": true}, "This machine leads no cluster any longer, and the certificate authority is removed.%s", next)
}

// forget removes files of the cluster, the first one first: it says what the machine is.
func forget(dir string, names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(worker.Folder(dir), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget the cluster: %w", err)
		}
	}
	return ca.Forget(worker.Folder(dir))
}

// drained drains this host, waits until it has left, and stops Fairlead here. The leader is reached through it.
func drained(ctx context.Context, a *cli.App, name string) error {
	const force = "; if the leader is gone for good, --force leaves without it"
	client, err := a.Dial()
	if err != nil {
		return fmt.Errorf("the leader must know that this host leaves, and Fairlead does not run here: `fairlead up` connects it"+force+": %w", err)
	}
	defer client.Close()
	state := func() (string, []string, error) {
		all, err := client.Hosts(ctx)
		at := slices.IndexFunc(all.Hosts, func(h view.Host) bool { return h.Name == name })
		if err != nil || at < 0 {
			return string(host.Left), nil, err
		}
		var sessions []string
		for _, s := range all.Hosts[at].Sessions {
			sessions = append(sessions, s.Session)
		}
		return all.Hosts[at].State, sessions, nil
	}
	is, sessions, err := state()
	leaves := err == nil
	if leaves && is != string(host.Draining) && is != string(host.Left) {
		_, err = client.DrainHost(ctx, name)
		leaves = err == nil
	}
	for said := ""; err == nil && is != string(host.Left); is, sessions, err = state() {
		if text := strings.Join(sessions, ", "); text != said && text != "" && !a.JSON {
			fmt.Fprintf(a.Err, "waiting for %s to finish\n", cli.Plain(text))
			said = text
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("stopped waiting; the host leaves when its sessions have ended; then run the command again")}
		}
	}
	var ended *apiclient.NoDaemon
	if err != nil && (!leaves || !errors.As(err, &ended)) { // a host that has left ends by itself
		return fmt.Errorf("drain this host%s: %w", force, err)
	}
	if err := client.Down(ctx, false); err != nil && !apiclient.Away(err) {
		return err
	}
	for {
		if free, err := workspace.Free(a.Dir); free || err != nil {
			return err
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return err
		}
	}
}
