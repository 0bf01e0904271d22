package cluster

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
)

// small is a team that works long sessions without faults, but for those that a test makes.
var small = Size{Hosts: 5, Agents: 10, Channels: 1, Session: time.Hour, Orders: time.Hour}

// story is a cluster in the hands of one test.
type story struct {
	*world
	t *testing.T
}

// begin starts a cluster whose agents all work, with clocks of the given rates; 0: of true time.
func begin(t *testing.T, rates ...float64) *story {
	s := &story{newWorld(1, small), t}
	for i, p := range s.peers {
		if p.clock.rate = 1; i < len(rates) && rates[i] > 0 {
			p.clock.rate = rates[i]
		}
	}
	s.people()
	s.pass(90 * time.Second)
	for i := range small.Agents {
		if len(s.truth.procs[agentName(i)]) != 1 {
			t.Fatalf("%s does not work: %+v", agentName(i), s.leader().team.Agents[agentName(i)].Session)
		}
	}
	return s
}

// pass lets time go on, and fails if a rule is broken.
func (s *story) pass(d time.Duration) {
	s.t.Helper()
	s.until(s.now + d)
	if s.failure != nil {
		s.t.Fatal(s.failure)
	}
}

// end heals the cluster, and expects that it comes to rest.
func (s *story) end() {
	s.t.Helper()
	s.heal()
	s.pass(2 * time.Minute)
	if s.checkEnd(); s.failure != nil {
		s.t.Fatal(s.failure)
	}
}

func (s *story) leader() *lead {
	s.t.Helper()
	for _, p := range s.peers {
		if p.lead != nil && p.lead.won && p.lead.epoch == s.truth.epoch {
			return p.lead
		}
	}
	s.t.Fatal("no host leads")
	return nil
}

// worker is a host that has no node of the engine, and sessions.
func (s *story) worker() *peer {
	s.t.Helper()
	for _, p := range s.peers[nodes:] {
		if s.working(p) > 0 {
			return p
		}
	}
	s.t.Fatal("no session runs on a host without a node")
	return nil
}

// working is how many processes run on a host.
func (s *story) working(p *peer) (n int) {
	for _, shim := range p.shims {
		if shim.runs() {
			n++
		}
	}
	return n
}

func (s *story) alone(p *peer) {
	p.side = 100 + p.i
	s.engineChanged()
}

func (s *story) order(agent, word string, at *peer) *order {
	o := &order{agent: agent, word: word, at: at}
	s.give(o)
	return o
}

// Rule 3: a host that is cut off ends its sessions by its own clock, before they begin elsewhere.
func TestCutOffHostEndsItsSessions(t *testing.T) {
	for _, rate := range []float64{0.9, 1, 1.1} { // against leaders whose clocks are wrong the other way
		s := begin(t, 2-rate, 2-rate, 2-rate, rate, rate)
		p := s.worker()
		had := s.working(p)
		s.alone(p)
		s.pass(30 * time.Second)
		if n := s.working(p); n != had {
			t.Errorf("rate %v: %d of %d sessions run after 30 s", rate, n, had)
		}
		s.pass(25 * time.Second)
		waits := 0
		for _, shim := range p.shims {
			if shim.man.Waits {
				waits++
			}
		}
		if n := s.working(p); n != waits {
			t.Errorf("rate %v: %d sessions run after 55 s, and %d wait", rate, n, waits)
		}
		s.pass(35 * time.Second)
		if h := s.truth.hosts.Hosts[p.name]; h.State != host.Lost || s.counts[moved] != had-waits {
			t.Errorf("rate %v: the host is %s, and %d of %d sessions moved", rate, h.State, s.counts[moved], had-waits)
		}
		s.end()
	}
}

// Rule 3: a session moves only when its host is lost; a doubt moves nothing.
func TestDoubtMovesNothing(t *testing.T) {
	s := begin(t)
	p := s.worker()
	had := s.working(p)
	s.alone(p)
	s.pass(35 * time.Second)
	if h := s.truth.hosts.Hosts[p.name]; h.State != host.Doubted {
		t.Errorf("the host is %s", h.State)
	}
	s.end()
	if h := s.truth.hosts.Hosts[p.name]; h.State != host.Joined || s.working(p) != had || s.counts[moved] != 0 {
		t.Errorf("the host is %s, %d of %d sessions run, %d moved", h.State, s.working(p), had, s.counts[moved])
	}
}

// Rule 3: the lease counts while the machine sleeps, so a session ends when its machine wakes too late.
func TestSleepCounts(t *testing.T) {
	s := begin(t)
	p := s.worker()
	s.sleep(p, 120*time.Second)
	s.pass(130 * time.Second)
	if s.counts[moved] == 0 || s.counts[leaseEnds] == 0 {
		t.Errorf("%d sessions moved, %d ended by their lease", s.counts[moved], s.counts[leaseEnds])
	}
	s.end()
}

// A stopped daemon does not stop its shims: they end their sessions in time.
func TestStoppedDaemon(t *testing.T) {
	s := begin(t)
	p := s.worker()
	s.stop(p, 120*time.Second)
	s.pass(130 * time.Second)
	if s.counts[moved] == 0 || s.counts[leaseEnds] == 0 {
		t.Errorf("%d sessions moved, %d ended by their lease", s.counts[moved], s.counts[leaseEnds])
	}
	s.end()
}

// A leader whose node shows the past sees no renewals. It cannot close the leases, so it loses no host.
func TestLeaderThatSeesThePastLosesNoHost(t *testing.T) {
	s := begin(t)
	s.engine.node[s.leader().p.node].lag = 80 * time.Second
	s.pass(90 * time.Second)
	s.end()
	if s.counts[lost] != 0 || s.counts[closed] != 0 {
		t.Errorf("%d hosts lost, %d leases closed", s.counts[lost], s.counts[closed])
	}
}

// Error 10071 without a conflict: the node is still storing the message, and takes the second try for
// another writer's. The leader goes on, and the order is answered.
func TestWrongLastIsNoConflict(t *testing.T) {
	s := begin(t)
	s.slowly = 3 * time.Second
	s.answeredWithoutConflict(falseConflicts)
}

// The reply to a stored message is lost: a second try is answered with 10071, and the id at its place says
// that it was stored.
func TestLostReply(t *testing.T) {
	s := begin(t)
	s.mute, s.engine.node[s.leader().p.node].lag = 2, 5*time.Second // it also reads late, so it tries again
	s.answeredWithoutConflict(retries)
}

// answeredWithoutConflict gives an order, and expects that it is stored while the leader meets something.
func (s *story) answeredWithoutConflict(meets string) {
	s.t.Helper()
	before := maps.Clone(s.counts)
	o := s.order(agentName(0), control.WordPause, s.leader().p)
	s.pass(20 * time.Second)
	if !o.stored || s.counts[meets] == before[meets] || s.counts[conflicts] != before[conflicts] || s.counts[epochs] != before[epochs] {
		s.t.Errorf("stored %v; before %v, after %v", o.stored, before, s.counts)
	}
	s.slowly = 0
	s.end()
}

// A leader that is cut off answers nothing: only what it appends after a question is an answer. So a pause that
// the next leader acknowledged holds for the hosts that the old leader still reaches.
func TestReplacedLeaderStartsNothing(t *testing.T) {
	s := begin(t)
	old, p := s.leader().p, s.worker()
	agent := agentOf(p.sessions()[0])
	s.next(agent, p, func(session string) bool { return p.mine[session].N > 0 }) // it has read that the next one is placed here
	old.side, p.side, p.stopped = 7, 7, true                                     // it asks when another host leads
	s.engineChanged()
	s.engine.ready = s.now
	at := s.other(old, p)
	s.wait(func() bool { return at.leads != old })
	o := s.order(agent, control.WordPause, at)
	s.wait(func() bool { return o.stored })
	p.stopped = false
	p.resume()
	s.pass(10 * time.Second)
	if n := len(s.truth.procs[agent]); n != 0 || old.lead == nil || !p.guard.Holds(p.now()) {
		t.Errorf("%d processes run; the old leader is %v; lease %v", n, old.lead, p.guard.Holds(p.now()))
	}
	s.end()
}

// wait lets time go on until something has happened.
func (s *story) wait(has func() bool) {
	s.t.Helper()
	for deadline := s.now + time.Minute; !has(); s.pass(time.Millisecond) {
		if s.now > deadline {
			s.t.Fatal("it does not happen")
		}
	}
}

// other is a host that is neither of two.
func (s *story) other(a, b *peer) *peer {
	for _, p := range s.peers {
		if p != a && p != b {
			return p
		}
	}
	return nil
}

// next ends the session of an agent, whose next one begins on the same host, until that has come to a point.
func (s *story) next(agent string, p *peer, point func(session string) bool) {
	s.t.Helper()
	l := s.leader()
	before := p.sessions()
	for _, name := range before {
		if agentOf(name) == agent {
			p.shims[name].end(didItsWork)
		}
	}
	s.wait(func() bool {
		now := l.team.Agents[agent].Session
		return now != nil && !slices.Contains(before, now.ID) && point(now.ID)
	})
}

// A pause is acknowledged only when a start that was granted before has begun, or cannot begin any more.
func TestPauseWaitsForGrants(t *testing.T) {
	s := begin(t)
	l, p := s.leader(), s.worker()
	agent := agentOf(p.sessions()[0])
	s.next(agent, p, func(session string) bool { return l.grants[session] > 0 })
	s.stop(p, 30*time.Second)
	began := s.now
	o := s.order(agent, control.WordPause, l.p)
	s.pass(20 * time.Second)
	if took := o.overAt - began; !o.stored || took < time.Duration(host.GrantFor) || took > 2*time.Duration(grantGone) {
		t.Errorf("stored %v after %v", o.stored, took)
	}
	s.end()
}

// Two hosts try to lead at the same time: the end of the journal is pinned, so one of them does.
func TestTwoTryToLead(t *testing.T) {
	s := begin(t)
	epoch := s.truth.epoch
	for _, p := range s.peers[:nodes] {
		if p.lead == nil {
			p.lead = newLead(p)
			p.lead.stand()
		}
	}
	s.pass(5 * time.Second)
	if s.truth.epoch != epoch+1 || s.counts[conflicts] == 0 {
		t.Errorf("epoch %d after %d, %d conflicts", s.truth.epoch, epoch, s.counts[conflicts])
	}
	s.end()
}

// A damaged store is noticed by the mirrors, made anew, and never served.
func TestDamagedStore(t *testing.T) {
	s := begin(t)
	p := s.peers[1]
	s.engine.node[p.node].damaged = map[int]bool{len(s.engine.log) / 2: true}
	s.restart(p, time.Second)
	p.pos, p.chain.Seq, p.chain.Hash, p.hosts, p.mine, p.leads = 0, 0, s.truth.hashes[0], host.Hosts{}, map[string]host.Lease{}, nil
	p.chain.Hash = [32]byte{}
	s.pass(time.Minute)
	if s.counts[rebuilt] != 1 || p.pos != len(s.engine.log) {
		t.Errorf("%d stores made anew, mirror at %d of %d", s.counts[rebuilt], p.pos, len(s.engine.log))
	}
	s.end()
}

// Rule 4: the end of a session on a lost host comes late. It is kept, and moves nothing.
func TestLateReport(t *testing.T) {
	s := begin(t)
	p := s.worker()
	s.alone(p)
	s.pass(100 * time.Second)
	s.end()
	h := s.truth.hosts.Hosts[p.name]
	if len(h.Late) == 0 || h.Late[0].Incarnation != 1 || h.Incarnation != 2 {
		t.Errorf("incarnation %d, late: %+v", h.Incarnation, h.Late)
	}
}
