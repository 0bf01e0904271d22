package cluster

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// tolerance is the precision of the checks of time, in which clocks are multiplied by rates.
const tolerance = host.BootTime(10 * time.Millisecond)

// truth is what no host knows: everything that was stored, and all processes, by true time.
type truth struct {
	w      *world
	chain  journal.Chain
	hashes []journal.Hash // after each message
	epoch  uint64
	leads  *peer
	hosts  host.Hosts
	orders []*order

	placeOf map[string]uint64         // of each stored order, by note
	wordN   map[string]uint64         // number of the desired state of an order
	started map[string]uint64         // place of the newest order to work, by agent
	paused  map[string]uint64         // place of the newest acknowledged pause, by agent
	words   map[string]string         // the newest order, by agent
	procs   map[string]map[*proc]bool // that run, by agent
	last    map[string]time.Duration  // when the last process of an agent ended
	renewed map[*peer]host.BootTime   // when the last renewal that was stored was sent, of this boot
}

func newTruth(w *world) truth {
	t := truth{
		w: w, placeOf: map[string]uint64{}, wordN: map[string]uint64{}, started: map[string]uint64{}, paused: map[string]uint64{},
		words: map[string]string{},
		procs: map[string]map[*proc]bool{}, last: map[string]time.Duration{}, renewed: map[*peer]host.BootTime{},
	}
	w.in(time.Second, w.watch)
	return t
}

// watch looks at all processes every second.
func (w *world) watch() {
	w.in(time.Second, w.watch)
	for _, p := range w.peers {
		if p.asleep {
			continue
		}
		for _, name := range p.sessions() {
			if s := p.shims[name]; s.runs() {
				w.truth.leased(s)
			}
		}
	}
}

// stored is called with each message when it is stored.
func (t *truth) stored(m *message) {
	place := uint64(len(t.w.engine.log))
	for i := range m.records {
		r := &m.records[i]
		if err := t.chain.Take(r); err != nil {
			t.w.broken(oneChain, "message %d of %s: %v", place, m.by.name, err)
			return
		}
		if r.Machine == hostMachine {
			ch := changeOf(r)
			m.hosts = append(m.hosts, ch)
			t.ofHost(ch)
			continue
		}
		ch, err := loop.ChangeOf(*r)
		if err != nil {
			t.w.broken(oneChain, "message %d: %v", place, err)
			return
		}
		if ch.Trigger == "daemon_started" && change.As[team.TeamSet](ch.Body) != nil {
			m.began = change.As[team.TeamSet](ch.Body).Epoch
			if m.began <= t.epoch {
				t.w.broken(epochsRise, "%s began epoch %d after epoch %d", m.by.name, m.began, t.epoch)
			}
			t.epoch, t.leads = m.began, m.by
			t.w.counts[epochs]++
			t.w.note("%s leads in epoch %d", m.by.name, m.began)
		}
		t.ofTeam(ch, place)
	}
	if t.leads != m.by {
		t.w.broken(epochsRise, "%s wrote message %d, and %s leads in epoch %d", m.by.name, place, t.leads.name, t.epoch)
	}
	t.hashes = append(t.hashes, t.chain.Hash)
}

func (t *truth) ofHost(ch change.Change) {
	body := change.As[host.Body](ch.Body)
	switch host.Event(ch.Trigger) {
	case host.LostDue, host.RemovalDue:
		t.w.counts[lost]++
		t.w.note("%s is lost", body.Host.Name)
	case host.ReportedLate:
		t.w.counts[late]++
	case host.SessionPlaced:
		if l, placed := t.hosts.Leases[body.Lease.Session]; placed {
			t.w.broken(oneProcess, "%s is placed on %s and on %s", l.Session, l.Host, body.Host.Name)
		}
	}
	t.hosts.Apply(ch)
}

func (t *truth) ofTeam(ch change.Change, place uint64) {
	if note := noteOf(ch); note != "" {
		n := uint64(0)
		if change.As[control.Body](ch.Body) != nil {
			n = change.As[control.Body](ch.Body).Value.Desired.N
			agent := team.AgentOf(ch.Entity)
			if t.words[agent] = change.As[control.Body](ch.Body).Value.Desired.State; t.words[agent] != control.WordPause {
				t.started[agent] = place
			}
		}
		if before, again := t.placeOf[note]; again && (n == 0 || n != t.wordN[note]) {
			t.w.broken(ordersOnce, "%s is in message %d and in message %d", note, before, place)
		}
		t.placeOf[note], t.wordN[note] = place, n
	}
	s := change.As[team.Session](ch.Body)
	if s == nil || s.Phase != session.None {
		return
	}
	switch {
	case s.Outcome == control.OK:
		if ok, why := t.hosts.Counts(t.hosts.Leases[s.ID].Token); !ok {
			t.w.broken(lateIsLate, "%s was ended by a report that does not count: %s", s.ID, why)
		}
	default: // lost or withdrawn
		for proc := range t.procs[agentOf(s.ID)] {
			if proc.session == s.ID && !proc.p.asleep {
				t.w.broken(movedSafely, "%s ended as %s (%s), and runs on %s", s.ID, s.Outcome, s.Why, proc.p.name)
			}
		}
	}
}

// answered takes in the answer that a person got.
func (t *truth) answered(o *order) {
	place, there := t.placeOf[o.note]
	switch {
	case o.stored && !there:
		t.w.broken(ordersOnce, "%s was acknowledged, and is not in the journal", o.note)
	case o.stored && o.word == control.WordPause:
		t.paused[o.agent] = max(t.paused[o.agent], place)
		t.w.counts[pauses]++
	}
}

// began is called when a process begins.
func (t *truth) began(s *proc) {
	agent := agentOf(s.session)
	t.w.counts[starts]++
	if t.procs[agent] == nil {
		t.procs[agent] = map[*proc]bool{}
	}
	t.procs[agent][s] = true
	if paused := t.paused[agent]; paused > t.started[agent] {
		t.w.broken(pauseHolds, "%s begins on %s; the pause in message %d was acknowledged", s.session, s.p.name, paused)
	}
	t.alone(agent)
	t.leased(s)
}

// alone checks that at most one process of an agent runs. On a machine that sleeps none does.
func (t *truth) alone(agent string) {
	var first *proc
	for s := range t.procs[agent] {
		if s.p.asleep {
			continue
		}
		if first != nil {
			t.w.broken(oneProcess, "%s runs on %s and %s on %s", first.session, first.p.name, s.session, s.p.name)
		}
		first = s
	}
}

// awake is called when a machine wakes, after its shims have looked at the time.
func (t *truth) awake(p *peer) {
	for _, name := range p.sessions() {
		if s := p.shims[name]; s.runs() {
			t.alone(agentOf(s.session))
			t.leased(s)
		}
	}
}

func (t *truth) ended(s *proc) {
	agent := agentOf(s.session)
	t.last[agent] = t.w.now
	delete(t.procs[agent], s)
	if s.why == leaseEnded {
		t.w.counts[leaseEnds]++
	}
}

// leased checks that a process has a lease, by the boot-time clock of its machine.
func (t *truth) leased(s *proc) {
	if s.man.Waits {
		return
	}
	if over := s.p.clock.boot(t.w.now) - t.renewed[s.p] - host.EndAfter - host.EndWithin; over > tolerance {
		t.w.broken(leaseHolds, "%s runs on %s %v after the lease ended", s.session, s.p.name, time.Duration(over))
	}
}

// checkEnd is asked when the faults are over for a while.
func (w *world) checkEnd() {
	if w.failure != nil {
		return
	}
	t := &w.truth
	var leader *lead
	for _, p := range w.peers {
		switch {
		case p.pos == 0 || p.chain.Hash != t.hashes[p.pos-1]:
			w.broken(oneChain, "the mirror of %s has another hash at message %d", p.name, p.pos)
		case p.pos < len(w.engine.log) && w.engine.log[p.pos].at < w.now-5*time.Second:
			w.broken(settles, "the mirror of %s ends at message %d of %d", p.name, p.pos, len(w.engine.log))
		}
		if l := p.lead; l != nil && l.won && l.epoch == t.epoch {
			leader = l
		}
	}
	if leader == nil {
		w.broken(settles, "no host leads")
		return
	}
	w.checkOrders()
	w.checkAgents(leader)
	w.checkReplay(leader)
}

func (w *world) checkOrders() {
	t := &w.truth
	byEnd := slices.Clone(t.orders)
	slices.SortStableFunc(byEnd, func(a, b *order) int { return int(a.overAt - b.overAt) })
	next, highest := 0, uint64(0) // of the orders that were acknowledged before one was given
	for _, o := range t.orders {
		for ; next < len(byEnd) && byEnd[next].overAt < o.givenAt; next++ {
			if byEnd[next].stored {
				highest = max(highest, t.placeOf[byEnd[next].note])
			}
		}
		place, there := t.placeOf[o.note]
		switch {
		case !o.over:
			w.broken(settles, "%s was never answered", o.note)
		case !o.stored && there:
			w.broken(refusedAbsent, "%s is in message %d", o.note, place)
		case o.stored && place < highest:
			w.broken(ordersOnce, "%s was given after an order in message %d was acknowledged, and is in message %d", o.note, highest, place)
		}
	}
}

// checkAgents: each agent that shall work does, or did a moment ago, or waits because the only hosts that could
// take it drain.
func (w *world) checkAgents(l *lead) {
	t := &w.truth
	for i := range w.size.Agents {
		agent := agentName(i)
		if len(t.procs[agent]) > 0 || t.words[agent] != control.WordContinuous || w.now-t.last[agent] <= 30*time.Second {
			continue
		}
		choice := l.hosts.Choose(host.Needs{Labels: w.needs(agent)})
		if s := l.team.Agents[agent].Session; choice.Host != "" || s == nil || l.unplaced[s.ID] == "" {
			w.broken(settles, "%s shall work, and has no process since %v: session %+v, %s", agent, t.last[agent], s, choice)
		}
	}
}

// checkReplay compares the leader's state, which it decided on, with that of the journal.
func (w *world) checkReplay(l *lead) {
	if l.busy || uint64(l.p.pos) != l.place { // something is on its way
		return
	}
	again := newLead(l.p)
	for _, part := range []struct{ live, read any }{{l.team, again.team}, {l.hosts, again.hosts}} {
		live, err := json.Marshal(part.live)
		l.must(err)
		read, err := json.Marshal(part.read)
		l.must(err)
		if string(live) != string(read) {
			w.broken(oneChain, "the leader's state is not that of the journal")
		}
	}
}
