package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// ListenDefault is where a leader listens unless another address is given: only its own machine reaches it.
const ListenDefault = "127.0.0.1:4222"

const (
	capacityDefault = 4
	capacityMax     = 10000 // as in core/host
	namesMax        = 16    // names and addresses in one certificate, as in hosts/ca
)

// Cluster is what cluster.json of a leader has, and of an engine host that joined.
type Cluster struct {
	Team     string `json:"team"`
	Name     string `json:"name"`     // of this machine, as a host of the team
	Listen   string `json:"listen"`   // for other hosts: HOST:PORT
	Capacity int    `json:"capacity"` // sessions on this machine at one time

	Labels []string `json:"labels,omitempty"` // of a host that joined
	Leader []string `json:"leader,omitempty"` // of a host that joined: the addresses of the one that invited it, or that a person gave
}

// invitationsFile has the book of invitations.
const invitationsFile = "invitations.json"

// BookFile is where a leader keeps its invitations.
func BookFile(dir string) string { return filepath.Join(worker.Folder(dir), invitationsFile) }

func clusterFile(dir string) string { return filepath.Join(worker.Folder(dir), "cluster.json") }

// Load reads cluster.json of a repository; nil: this machine is no engine host, and leads no cluster.
func Load(dir string) (*Cluster, error) {
	c := &Cluster{}
	if err := file.LoadJSON(clusterFile(dir), c); err != nil || c.Team == "" {
		return nil, err
	}
	return c, nil
}

func store(dir string, c Cluster) error {
	if err := file.StoreJSON(clusterFile(dir), c); err != nil {
		return ca.Explain(err, c.Team, time.Now())
	}
	return nil
}

// Joined reports whether another machine leads the team.
func (c *Cluster) Joined() bool { return len(c.Leader) > 0 }

// Worker is how an engine host that does not lead runs sessions for the leader.
func (c *Cluster) Worker(facts engine.Facts) worker.Config {
	w := worker.Config{Name: c.Name, Team: c.Team, Labels: c.Labels, Capacity: c.Capacity, Addresses: facts.Addresses(c.Name)}
	if !c.everywhere() { // otherwise its address is what the network gives it at this moment, perhaps none yet
		w.Engine = c.Addresses()[0]
	}
	for _, at := range c.Leader {
		if !slices.Contains(w.Addresses, at) {
			w.Addresses = append(w.Addresses, at)
		}
	}
	return w
}

// Lead keeps that this engine host has the journal alone, and leads.
func (c Cluster) Lead(dir string) error {
	c.Leader = nil
	return store(dir, c)
}

// Follow keeps that this engine host is an ordinary host from now on.
func (c Cluster) Follow(dir string, w worker.Config) error {
	if err := worker.SaveConfig(dir, w); err != nil {
		return err
	}
	if _, err := putAside(dir); err != nil {
		return err
	}
	return forgetLead(dir)
}

// Init makes a repository the one of a cluster's leader. Nil fields of want get their defaults.
func Init(a *cli.App, want Cluster) error {
	if err := person(a, "init"); err != nil {
		return err
	}
	if err := belongs(a.Dir); err != nil {
		return err
	}
	if _, err := a.Load(); err != nil {
		return err
	}
	c, err := want.complete(a.Dir)
	if err != nil {
		return err
	}
	space, err := workspace.OpenWorkspace(a.Dir) // so that git ignores what follows
	var busy *workspace.Busy
	if err != nil && !errors.As(err, &busy) {
		return err
	}
	if err == nil {
		defer space.Close()
	}
	listener, err := link.Listen(c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) && busy != nil {
		return fmt.Errorf("%w; after `fairlead cluster leave` here, `fairlead reload` closes the port", err)
	}
	if err != nil {
		return err
	}
	listener.Close()
	folder := worker.Folder(a.Dir)
	if err := ca.Forget(folder); err != nil { // of a command that was interrupted
		return err
	}
	authority, err := ca.Load(folder)
	if errors.Is(err, fs.ErrNotExist) {
		authority, err = ca.Create(folder, c.Team, time.Now())
	}
	if err != nil {
		return err
	}
	c.Team = authority.Team
	if _, err := c.Identify(a.Dir, authority); err != nil {
		return err
	}
	if err := store(a.Dir, c); err != nil {
		return err
	}
	return a.Show(c, func() error {
		fmt.Fprintf(a.Out, "This machine is host %s and leads team %s. It listens for other hosts on %s.\n", c.Name, c.Team, c.Listen)
		if c.Loopback() {
			fmt.Fprintln(a.Out, "Only this machine reaches that address. "+otherAddress)
		} else {
			_, port, _ := net.SplitHostPort(c.Listen)
			fmt.Fprintf(a.Out,
				"If there is a firewall, it must allow the other machines to connect to TCP port %s of this one; they need no open port.\n",
				port)
		}
		next := "fairlead up"
		if busy != nil {
			next = "fairlead reload"
		}
		fmt.Fprintf(a.Out, "\nNext:\n  %s\n  fairlead host invite\n", next)
		return nil
	})
}

// Listen lets a leader listen at another address. What belongs to the team stays: the authority, the hosts, the journal.
func Listen(a *cli.App, at string) error {
	if err := person(a, "listen"); err != nil {
		return err
	}
	c, err := Load(a.Dir)
	if err != nil {
		return err
	}
	if c == nil {
		return refused("this machine leads no cluster; `fairlead cluster init` makes it the leader of one")
	}
	c.Listen = at
	next, err := c.complete(a.Dir)
	if err != nil {
		return err
	}
	on, _, _ := net.SplitHostPort(next.Listen)
	listener, err := net.Listen("tcp", net.JoinHostPort(on, "0")) //nolint:noctx // it opens at once or never. The port may be this daemon's
	if err != nil {
		return ca.Explain(fmt.Errorf("listen for hosts: %w", err), c.Team, time.Now())
	}
	listener.Close()
	if err := file.StoreJSON(clusterFile(a.Dir), next); err != nil {
		return ca.Explain(err, c.Team, time.Now())
	}
	facts, err := engine.LoadFacts(worker.Folder(a.Dir))
	if err != nil {
		return err
	}
	then, needs, whose := "fairlead up", "Hosts that used another address need the new one.", "On each host:"
	if len(facts.Engines) > 1 {
		needs, whose = "If another engine host leads then, all hosts learn the new address from it.",
			"If this machine leads then, on each host:"
	}
	switch {
	case running(a) && len(facts.Engines) > 1: // its server is for the engine hosts, and survives a reload
		then = "fairlead down\n  fairlead up --detach"
	case running(a):
		then = "fairlead reload"
	}
	return a.Show(next, func() error {
		fmt.Fprintf(a.Out, "Host %s of team %s listens for hosts on %s after the next start. %s\n\n", next.Name, next.Team, next.Listen,
			needs)
		_, err := fmt.Fprintf(a.Out, "Next:\n  %s\n%s\n  fairlead host leader %s\n", then, whose, next.Addresses()[0])
		return err
	})
}

// person refuses commands that change what this machine is to agents.
func person(a *cli.App, event string) error {
	is := shim.Here(a.Dir)
	return caller.Identity{Session: is.Session, Foreign: is.Foreign, Unknown: is.Unseen}.MayOrderHost(event, "")
}

// running reports whether a daemon answers here.
func running(a *cli.App) bool {
	client, err := a.Dial()
	if err != nil {
		return false
	}
	defer client.Close()
	return true
}

// belongs refuses a folder that belongs to a cluster already.
func belongs(dir string) error {
	c, err := Load(dir)
	if err != nil {
		return err
	}
	if c != nil && c.Joined() {
		return refused("this machine is engine host %s of team %s; `fairlead cluster leave` ends that", c.Name, c.Team)
	}
	if c != nil {
		return refused("this machine leads team %s as host %s, and listens for hosts on %s; `fairlead host invite` invites a host", c.Team,
			c.Name, c.Listen)
	}
	w, err := Joined(dir)
	if err != nil {
		return err
	}
	if w != nil {
		return refused("this machine is host %s of team %s, which another machine leads; `fairlead cluster leave` ends that", w.Name,
			w.Team)
	}
	return nil
}

func refused(format string, args ...any) error {
	return &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf(format, args...)}
}

func misused(format string, args ...any) error {
	return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf(format, args...)}
}

// complete fills in what was not given, and checks the rest.
func (c Cluster) complete(dir string) (Cluster, error) {
	c.Listen = cmp.Or(c.Listen, ListenDefault)
	on, port, err := net.SplitHostPort(c.Listen)
	if err != nil || port == "" || port == "0" {
		return c, misused("a leader needs an address and a port to listen on, such as 192.168.1.5:4222 or build.lan:4222, not %q", c.Listen)
	}
	if on == "" {
		c.Listen = net.JoinHostPort("0.0.0.0", port)
	}
	named := "" // by --listen build.lan:4222
	if on != "" && net.ParseIP(on) == nil && on != "localhost" {
		named = on
	}
	if c.Name, err = hostName(cmp.Or(c.Name, word(named))); err != nil {
		return c, err
	}
	if c.Team = cmp.Or(c.Team, word(filepath.Base(dir)), "team"); !host.IsWord(c.Team) {
		return c, misused("--team takes 1 to 63 characters a-z, 0-9 and -, not %q", c.Team)
	}
	c.Capacity, err = capacity(c.Capacity)
	return c, err
}

// hostName is a name that was given, or that of the machine.
func hostName(given string) (string, error) {
	if given == "" {
		machine, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("find the name of this machine: %w; give one with --name", err)
		}
		given = cmp.Or(word(machine), "host")
	}
	if !host.IsWord(given) {
		return "", misused("--name takes 1 to 63 characters a-z, 0-9 and -, not %q", given)
	}
	return given, nil
}

// word makes a name of the first label of a text.
func word(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(text), ".")
	text = strings.Map(func(r rune) rune {
		if host.IsWord(string(r)) {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(text[:min(len(text), 63)], "-")
}

func capacity(given int) (int, error) {
	if given == 0 {
		return capacityDefault, nil
	}
	if given < 1 || given > capacityMax {
		return 0, misused("--capacity is from 1 to %d sessions, not %d", capacityMax, given)
	}
	return given, nil
}

// Loopback reports whether only this machine reaches the leader.
func (c Cluster) Loopback() bool {
	on, _, _ := net.SplitHostPort(c.Listen)
	return on == "localhost" || net.ParseIP(on).IsLoopback()
}

// Identify returns the identity of a host that can lead, with a certificate for its present names. It makes a new
// certificate if the present one is missing, has other names, or ends soon.
func (c Cluster) Identify(dir string, authority *ca.Authority) (*ca.Identity, error) {
	folder, names := worker.Folder(dir), c.names()
	id, err := ca.LoadIdentity(folder, time.Now)
	if errors.Is(err, fs.ErrNotExist) {
		id, err = ca.NewIdentity(folder, c.Name, time.Now)
	} else if err == nil && !id.RenewalDue() && id.IsFor(names) {
		return id, nil
	}
	if err != nil {
		return nil, err
	}
	request, err := id.Request(names)
	if err != nil {
		return nil, err
	}
	certificate, err := authority.Sign(request, c.Name, cluster.Engine, func(net.IP) bool { return true }, time.Now())
	if err != nil {
		return nil, err
	}
	return id, id.Install(certificate, authority.PEM())
}

// names are the names and addresses by which hosts may reach the leader.
func (c Cluster) names() []string {
	on, _, _ := net.SplitHostPort(c.Listen)
	names := []string{c.Name, "127.0.0.1", "::1"}
	if !c.everywhere() {
		if on != "localhost" && !slices.Contains(names, on) {
			names = append(names, on)
		}
		return names
	}
	for _, ip := range outside() {
		names = append(names, ip.String())
	}
	return names[:min(len(names), namesMax)]
}

// outside lists the addresses of this machine at which others may reach it, the one of its usual way out first.
func outside() (all []net.IP) {
	if conn, err := net.Dial("udp", "192.0.2.1:9"); err == nil { //nolint:noctx // no packet is sent: it only looks up the way
		if at, ok := conn.LocalAddr().(*net.UDPAddr); ok && at.IP.IsGlobalUnicast() {
			all = append(all, at.IP)
		}
		conn.Close()
	}
	addrs, _ := net.InterfaceAddrs() // without them the certificate has the other names
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && !slices.ContainsFunc(all, n.IP.Equal) {
			all = append(all, n.IP)
		}
	}
	return all
}

// everywhere reports whether this machine listens at all of its addresses.
func (c Cluster) everywhere() bool {
	on, _, _ := net.SplitHostPort(c.Listen)
	ip := net.ParseIP(on)
	return ip != nil && ip.IsUnspecified()
}

// Addresses are those at which hosts reach the leader, HOST:PORT. The first is for an invitation.
func (c Cluster) Addresses() []string {
	on, port, _ := net.SplitHostPort(c.Listen)
	if !c.everywhere() {
		return []string{net.JoinHostPort(strings.Replace(on, "localhost", "127.0.0.1", 1), port)}
	}
	var all []string
	for _, ip := range outside() {
		all = append(all, net.JoinHostPort(ip.String(), port))
	}
	if len(all) == 0 {
		all = []string{net.JoinHostPort("127.0.0.1", port)}
	}
	return all[:min(len(all), namesMax-3)]
}

// leaderless says since when no leader answers the daemon here; zero: one does, or no daemon runs.
func leaderless(ctx context.Context, a *cli.App) (is api.Leader) {
	client, err := a.Dial()
	if err != nil {
		return is
	}
	defer client.Close()
	is, _ = client.Leader(ctx) // without an answer nothing is known
	return is
}

// statusWait is how long the status waits for what the leader knows.
const statusWait = 5 * time.Second

// Status says what this machine is in a cluster.
func Status(ctx context.Context, a *cli.App) error {
	c, err := Load(a.Dir)
	if err != nil {
		return err
	}
	w, err := Joined(a.Dir)
	if err != nil {
		return err
	}
	is := map[string]any{"role": "none"}
	if c == nil && w == nil {
		return a.Say(is, "This repository belongs to no cluster: everything runs on this machine. `fairlead cluster init` makes it one.")
	}
	id, err := ca.LoadIdentity(worker.Folder(a.Dir), time.Now)
	if err != nil {
		return err
	}
	is["expires"], is["authority"] = id.Expires(), id.Authority()
	var text string
	facts, err := engine.LoadFacts(worker.Folder(a.Dir))
	if err != nil {
		return err
	}
	switch {
	case c != nil && (c.Joined() || facts.Stream):
		is["role"], is["team"], is["host"], is["addresses"] = "engine", c.Team, c.Name, c.Worker(facts).Addresses
		text = fmt.Sprintf("This machine is engine host %s of team %s, at %s. The others are at %s.\n", c.Name, c.Team, c.Listen,
			strings.Join(c.Worker(facts).Addresses, ", "))
	case c != nil:
		is["role"], is["team"], is["host"], is["addresses"] = "leader", c.Team, c.Name, c.Addresses()
		text = fmt.Sprintf("This machine is host %s and leads team %s. It listens for other hosts on %s.\n", c.Name, c.Team, c.Listen)
	default:
		is["role"], is["team"], is["host"], is["addresses"] = "host", w.Team, w.Name, w.Addresses
		text = fmt.Sprintf("This machine is host %s of team %s. The leader is at %s.\n", w.Name, w.Team, strings.Join(w.Addresses, ", "))
	}
	if len(facts.Engines) > 1 {
		is["engines"], is["replicated"] = engineNames(facts), facts.Stream
		if facts.Stream {
			text += fmt.Sprintf("The engine hosts are %s. The journal is replicated by three of them.\n",
				strings.Join(engineNames(facts), ", "))
		}
	}
	past := leaderless(ctx, a)
	if past.NoLeaderSince != nil {
		is["no_leader_since"], is["as_of"] = past.NoLeaderSince, past.AsOf
		text += fmt.Sprintf("No leader of the team answers since %s.\n", past.NoLeaderSince.Local().Format(time.DateTime))
	}
	if past.OtherConfig != nil {
		is["other_config"] = past.OtherConfig
		text += "Problem: " + cli.OtherConfig(past.OtherConfig) + ".\n"
	}
	if past.NoStore != "" {
		is["no_store"] = past.NoStore
		text += "Problem: " + noStore(past.NoStore) + "\n"
	}
	text += fmt.Sprintf("Its certificate ends on %s. The team's certificate authority is %s.\n", id.Expires().Local().Format(time.DateOnly),
		id.Authority())
	if err := id.CheckClock(); err != nil {
		is["problem"] = err.Error()
		text += "Problem: " + err.Error() + "\n"
	}
	then, answers := "Fairlead does not run here; `fairlead up` starts it.", false
	if client, err := a.Dial(); err == nil {
		defer client.Close()
		then = "`fairlead hosts` lists the hosts."
		is["running"] = true
		ctx, cancel := context.WithTimeout(ctx, statusWait)
		defer cancel()
		all, err := client.Hosts(ctx) // of the leader
		answers = err == nil
		if err == nil && all.Unreplicated != nil {
			is["unreplicated"] = all.Unreplicated
			text += cli.Plain(all.Unreplicated.Why) + "\n"
			facts.Engines = nil // it names them
		}
		if facts.Stream && err == nil {
			is["leader"], is["copies"] = all.Leader, all.Copies
			text += fmt.Sprintf("%s leads the team. %s", all.Leader, copies(all))
		} else if facts.Stream && is["no_leader_since"] == nil {
			text += "No leader answers: " + err.Error() + "\n"
		}
	}
	if !facts.Stream && len(facts.Engines) > 1 {
		where := "The journal is on the leader alone."
		if c != nil && c.Joined() && !answers {
			where = lastHeard(ctx, a, facts, is)
		}
		text += "The engine hosts are " + strings.Join(engineNames(facts), ", ") + ". " + where + "\n"
	}
	return a.Say(is, "%s%s", cli.Plain(text), then)
}

// noStore says what it means that the server of this host has no store.
func noStore(why string) string {
	return fmt.Sprintf("The server of this machine keeps no copy of the journal now: %s.", why)
}

// lastHeard says where the journal is, as far as an engine host knows that no leader answers and that was not told that the journal is in
// the stream. The leader may have been lost while it copied the journal, or just after that.
func lastHeard(ctx context.Context, a *cli.App, facts engine.Facts, is map[string]any) string {
	leader := cmp.Or(facts.Leader, "the leader")
	text := fmt.Sprintf("When this host last heard from %s, the journal was on that machine alone: start Fairlead there.", leader)
	last, err := engine.CopyEnd(ctx, worker.Folder(a.Dir))
	if err != nil || last.Seq == 0 {
		return text
	}
	is["copied"] = map[string]any{"seq": last.Seq, "at": last.Time}
	return text +
		fmt.Sprintf(" It was being copied to the engine hosts: this one has it up to change %d, of %s, which may be all of it. If that machine is lost for good, `fairlead down` here and on the other engine hosts, and then `fairlead cluster leave --others-lost` on the one with the longest copy continue with that.",
			last.Seq, last.Time.Local().Format(time.DateTime))
}

func engineNames(facts engine.Facts) (names []string) {
	for _, e := range facts.Engines {
		names = append(names, e.Name)
	}
	return names
}
