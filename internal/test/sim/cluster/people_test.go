package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// order is what a person wants, until it is answered for good.
type order struct {
	note    string
	agent   string // or
	channel string
	word    string
	at      *peer // where the person is
	givenAt time.Duration
	tries   int

	over    bool
	stored  bool
	refused bool
	overAt  time.Duration
}

func (w *world) onLost(agent string) host.OnLost {
	return []host.OnLost{host.Restart, host.Restart, host.Restart, host.Ask, host.Wait}[number(agent)%5]
}

func (w *world) needs(agent string) []string {
	if number(agent)%7 == 3 {
		return []string{"gpu"}
	}
	return nil
}

func number(name string) (n int) {
	for _, digit := range strings.TrimLeft(name, "ac") {
		n = n*10 + int(digit-'0')
	}
	return n
}

// capacity lets half of the hosts take all sessions.
func (w *world) capacity() int { return 2*w.size.Agents/w.size.Hosts + 2 }

// people starts all agents, and then gives orders at random.
func (w *world) people() {
	for i := range w.size.Agents {
		w.in(w.between(0, 20*time.Second), func() { w.give(&order{agent: agentName(i), word: control.WordContinuous}) })
	}
	end := w.now + w.size.Faults
	var next func()
	next = func() {
		if w.now > end {
			return
		}
		w.in(w.between(0, 2*w.size.Orders), next)
		o := &order{agent: agentName(w.rnd.IntN(w.size.Agents)), word: control.WordContinuous}
		switch {
		case w.chance(30):
			o = &order{channel: channelName(w.rnd.IntN(w.size.Channels))}
		case w.chance(45):
			o.word = control.WordPause
		}
		w.give(o)
	}
	w.in(25*time.Second, next)
}

// give gives an order at some host, and repeats it until it is answered.
func (w *world) give(o *order) {
	o.note, o.givenAt = fmt.Sprintf("order %d", len(w.truth.orders)+1), w.now
	if o.at == nil {
		o.at = w.peers[w.rnd.IntN(len(w.peers))]
	}
	w.truth.orders = append(w.truth.orders, o)
	w.try(o)
}

func (w *world) try(o *order) {
	if o.over {
		return
	}
	o.tries++
	w.in(10*time.Second, func() { w.try(o) })
	if !o.at.running() {
		return
	}
	o.at.tell(func(l *lead) {
		l.ordered(o, func(stored bool, err error) {
			w.send(l.p, o.at, func() { w.answered(o, stored, err) })
		})
	})
}

// answered takes in an answer. That nothing was stored is final if the order was sent once: a later one may be.
func (w *world) answered(o *order, stored bool, err error) {
	if o.over || !stored && o.tries > 1 {
		return
	}
	o.over, o.stored, o.refused, o.overAt = true, stored && err == nil, err != nil, w.now
	w.truth.answered(o)
}

// noteOf is the order that a change obeys.
func noteOf(ch change.Change) string {
	switch {
	case change.As[control.Body](ch.Body) != nil && strings.HasPrefix(ch.Trigger, "wanted_"):
		return change.As[control.Body](ch.Body).Value.Desired.Note
	case change.As[channel.Set](ch.Body) != nil:
		return change.As[channel.Set](ch.Body).Text
	}
	return ""
}

// faults happen until the time for them is over.
func (w *world) faults() {
	end := w.now + w.size.Faults
	var next func()
	next = func() {
		if w.now < end {
			w.in(w.between(time.Second, 20*time.Second), next)
			w.fault()
		}
	}
	w.in(w.between(20*time.Second, 40*time.Second), next)
}

func (w *world) fault() {
	p := w.peers[w.rnd.IntN(len(w.peers))]
	if w.chance(30) {
		p = w.peers[w.rnd.IntN(nodes)]
	}
	takes := w.between(time.Second, 30*time.Second)
	if w.chance(40) {
		takes = w.between(30*time.Second, 200*time.Second)
	}
	switch w.rnd.IntN(12) {
	case 0, 1: // a partition
		for _, other := range w.peers {
			other.side = w.rnd.IntN(2)
		}
		w.note("a partition for %v", takes)
		w.engineChanged()
		w.in(takes, w.join)
	case 2: // one host alone
		p.side = 100 + p.i
		w.note("%s alone for %v", p.name, takes)
		w.engineChanged()
		w.in(takes, w.join)
	case 3: // a way in one direction
		way := [2]int{p.i, w.rnd.IntN(len(w.peers))}
		w.blocked[way] = true
		w.note("nothing from h%02d to h%02d for %v", way[0], way[1], takes)
		w.engineChanged()
		w.in(takes, func() { delete(w.blocked, way); w.engineChanged() })
	case 4:
		w.stop(p, takes)
	case 5:
		w.sleep(p, takes)
	case 6:
		w.crash(p, w.between(time.Second, 15*time.Second))
	case 7:
		w.restart(p, takes)
	case 8:
		p.clock.jumped += w.between(-100*24*time.Hour, 100*24*time.Hour)
	case 9: // a store is lost, damaged or behind; two nodes are whole
		n := &w.engine.node[p.i%nodes]
		for i := range nodes {
			if other := &w.engine.node[i]; other != n && (w.now < other.emptyTil || len(other.damaged) > 0) {
				return
			}
		}
		w.note("the store of node %d is lost, damaged or behind for %v", p.i%nodes, takes/2)
		switch w.rnd.IntN(3) {
		case 0:
			n.emptyTil = w.now + takes/2
		case 1:
			if len(w.engine.log) > 0 {
				n.damaged = map[int]bool{w.rnd.IntN(len(w.engine.log)): true, len(w.engine.log) + w.rnd.IntN(50): true}
			}
		default:
			n.lag = takes / 2
			w.in(takes, func() { n.lag = 0 })
		}
	case 10: // the mirror is lost with its disk; the daemon makes it anew
		if !p.off && !p.asleep && p.lead == nil {
			p.pos, p.chain, p.hosts, p.mine, p.leads = 0, journal.Chain{}, host.Hosts{}, map[string]host.Lease{}, nil
			w.crash(p, time.Second)
		}
	case 11:
		w.person(p)
	}
}

// person drains or removes a host, and invites it again later.
func (w *world) person(p *peer) {
	in := host.Input(host.Drain{Name: p.name})
	if w.chance(40) {
		in = host.Remove{Name: p.name}
	}
	p.invited = false
	w.note("a person says %T of %s", in, p.name)
	p.tell(func(l *lead) { l.submit(func() error { return l.host(in) }, nil) })
	w.in(w.between(20*time.Second, 150*time.Second), func() { p.invited = true })
}

// join ends all partitions.
func (w *world) join() {
	for _, p := range w.peers {
		p.side = 0
	}
	w.engineChanged()
}

// stop is SIGSTOP to the daemon; its shims run on.
func (w *world) stop(p *peer, d time.Duration) {
	if !p.running() {
		return
	}
	p.stopped = true
	w.note("the daemon of %s stops for %v", p.name, d)
	w.engineChanged()
	w.in(d, func() { p.stopped = false; p.resume() })
}

// sleep suspends the machine, with all its processes.
func (w *world) sleep(p *peer, d time.Duration) {
	if p.off || p.asleep {
		return
	}
	p.asleep = true
	w.note("%s sleeps for %v", p.name, d)
	w.engineChanged()
	boots := p.boots
	w.in(d, func() {
		if p.boots == boots && !p.off {
			p.asleep = false
			p.clock.slept += d
			p.resume()
		}
	})
}

// crash ends the daemon, which starts again after a while. Shims and processes run on.
func (w *world) crash(p *peer, d time.Duration) {
	if !p.running() {
		return
	}
	boots := p.boots
	p.life++
	p.lead, p.unread, p.stopped = nil, nil, true
	w.note("the daemon of %s crashes for %v", p.name, d)
	w.in(d, func() {
		if p.boots == boots && !p.off {
			p.stopped = false
			p.resume()
			p.run(p.begin)
		}
	})
}

// restart turns the machine off and on. All its processes end.
func (w *world) restart(p *peer, d time.Duration) {
	if p.off {
		return
	}
	p.off, p.asleep, p.stopped = true, false, false
	w.note("%s restarts in %v", p.name, d)
	p.life++
	p.lead, p.unread, p.atWake = nil, nil, nil
	for _, s := range p.sessions() {
		if s := p.shims[s]; s.runs() {
			s.end(turnedOff)
		}
	}
	p.shims = map[string]*proc{}
	w.engineChanged()
	w.in(d, func() {
		p.boots++
		p.off = false
		p.clock.began, p.clock.slept = w.now, 0
		delete(w.truth.renewed, p)
		p.begin()
	})
}

// heal ends all faults; hosts that sleep wake when their time comes.
func (w *world) heal() {
	w.faulty = false
	clear(w.blocked)
	for i := range w.engine.node {
		w.engine.node[i].lag = 0
	}
	for _, p := range w.peers {
		p.invited = true
	}
	w.join()
}
