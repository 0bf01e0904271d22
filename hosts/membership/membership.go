package membership

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// byHosts is the author of the changes that this package decides without a request.
var byHosts = change.Actor{Kind: "engine", ID: "hosts"}

// Controller knows the hosts of a team. Make it with New. Without a cluster it does nothing.
type Controller struct {
	loop  *loop.Loop
	Clock func() host.BootTime              // of this machine; tests have their own
	Given *atomic.Pointer[view.HostsBeside] // tests: what Beside returns; nil: what the controller knows

	is     *outside.Cluster // nil: the team has no other hosts
	local  sessionhost.Host
	boot   string
	uses   []host.Lack // by sessions of agents with a host
	places wire.Places // of this machine
	dir    string      // of the repository, perhaps with links
	config string      // the identity of fairlead.yaml here

	misplaced error // why no launch can be prepared for other hosts; nil: it can
	log       *slog.Logger

	copies  copies  // of checkouts, on other hosts
	outputs outputs // of sessions on other hosts, here

	wake chan struct{} // capacity 1: a host was heard for the first time, so its deadlines are new

	mu      sync.Mutex
	fetches map[string]*fetching      // by host; nil: this daemon has not begun
	heard   map[string]*heard         // by host
	members map[string]cluster.Member // by name: those that belong to the team
	engines []cluster.EngineHost      // those of them that can lead, by name
	outed   []string                  // hosts that could lead until they left, or were removed
	copying map[string]*copying       // by host: what keeps the copies there; nil: this daemon has not begun
	left    map[string][]view.Left    // by host that has led: branches that differ from those there, with the reason
	leases  map[string]host.Lease     // by session: the journal's, for goroutines outside of the loop
	lost    map[string]chan struct{}  // by session: closed when its process has ended for certain, without word of it
	waits   map[string]waiting        // by session: those that no host takes
	why     map[string]string         // by session: why it has its host
}

// heard is what the leader knows of one incarnation of a host beside the journal.
type heard struct {
	host.Watch
	incarnation uint64
	last        host.RenewalID // the renewal that was taken last
	version     string
	places      wire.Places
	config      string // the identity of its fairlead.yaml; empty: it has not said
}

// waiting is a session that no host takes.
type waiting struct {
	view.WaitingSession
	needs func(*team.Team) host.Needs
	asked bool // it waits for a person, or for the host that was lost
}

// New makes the controller. local runs sessions on this machine.
func New(l *loop.Loop, opts outside.Options) *Controller {
	c := &Controller{
		loop: l, is: opts.Cluster, local: opts.Host, boot: opts.BootID, log: opts.Log, Clock: boottime.Now, wake: make(chan struct{}, 1),
		heard: map[string]*heard{}, members: map[string]cluster.Member{}, leases: map[string]host.Lease{}, lost: map[string]chan struct{}{},
		waits: map[string]waiting{}, why: map[string]string{}, left: map[string][]view.Left{},
	}
	if c.is != nil {
		for i := range opts.Config.Agents {
			c.uses = append(c.uses, usesOf(&opts.Config.Agents[i])...)
		}
		c.uses = host.Lacks(c.uses)
		c.places, c.misplaced = wire.PlacesOf(opts.Config.Dir)
		c.dir, c.config = opts.Config.Dir, opts.Config.Sum
		c.copies.folder, c.copies.log = filepath.Join(c.is.Folder, "trees"), opts.Log
		c.copies.moving, c.copies.begins = map[string]chan struct{}{}, map[host.Token]bool{}
		c.outputs.folder, c.outputs.log, c.outputs.run, c.outputs.copied = filepath.Join(c.is.Folder, "output"), opts.Log, l.Go,
			map[string]chan struct{}{}
		c.took()
	}
	return c
}

// HostHooks are what the controller does in the loop's goroutine.
func (c *Controller) HostHooks() loop.Hooks {
	if c.is == nil {
		return loop.Hooks{}
	}
	return loop.Hooks{OnBatch: func(changes []change.Change, _ uint64, _ *loop.Touched) {
		if slices.ContainsFunc(changes, func(is change.Change) bool { return change.As[host.Body](is.Body) != nil }) {
			c.took()
		}
		c.wakeCopies(changes)
		c.mu.Lock()
		defer c.mu.Unlock()
		maps.DeleteFunc(c.waits, func(id string, _ waiting) bool { return openSession(c.loop.State(), id) == nil }) // it was withdrawn
	}}
}

// takePart ends a doubt about this machine, which another leader had, and gives leases to sessions without one.
func (c *Controller) takePart(ctx context.Context) error {
	if !c.is.Stream {
		return nil
	}
	own, err := c.known(ctx, c.is.Name)
	if err == nil {
		_, err = c.loop.Submit(ctx, byHosts, "", host.Renew{Name: c.is.Name, Incarnation: own.Incarnation})
	}
	if err == nil {
		err = c.leaseAll(ctx)
	}
	return err
}

// openSession is a session that is not over; nil: there is none.
func openSession(t *team.Team, id string) *team.Session {
	for _, a := range t.Agents {
		if s := a.Open(id); s != nil {
			return s
		}
	}
	for _, s := range t.Pool.Sessions {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// took takes in what the journal says of hosts and leases.
func (c *Controller) took() {
	t := c.loop.State()
	c.mu.Lock()
	defer c.mu.Unlock()
	was := maps.Clone(c.leases)
	clear(c.leases)
	for id, lease := range t.Hosts.Leases {
		c.leases[id] = lease
		if c.lost[id] == nil || was[id].Token != lease.Token {
			c.lost[id] = make(chan struct{})
		}
		if may, _ := t.Hosts.MayMove(id); may && lease.Host != c.is.Name {
			closeOnce(c.lost[id])
		}
	}
	unplaced := func(id string) bool { _, placed := c.leases[id]; return !placed }
	maps.DeleteFunc(c.lost, func(id string, _ chan struct{}) bool { return unplaced(id) }) // it is over; nothing waits for its loss
	maps.DeleteFunc(c.why, func(id, _ string) bool { return unplaced(id) })
	maps.DeleteFunc(c.heard, func(name string, _ *heard) bool { h := t.Hosts.Hosts[name]; return h == nil || h.State == host.Left })
	if c.fetches != nil {
		c.fetchMissing(t)
	}
	left := false
	for name, m := range c.members {
		h := t.Hosts.Hosts[name]
		left = left || h == nil || !belongs(h) || h.Key != m.Key
	}
	clear(c.members)
	before := c.engines
	c.engines, c.outed = nil, nil
	for _, name := range t.Hosts.Names() {
		h := t.Hosts.Hosts[name]
		if !belongs(h) {
			if h.Engine != "" {
				c.outed = append(c.outed, name)
			}
			continue
		}
		m := cluster.Member{Name: name, Role: cluster.Host, Key: h.Key}
		if h.Engine != "" && h.Key != "" {
			m.Role = cluster.Engine
			c.engines = append(c.engines, cluster.EngineHost{Name: name, Address: h.Engine, Key: h.Key})
		}
		c.members[name] = m
	}
	c.copyTo()
	if c.is.Engines != nil && !slices.Equal(before, c.engines) {
		c.loop.Go(func(context.Context) { c.is.Engines(c.engineHosts) })
	}
	if left {
		c.loop.Go(func(context.Context) { c.is.Recheck() })
	}
	for id, w := range c.waits {
		if w.needs == nil || w.asked {
			continue // it waits for its files, or for a person
		}
		if choice := t.Hosts.Choose(w.needs(t)); choice.Host == "" {
			w.Why = choice.String() // the hosts have changed
			c.waits[id] = w
		}
	}
}

// engineHosts are those that can lead, and those that could until they left, by name.
func (c *Controller) engineHosts() (now []cluster.EngineHost, gone []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.engines), slices.Clone(c.outed)
}

// belongs reports whether a host is a member of the team. A removed one is not, also while its sessions end.
func belongs(h *host.Host) bool { return h.State != host.Left && h.RemovedBy == "" }

func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// Lost is closed when the process of a session on another host has ended for certain, and the host will not report its end.
// It is nil for a session that is not placed.
func (c *Controller) Lost(session string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost[session]
}

// LeaseOf returns the place of a session; false: it runs on this machine, as all do without a cluster.
func (c *Controller) LeaseOf(session string) (host.Lease, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lease, placed := c.leases[session]
	return lease, placed && c.is != nil && lease.Host != c.is.Name
}

// HostOf is the other host on which a session is placed; empty: it is on none.
func (c *Controller) HostOf(session string) string {
	lease, away := c.LeaseOf(session)
	if !away {
		return ""
	}
	return lease.Host
}

// remote is the other half of a host.
func (c *Controller) remote(name string) *remote.Host {
	return &remote.Host{Name: name, Dial: c.dial(name), Gone: c.Lost, Log: c.log}
}

func (c *Controller) dial(name string) remote.Dial {
	return func(ctx context.Context) (*http.Client, string, error) { return c.is.Dial(ctx, name) }
}

// HostsBegin lets this machine take part in its own team, and watches the leases of the others until ctx ends.
func (c *Controller) HostsBegin(ctx context.Context) {
	if c.is == nil {
		return
	}
	join := host.Join{
		Name: c.is.Name, Boot: c.boot, Labels: c.is.Labels, Capacity: c.is.Capacity, Key: c.is.Key, Engine: c.is.Address,
		Invited: true, Leads: true,
	}
	if _, err := c.loop.Submit(ctx, byHosts, "", join); err != nil && ctx.Err() == nil {
		c.log.Error("this machine cannot take part in its own team; sessions with `host` run only on other machines", "error", err)
	}
	if err := c.takePart(ctx); err != nil {
		if ctx.Err() == nil {
			c.loop.Fail(fmt.Errorf("give leases to the sessions of this machine: %w", err))
		}
		return
	}
	if err := c.takeOver(ctx); err != nil {
		return // the loop has ended
	}
	if c.is.Stream {
		c.mu.Lock()
		c.copying = map[string]*copying{}
		c.copyTo()
		c.mu.Unlock()
	}
	c.loop.Go(c.forgetRuns)
	if err := c.loop.View(ctx, func(t *team.Team) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fetches = map[string]*fetching{}
		c.fetchMissing(t)
	}); err != nil {
		return // the loop has ended
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		next, err := c.watch(ctx)
		if err != nil {
			return // the loop has ended
		}
		timer.Reset(next)
	}
}
