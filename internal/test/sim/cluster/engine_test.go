package cluster

import (
	"cmp"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
)

const nodes = 3 // of the engine; a message is stored when two have it

// message is one append.
type message struct {
	id      string
	by      *peer
	records []journal.Change // complete: with numbers and hashes
	at      time.Duration    // when it was stored
	hosts   []change.Change  // those of hosts, decoded once
	began   uint64           // the epoch that it begins; 0: none
}

// version is one revision of an entry beside the journal.
type version struct {
	at     time.Duration
	rev    uint64
	by     host.RenewalID
	closed bool
	sent   host.BootTime // for the checks: when the host sent it,
	boots  int           // and in which boot
}

// engine is what the nodes agree on, and what each of them shows.
type engine struct {
	log     []*message
	entries map[string][]version
	leader  int           // the node that orders messages; -1: none
	ready   time.Duration // of that node: before, it answers nothing
	slow    *message      // it is being stored; tries at its place are answered with 10071
	node    [nodes]node
}

type node struct {
	majority bool
	cutAt    time.Duration // since when it shows the past
	lag      time.Duration // what it shows is so old
	emptyTil time.Duration // its store was lost: it shows nothing
	damaged  map[int]bool  // messages in its store with a flipped bit
	stuck    bool          // it took a message while it was cut off, which it can never store
}

func newEngine() engine { return engine{entries: map[string][]version{}, leader: 0} }

// engineChanged looks again at which nodes have a majority, and lets one of those lead.
func (w *world) engineChanged() {
	e, any := &w.engine, -1
	for i := range nodes {
		n, together := &e.node[i], 0
		for j := range nodes {
			if w.peers[i].running() && w.peers[j].running() && w.reaches(w.peers[i], w.peers[j]) && w.reaches(w.peers[j], w.peers[i]) {
				together++
			}
		}
		has := together > nodes/2
		if n.majority && !has {
			n.cutAt = w.now
		}
		if n.majority = has; has {
			any, n.stuck = i, false
		}
	}
	if e.leader >= 0 && e.node[e.leader].majority {
		return
	}
	if e.leader = any; any >= 0 {
		e.ready = w.now + w.between(300*time.Millisecond, 8*time.Second)
		if w.chance(50) {
			e.slow = nil // the new leader does not have it
		}
	}
}

// shows is the time whose content a node shows.
func (w *world) shows(i int) time.Duration {
	n := &w.engine.node[i]
	switch {
	case w.now < n.emptyTil:
		return -1
	case !n.majority:
		return n.cutAt - n.lag
	}
	return w.now - n.lag
}

// visible is how many messages a node shows.
func (w *world) visible(i int) int {
	at, n := w.shows(i), len(w.engine.log)
	for n > 0 && w.engine.log[n-1].at > at {
		n--
	}
	return n
}

// entry is what a node shows of an entry.
func (w *world) entry(i int, key string) version {
	at, all := w.shows(i), w.engine.entries[key]
	for n := len(all) - 1; n >= 0; n-- {
		if all[n].at <= at {
			return all[n]
		}
	}
	return version{}
}

// call is a request of a host to its node. The answer may be lost, also after the request was obeyed.
func (w *world) call(p *peer, does func(i int) jetstream.Answer, answered func(jetstream.Answer)) {
	const timeout = time.Second
	over := false
	answer := func(a jetstream.Answer) {
		if !over {
			over = true
			p.run(func() { answered(a) })
		}
	}
	life, node, i := p.life, w.peers[p.node], p.node
	p.later(host.BootTime(timeout), func() { answer(jetstream.NoAnswer) })
	if !w.reaches(p, node) {
		return
	}
	w.in(w.between(time.Millisecond, 5*time.Millisecond), func() {
		if !node.running() || !w.reaches(p, node) || w.faulty && w.chance(2) {
			return
		}
		a := does(i)
		if a == jetstream.NoAnswer || w.faulty && w.chance(3) {
			return
		}
		w.in(w.between(time.Millisecond, 5*time.Millisecond), func() {
			if p.life == life && w.reaches(node, p) {
				answer(a)
			}
		})
	})
}

// publish asks a node to store a message at a place.
func (w *world) publish(p *peer, m *message, id string, place uint64, answered func(jetstream.Answer)) {
	w.call(p, func(i int) jetstream.Answer { return w.store(i, m, id, place) }, answered)
}

// store is how a node treats a message. Only a stored one is acknowledged; error 10071 means nothing.
func (w *world) store(i int, m *message, id string, place uint64) jetstream.Answer {
	e := &w.engine
	n := &e.node[i]
	if !n.majority { // it takes the first try, can never store it, and takes the second for another writer's
		if n.stuck {
			w.counts[falseConflicts]++
			return jetstream.WrongLast
		}
		n.stuck = true
		return jetstream.NoAnswer
	}
	switch {
	case w.now < e.ready:
		return jetstream.NoAnswer
	case place != uint64(len(e.log))+1:
		return jetstream.WrongLast
	case e.slow != nil:
		w.counts[falseConflicts]++
		return jetstream.WrongLast
	}
	stored := *m
	stored.id = id
	if takes := w.slowly; takes > 0 || w.faulty && w.chance(2) { // it stores the message later, or forgets it
		forgets := takes == 0 && w.chance(30)
		e.slow = &stored
		w.in(cmp.Or(takes, w.between(500*time.Millisecond, 5*time.Second)), func() {
			if e.slow != &stored {
				return
			}
			if e.slow = nil; place == uint64(len(e.log))+1 && !forgets {
				w.commit(&stored)
			}
		})
		return jetstream.NoAnswer
	}
	w.commit(&stored)
	if w.mute > 0 {
		w.mute--
		return jetstream.NoAnswer
	}
	return jetstream.Acknowledged
}

// commit stores a message. From now on all mirrors have it, sooner or later.
func (w *world) commit(m *message) {
	m.at = w.now
	w.engine.log = append(w.engine.log, m)
	w.counts[messages]++
	w.counts[changes] += len(m.records)
	w.truth.stored(m)
	for _, p := range w.peers {
		p.later(host.BootTime(w.between(2*time.Millisecond, 20*time.Millisecond)), p.pull)
	}
}

// set changes an entry if it has the revision of to, which gets the next one. Only a positive answer is proof.
func (w *world) set(p *peer, key string, to version, answered func(ok bool)) {
	w.call(p, func(i int) jetstream.Answer {
		all := w.engine.entries[key]
		if !w.engine.node[i].majority || w.now < w.engine.ready {
			return jetstream.NoAnswer
		}
		if n := len(all); n > 0 && all[n-1].rev != to.rev || n == 0 && to.rev != 0 {
			return jetstream.WrongLast
		}
		if len(all) > 300 {
			all = append([]version{}, all[200:]...)
		}
		next := to
		next.at, next.rev = w.now, to.rev+1
		w.engine.entries[key] = append(all, next)
		if next.boots == p.boots && !to.closed && to.by.N > 0 {
			w.truth.renewed[p] = max(w.truth.renewed[p], to.sent)
		}
		return jetstream.Acknowledged
	}, func(a jetstream.Answer) { answered(a == jetstream.Acknowledged) })
}
