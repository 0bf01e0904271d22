package channel

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// The walk treats two states as equal when no sequence of inputs can distinguish them. What is
// left out of a state, and why that loses nothing:
//
//   - Numbers. Messages, places, turns and actions are only compared, never counted with;
//     so they are numbered anew from 1, in the same order. Of what a seat has heard and answered
//     only matters which of the things still standing it covers, so it is moved down to those:
//     messages that an agent may still answer, and the last message that asks an agent for a turn.
//   - Times. A deadline is armed or it is not, and one that is armed may pass at any moment:
//     that is more than can happen, so whatever holds here holds.
//   - Names. Agents that are configured alike are one another's equal, and so are channels: they
//     stand in the order of what they are like.
//   - Words and figures for people: texts, what a turn waits for, since when, whether a person
//     gave it, in which turn a message was first had, that an agent's last end was a crash, how
//     many passed (a parked channel says so, and does the same as a quiet one).
//   - What has no effect any more: messages ahead that are settled, turns taken since an earlier
//     message of a person, rounds beyond the limit, what an agent outside the rotation has
//     answered, the last speaker if every participant has answered.
//
// The claim is tested (TestCanonicalLosesNothing): from a state with all of its past and from
// its canonical form the same steps lead to the same canonical states.
type form struct {
	agents   []AgentID
	channels []ChannelID
	settings Settings
	own      AgentSettings

	head  []byte
	parts [][]byte // of each agent
}

// armed is when every deadline of a canonical state passes.
var armed = machinetest.Noon.Add(time.Minute)

func newForm(agents, channels int, set Settings, own AgentSettings) *form {
	o := &form{settings: set, own: own, parts: make([][]byte, agents)}
	for i := range agents {
		o.agents = append(o.agents, AgentID(fmt.Sprint("a", i)))
	}
	for i := range channels {
		o.channels = append(o.channels, ChannelID(fmt.Sprint("c", i)))
	}
	return o
}

// key is the canonical form of a floor.
func (o *form) key(cs *Channels) string {
	views := make([]view, len(o.channels))
	for i, id := range o.channels {
		views[i] = newView(cs.ByID[id])
	}
	best := o.write(cs, views)
	if len(views) == 2 {
		views[0], views[1] = views[1], views[0]
		best = min(best, o.write(cs, views))
	}
	return best
}

func (o *form) write(cs *Channels, views []view) string {
	o.head = o.head[:0]
	for i := range views {
		o.head = views[i].head(o.head)
	}
	first := 0
	for i, name := range o.agents {
		a := cs.Agents[name]
		part := append(o.parts[i][:0], bits(a.Connected, a.Disabled, a.Limit != ""))
		for v := range views {
			part = views[v].seat(part, name)
		}
		if o.parts[i] = part; name == o.settings.Lead {
			first = 1 // it comes first in the order, and has no equal
		}
	}
	slices.SortFunc(o.parts[first:], bytes.Compare)
	for _, part := range o.parts {
		o.head = append(o.head, part...)
	}
	return string(o.head)
}

// view is a channel with what its numbers are compared with.
type view struct {
	c     *Channel
	queue []AgentID
	fixed []uint64 // in order
	last  bool     // the last message still asks an agent for a turn
	other bool     // and the ones before them
}

func newView(c *Channel) view {
	v := view{c: c, queue: c.Queue()}
	h := &c.Head
	add := func(n uint64) {
		if n != 0 {
			v.fixed = append(v.fixed, n)
		}
	}
	for i := range c.Open {
		add(c.Open[i].N)
	}
	add(h.Aside.Message)
	v.other = v.asks(h.Said.Else, func(p *Participant) bool { return p.Agent == h.Said.By })
	v.last = v.other || v.asks(h.Said.Last, func(p *Participant) bool { return p.Agent != h.Said.By })
	if v.last {
		add(h.Said.Last)
	}
	if v.other {
		add(h.Said.Else)
	}
	for _, p := range c.Participants {
		for _, a := range p.Parallel {
			add(a.N)
		}
	}
	slices.Sort(v.fixed)
	v.fixed = slices.Compact(v.fixed)
	return v
}

// asks reports whether a message may still ask an agent for a turn: a participant that has not
// answered it, or a future one, which starts before the oldest open message.
func (v *view) asks(n uint64, whom func(*Participant) bool) bool {
	if n == 0 {
		return false
	}
	if len(v.c.Open) > 0 && v.c.Open[0].N < n {
		return true
	}
	for _, p := range v.c.Participants {
		if v.circle(p) && p.Rest < n && whom(p) {
			return true
		}
	}
	return false
}

func (v *view) circle(p *Participant) bool { return p.State != "" || v.c.Head.Rests == p.Agent }

// at is how many of the fixed numbers a number covers: of a fixed one that is its place.
func (v *view) at(n uint64) byte {
	i, found := slices.BinarySearch(v.fixed, n)
	if found {
		i++
	}
	return byte(i)
}

func (v *view) standing(to []byte, ahead []uint64) []byte {
	count := len(to)
	to = append(to, 0)
	for _, n := range ahead {
		if _, open := find(v.c.Open, n); open {
			to = append(to, v.at(n))
		}
	}
	to[count] = byte(len(to) - count - 1)
	return to
}

var (
	reasons   = []Reason{"", Quiet, Unanswered, Rounds, NoAgents, Held, Limited}
	modes     = []Mode{ByQueue, Interrupt, Inject, Parallel}
	states    = []State{"", Queued, Active, Waiting}
	unsettled = []MessageState{Kept, Delivered, Answered}
)

func place[T comparable](list []T, of T) byte {
	i := slices.Index(list, of)
	if i < 0 {
		panic(fmt.Sprintf("%v has no place among %v", of, list))
	}
	return byte(i)
}

func (v *view) head(to []byte) []byte {
	h := &v.c.Head
	l := &h.Lease
	parked := h.Parked
	if parked == Passed {
		parked = Quiet
		if slices.ContainsFunc(v.c.Open, func(m Message) bool { return m.State == Delivered && m.Ends.IsZero() && m.N != h.Aside.Message }) {
			parked = Unanswered
		}
	}
	to = append(to, byte(len(v.fixed)), place(reasons, parked),
		bits(l.Told, l.Stopped, l.Left > 0, !l.Ends.IsZero(), !l.WaitTo.IsZero(), !l.Silence.IsZero(), l.GoOn != 0),
		bits(h.Aside.Told, !h.Aside.Ends.IsZero()), v.at(l.Upto), v.at(h.Aside.Message), 0, 0, byte(len(v.c.Open)))
	if v.last {
		to[len(to)-3] = v.at(h.Said.Last)
	}
	if v.other {
		to[len(to)-2] = v.at(h.Said.Else)
	}
	for i := range v.c.Open {
		m := &v.c.Open[i]
		to = append(to, v.at(m.N), place(modes, m.Mode), place(unsettled, m.State), bits(!m.Ends.IsZero()))
	}
	return v.standing(to, l.Ahead)
}

func (v *view) seat(to []byte, name AgentID) []byte {
	h := &v.c.Head
	p := v.c.Participants[name]
	roles := bits(p != nil, h.Holder == name, h.Rests == name, h.Aside.Message != 0 && h.Aside.Agent == name, v.last && h.Said.By == name)
	if p == nil {
		return append(to, roles)
	}
	took := uint64(0)
	if p.TookFor == h.Human {
		took = uint64(min(p.Took, v.c.Settings.RoundsMax))
	}
	rest := p.Rest
	if !v.circle(p) {
		rest = 0 // it is settled anew when it comes back
	}
	to = append(to, roles, place(states, p.State), byte(slices.Index(v.queue, name)+1), bits(p.JoinOnConnect, p.Stop != 0, p.Gone),
		v.at(rest), v.at(p.Heard), byte(took), byte(p.Late), byte(len(p.Parallel)))
	for _, a := range p.Parallel {
		to = append(to, v.at(a.N), bits(a.Told))
	}
	return v.standing(to, p.Ahead)
}

func bits(all ...bool) byte {
	b := byte(0)
	for i, is := range all {
		if is {
			b |= 1 << i
		}
	}
	return b
}

// reader takes a canonical form apart.
type reader struct{ key string }

func (r *reader) next() byte {
	b := r.key[0]
	r.key = r.key[1:]
	return b
}

func (r *reader) number() uint64 { return uint64(r.next()) }

func (r *reader) numbers() []uint64 {
	var list []uint64
	for range r.next() {
		list = append(list, r.number())
	}
	return list
}

func (r *reader) flags(into ...*bool) {
	b := r.next()
	for i, is := range into {
		*is = b&(1<<i) != 0
	}
}

func moment(set bool) time.Time {
	if set {
		return armed
	}
	return time.Time{}
}

func one(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

// floor is the state that a canonical form stands for.
func (o *form) floor(key string) *Channels {
	r := &reader{key}
	cs := &Channels{Agents: make(map[AgentID]*Agent, len(o.agents)), ByID: make(map[ChannelID]*Channel, len(o.channels))}
	for _, id := range o.channels {
		c := &Channel{Settings: o.settings, Participants: make(map[AgentID]*Participant, len(o.agents))}
		r.head(c)
		cs.ByID[id] = c
	}
	for _, name := range o.agents {
		a := &Agent{AgentSettings: o.own}
		limited := false
		if r.flags(&a.Connected, &a.Disabled, &limited); limited {
			a.Limit = "x"
		}
		for _, id := range o.channels {
			if p := r.seat(cs.ByID[id], name); p != nil && !p.Gone {
				a.Channels = append(a.Channels, id)
			}
		}
		cs.Agents[name] = a
	}
	for _, c := range cs.ByID {
		for _, p := range c.Participants {
			c.Head.Place = max(c.Head.Place, p.Place)
		}
		c.build()
	}
	return cs
}

func (r *reader) head(c *Channel) {
	h := &c.Head
	h.Seq = r.number()
	h.Turn, h.ActionSeq = 2, 1
	h.Parked = reasons[r.next()]
	var left, ends, wait, silence, goOn, asideEnds, lapses bool
	r.flags(&h.Lease.Told, &h.Lease.Stopped, &left, &ends, &wait, &silence, &goOn)
	h.Lease.Left, h.Lease.GoOn = time.Duration(one(left)), one(goOn)
	h.Lease.Ends, h.Lease.WaitTo, h.Lease.Silence = moment(ends), moment(wait), moment(silence)
	r.flags(&h.Aside.Told, &asideEnds)
	h.Aside.Ends = moment(asideEnds)
	h.Lease.Upto, h.Aside.Message, h.Said.Last, h.Said.Else = r.number(), r.number(), r.number(), r.number()
	for range r.next() {
		m := Message{N: r.number(), By: "ada", Mode: modes[r.next()], State: unsettled[r.next()]}
		r.flags(&lapses)
		m.Ends = moment(lapses)
		c.Open = append(c.Open, m)
	}
	h.Lease.Ahead = r.numbers()
}

func (r *reader) seat(c *Channel, name AgentID) *Participant {
	h := &c.Head
	var is, holds, rests, aside, said, stop bool
	r.flags(&is, &holds, &rests, &aside, &said)
	for _, role := range []struct {
		has bool
		of  *AgentID
	}{{holds, &h.Holder}, {rests, &h.Rests}, {aside, &h.Aside.Agent}, {said, &h.Said.By}} {
		if role.has {
			*role.of = name
		}
	}
	if !is {
		return nil
	}
	p := &Participant{Agent: name, State: states[r.next()], Place: r.number()}
	r.flags(&p.JoinOnConnect, &stop, &p.Gone)
	p.Stop = one(stop)
	p.Rest, p.Heard, p.Took, p.Late = r.number(), r.number(), int(r.next()), int(r.next())
	for range r.next() {
		a := ParallelMessage{N: r.number()}
		r.flags(&a.Told)
		p.Parallel = append(p.Parallel, a)
	}
	p.Ahead = r.numbers()
	c.Participants[name] = p
	return p
}
