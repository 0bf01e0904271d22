package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// peer is one machine with its daemon, shims and processes.
type peer struct {
	w     *world
	i     int
	name  string
	clock clock
	side  int // of a partition

	boots                int
	off, asleep, stopped bool // the machine, the machine, the daemon only
	life                 int  // of the daemon; rises when one starts
	unread               []waiting
	shims                map[string]*proc // of this boot, by session
	atWake               []func()

	// On disk:
	pos     int // messages in the mirror
	chain   journal.Chain
	hosts   host.Hosts
	mine    map[string]host.Lease // those of hosts that are on this one
	leads   *peer                 // as the mirror says
	epoch   uint64
	used    map[string]bool // folders in which a process was started
	invited bool

	// In the daemon's memory:
	guard      *host.Guard
	node       int // of the engine that it is connected to
	lead       *lead
	leaderRev  uint64
	leaderSeen host.BootTime
	tryAt      host.BootTime
	joinAt     host.BootTime
	asked      map[string]host.BootTime // about each session
}

// waiting is something that a daemon finds when it runs again.
type waiting struct {
	life int
	do   func()
}

func newPeer(w *world, i int) *peer {
	p := &peer{
		w: w, i: i, name: fmt.Sprintf("h%02d", i), node: i % nodes, invited: true,
		shims: map[string]*proc{}, mine: map[string]host.Lease{}, used: map[string]bool{},
	}
	p.clock.rate = 1 + (w.rnd.Float64()*2-1)*host.RateMax/100
	p.clock.began = -w.between(0, time.Hour)
	return p
}

func (p *peer) running() bool  { return !p.off && !p.asleep && !p.stopped }
func (p *peer) bootID() string { return fmt.Sprintf("%s-boot%d", p.name, p.boots) }

// run lets the daemon do something: now, or when it runs again.
func (p *peer) run(do func()) {
	switch {
	case p.running():
		do()
	case !p.off:
		p.unread = append(p.unread, waiting{p.life, do})
	}
}

// later lets this daemon do something after a time of its own clock.
func (p *peer) later(d host.BootTime, do func()) {
	life := p.life
	p.w.in(p.after(d), func() {
		if p.life == life {
			p.run(do)
		}
	})
}

// begin starts a daemon, which remembers nothing but what is on its disk.
func (p *peer) begin() {
	p.life++
	p.lead, p.unread = nil, nil
	p.guard = host.NewGuard(p.name, fmt.Sprintf("%s-%d", p.name, p.life), p.epoch)
	p.leaderSeen, p.leaderRev, p.joinAt, p.tryAt, p.asked = p.now(), 0, 0, 0, map[string]host.BootTime{}
	p.read()
	p.w.engineChanged()
	p.tick()
}

// resume lets a stopped daemon or a sleeping machine go on. Shims come first: their timers are due at once.
func (p *peer) resume() {
	if p.off || p.asleep {
		return
	}
	for _, s := range p.sessions() {
		if s := p.shims[s]; s.runs() && s.man.Due(p.now()) {
			s.end(leaseEnded)
		}
	}
	p.w.truth.awake(p)
	for wake := p.atWake; len(wake) > 0 && !p.asleep; wake = wake[1:] {
		p.atWake = wake[1:]
		wake[0]()
	}
	p.w.engineChanged()
	if p.stopped {
		return
	}
	unread := p.unread
	p.unread = nil
	for _, u := range unread {
		if u.life == p.life {
			p.run(u.do)
		}
	}
}

func (p *peer) sessions() []string { return slices.Sorted(maps.Keys(p.shims)) }

func (p *peer) tick() {
	p.later(host.BootTime(p.w.between(900*time.Millisecond, 1100*time.Millisecond)), p.tick)
	p.pull()
	p.work() // before it joins: a lost host ends its sessions first
	p.join()
	p.renew()
	p.elect()
	if p.lead != nil && p.lead.won {
		p.lead.tick()
	}
}

// reachesNode reports whether the daemon can read from its node.
func (p *peer) reachesNode() bool {
	n := p.w.peers[p.node]
	return n.running() && p.w.reaches(p, n) && p.w.reaches(n, p)
}

// reconnect picks another node of the engine.
func (p *peer) reconnect() {
	for range nodes {
		p.node = (p.node + 1) % nodes
		if p.reachesNode() {
			return
		}
	}
}

// pull takes messages into the mirror, and checks the chain. A message that does not fit comes from a
// damaged store: the store is made anew, and the mirror asks another node.
func (p *peer) pull() {
	if !p.reachesNode() {
		if p.w.chance(10) {
			p.reconnect()
		}
		return
	}
	for seen := p.w.visible(p.node); p.pos < seen; {
		m := p.w.engine.log[p.pos]
		chain := p.chain
		for k := range m.records {
			record := m.records[k]
			if p.w.engine.node[p.node].damaged[p.pos] {
				record.Data = append([]byte{'x'}, record.Data...)
			}
			if err := chain.Take(&record); err != nil {
				p.w.counts[rebuilt]++
				n := &p.w.engine.node[p.node]
				n.damaged, n.emptyTil = nil, p.w.now+p.w.between(time.Second, 10*time.Second)
				p.reconnect()
				return
			}
		}
		p.chain = chain
		p.pos++
		p.take(m)
	}
}

// take applies a message to what the host knows of hosts.
func (p *peer) take(m *message) {
	for _, ch := range m.hosts {
		body := change.As[host.Body](ch.Body)
		if l := body.Lease; l != nil && l.Host == p.name {
			p.mine[l.Session] = *l
		}
		delete(p.mine, body.Released)
		p.hosts.Apply(ch)
	}
	if m.began > 0 {
		p.leads, p.epoch = m.by, m.began
		p.guard.SawEpoch(m.began)
		if p.lead != nil && p.lead.epoch < m.began {
			p.lead = nil // it was replaced
		}
	}
	p.read()
}

func (p *peer) read() {
	if own := p.hosts.Hosts[p.name]; own != nil {
		p.guard.Read(own, p.bootID())
	}
}

// tell sends something to the leader, as far as this host knows it. It may never arrive.
func (p *peer) tell(arrives func(l *lead)) {
	to := p.leads
	if to == nil {
		return
	}
	p.w.send(p, to, func() {
		if to.lead != nil && to.lead.won {
			arrives(to.lead)
		}
	})
}

// join asks for an incarnation, if the journal has none for this boot.
func (p *peer) join() {
	own := p.hosts.Hosts[p.name]
	if p.guard.Incarnation != 0 || p.now() < p.joinAt || own != nil && own.State == host.Left && !p.invited {
		return
	}
	p.joinAt = p.now() + host.BootTime(3*time.Second)
	in := host.Join{Name: p.name, Boot: p.bootID(), Labels: p.labels(), Capacity: p.w.capacity(), Invited: p.invited}
	p.tell(func(l *lead) { l.submit(func() error { return l.host(in) }, nil) })
}

func (p *peer) labels() []string {
	if p.i%4 == 1 {
		return []string{"gpu"}
	}
	return nil
}

func leaseKey(name string, incarnation uint64) string {
	return fmt.Sprintf("lease/%s/%d", name, incarnation)
}

// renew sends a renewal when one is due.
func (p *peer) renew() {
	r, due := p.guard.Renew(p.now())
	if !due {
		return
	}
	key := leaseKey(p.name, r.Incarnation)
	p.w.set(p, key, version{rev: r.Revision, by: r.RenewalID, sent: p.clock.boot(p.w.now), boots: p.boots}, func(ok bool) {
		switch {
		case ok:
			p.guard.Stored(r, r.Revision+1)
		case !p.reachesNode():
			p.reconnect()
			return
		case p.guard.Incarnation == r.Incarnation: // the answer may have been lost
			e := p.w.entry(p.node, key)
			p.guard.SawLease(e.rev, e.by, e.closed)
		}
		p.extend()
	})
}

// extend moves the deadlines of the shims.
func (p *peer) extend() {
	end, held := p.guard.Deadline()
	for _, s := range p.sessions() {
		if held && p.shims[s].token.Incarnation == p.guard.Incarnation {
			p.shims[s].man.Extend(end)
		}
	}
}

// elect tries to lead when the leader's entry was not renewed for a while.
func (p *peer) elect() {
	if p.i >= nodes {
		return
	}
	if p.reachesNode() {
		if e := p.w.entry(p.node, "leader"); e.rev > p.leaderRev {
			p.leaderRev, p.leaderSeen = e.rev, p.now()
		}
	}
	if p.lead != nil || !host.TryToLead(p.now()-p.leaderSeen) || p.now() < p.tryAt {
		return
	}
	p.tryAt = p.now() + host.BootTime(p.w.between(time.Second, 5*time.Second))
	p.pull()
	p.lead = newLead(p)
	p.lead.stand()
}
