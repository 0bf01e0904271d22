package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/read/view"
)

const dialWait = 3 * time.Second // for an address of the leader

// lookAtCluster checks the keys of a leader or a host, the clock, the port and the versions. On a machine that
// belongs to no cluster it finds nothing. own is the name of a host that does not lead.
func lookAtCluster(ctx context.Context, a *cli.App, own string) []Finding {
	const about = "cluster"
	leads, err := hosts.Load(a.Dir)
	joined, jerr := hosts.Joined(a.Dir)
	switch {
	case err != nil:
		return []Finding{{
			About: about, What: err.Error(),
			Do: "restore .fairlead/cluster from a backup, or make a new cluster: `fairlead cluster leave --force`",
		}}
	case jerr != nil:
		return []Finding{{
			About: about, What: jerr.Error(),
			Do: "restore .fairlead/cluster from a backup, or join again: `fairlead cluster leave --force`",
		}}
	case leads == nil && joined == nil:
		return nil
	}
	id, err := ca.LoadIdentity(worker.Folder(a.Dir), time.Now)
	if err != nil {
		return []Finding{{
			About: about, What: err.Error(),
			Do: "restore .fairlead/cluster from a backup; a host can also join again, with an invitation",
		}}
	}
	found := []Finding{{
		OK: true, About: about,
		What: fmt.Sprintf("host %s of team %s; its certificate ends on %s", id.Name, id.Team(), id.Expires().Format(time.DateOnly)),
	}}
	if err := id.CheckClock(); err != nil {
		found[0] = Finding{About: about, What: err.Error(), Do: "`date` shows the clock"}
	}
	client, err := a.Dial()
	if err == nil {
		defer client.Close()
	}
	addresses := []string{}
	if leads == nil {
		addresses = joined.Addresses
	} else if own != "" {
		facts, err := engine.LoadFacts(worker.Folder(a.Dir))
		if err != nil {
			return append(found,
				Finding{
					About: about, What: err.Error(),
					Do: "restore .fairlead/cluster from a backup, or join again: `fairlead cluster leave --force`",
				})
		}
		addresses = leads.Worker(facts).Addresses
	} else if err == nil {
		addresses = []string{leads.Addresses()[0]}
	}
	if len(addresses) > 0 {
		found = append(found, reachable(ctx, about, addresses))
	}
	if err != nil {
		return found
	}
	asking, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	is, err := client.Leader(asking)
	if err == nil && is.NoStore != "" {
		found = append(found,
			Finding{
				About: about, What: "the server of this engine host keeps no copy of the journal now: " + cli.Plain(is.NoStore),
				Do: "see to it that the disk of .fairlead has free space and that Fairlead runs on the other engine hosts; it is tried again by itself",
			})
	}
	if err == nil && is.OtherConfig != nil {
		found = append(found,
			Finding{
				About: about, What: cli.OtherConfig(is.OtherConfig),
				Do: "each engine host needs the same " + config.FileName + ", byte for byte",
			})
	}
	all, err := client.Hosts(asking)
	if err != nil {
		return append(found,
			Finding{
				About: about, What: "the leader does not answer: " + err.Error(),
				Do: "see .fairlead/log/daemon.log; a host tries again and again",
			})
	}
	leader := view.Host{}
	if at := slices.IndexFunc(all.Hosts, func(h view.Host) bool { return h.Leader }); at >= 0 {
		leader = all.Hosts[at]
	}
	if u := all.Unreplicated; u != nil {
		f := Finding{OK: !u.Wrong, About: about, What: cli.Plain(u.Why)}
		if !f.OK {
			f.Do = "until it is replicated, the loss of " + cli.Plain(all.Leader) + " stops the team; `fairlead hosts` shows when it is"
		}
		found = append(found, f)
	}
	for i := range all.Hosts {
		h := &all.Hosts[i]
		switch {
		case h.Foreign != "":
			found = append(found, Finding{About: about, What: cli.Line(h.Foreign, 300), Do: "doc/hosts.md says how to upgrade a team"})
			continue
		case h.Other(leader.Version):
			found = append(found,
				Finding{
					About: about, What: mixed(h, &leader),
					Do: "install one version on all, before the next upgrade: replace the program, then `fairlead down` and `fairlead up` there; its sessions work on",
				})
		}
		if slices.Contains([]string{string(host.Doubted), string(host.Lost)}, h.State) {
			found = append(found,
				Finding{
					About: about, What: fmt.Sprintf("host %s is %s: %s", h.Name, h.State, cli.Plain(h.Why)),
					Do: "`fairlead hosts` shows when its renewals come again",
				})
		}
	}
	return found
}

// follower is the name of this host; empty: it leads, or belongs to no cluster. The agents' files and the checkouts of a team are those of
// the leader's machine. An engine host that is not running may start as either.
func follower(ctx context.Context, a *cli.App) string {
	is, err := hosts.Load(a.Dir)
	if err != nil {
		return "" // lookAtCluster says so
	}
	if is == nil {
		if joined, err := hosts.Joined(a.Dir); err == nil && joined != nil {
			return joined.Name
		}
		return ""
	}
	facts, err := engine.LoadFacts(worker.Folder(a.Dir))
	leads := err == nil && !is.Joined() && !facts.Stream
	if client, err := a.Dial(); err == nil {
		defer client.Close()
		asking, cancel := context.WithTimeout(ctx, askDaemon)
		defer cancel()
		answer, err := client.Leader(asking)
		leads = err != nil || answer.Leads
	}
	if leads {
		return ""
	}
	return is.Name
}

// mixed says that a host has another version of Fairlead than the leader.
func mixed(h, leader *view.Host) string {
	return fmt.Sprintf("host %s has version %s of Fairlead, and the leader %s", h.Name, cli.Line(h.Version, 80),
		cli.Line(leader.Version, 80))
}

// reachable reports whether a program listens at one of the leader's addresses.
func reachable(ctx context.Context, about string, addresses []string) Finding {
	var says []string
	for _, address := range addresses {
		conn, err := (&net.Dialer{Timeout: dialWait}).DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
			return Finding{OK: true, About: about, What: "the leader's port answers at " + address}
		}
		says = append(says, ca.Explain(err, "", time.Now()).Error())
	}
	return Finding{
		About: about, What: "the leader's port does not answer: " + strings.Join(says, "; "),
		Do: "start Fairlead on the leader with `fairlead up`; a firewall must let this port through",
	}
}
