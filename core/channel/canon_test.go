package channel

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// form computes the canonical form of a state. The walk treats two states as equal if no sequence
// of inputs can distinguish them. A canonical form omits the following:
//
//   - Numbers. Messages, places, turns and actions are only compared, so they are
//     renumbered from 1 in the same order. The received and answered messages of a
//     participant only matter for messages that can still have an effect, so they are
//     mapped to those: messages that an agent may still answer, and the last message
//     that asks an agent for a turn.
//   - Times. A deadline is set or not. A set deadline may pass at any moment. That
//     allows more sequences than are possible, so every invariant found still holds.
//   - Names. Agents with the same configuration are interchangeable, and so are
//     channels. They are sorted by their state.
//   - Text and data for people: messages, reasons of a wait, start times, whether a
//     person granted the turn, the turn in which a message was first delivered,
//     whether the last disconnection was a crash, the number of passes (a parked
//     channel shows it, but behaves like a quiet one).
//   - Data without a further effect: settled messages received ahead, turns before the
//     last message of a person, rounds beyond the limit, answers of an agent outside
//     of the rotation, the last speaker if every participant has answered.
//
// TestCanonicalFormIsEquivalent checks this: the same steps lead from a state and from its canonical
// form to the same canonical states.
type form struct {
	agents   []AgentID
	channels []ChannelID
	settings Settings
	own      AgentSettings

	head  []byte
	parts [][]byte // one part for each agent
}

// armed is the time at which every deadline of a canonical state passes.
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

// key returns the canonical form of a state.
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
			first = 1 // it comes first and is interchangeable with no other agent
		}
	}
	slices.SortFunc(o.parts[first:], bytes.Compare)
	for _, part := range o.parts {
		o.head = append(o.head, part...)
	}
	return string(o.head)
}

// view is a channel with the message numbers that matter.
type view struct {
	c     *Channel
	queue []AgentID
	fixed []uint64 // sorted
	last  bool     // the last message still asks an agent for a turn
	other bool     // an earlier message does, too
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

// asks reports whether a message may still ask an agent for a turn: an agent that has not answered
// it, or one that joins later, which starts before the oldest open message.
func (v *view) asks(n uint64, whom func(*Participant) bool) bool {
	if n == 0 {
		return false
	}
	if len(v.c.Open) > 0 && v.c.Open[0].N < n {
		return true
	}
	for _, p := range v.c.Participants {
		if v.canGetTurn(p) && p.Rest < n && whom(p) {
			return true
		}
	}
	return false
}

func (v *view) canGetTurn(p *Participant) bool { return p.State != "" || v.c.Head.Rests == p.Agent }

// at returns how many of the fixed numbers are not larger than n.
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
		panic(fmt.Sprintf("%v is not in %v", of, list))
	}
	return byte(i)
}

func (v *view) head(to []byte) []byte {
	h := &v.c.Head
	l := &h.Lease
	parked := h.Parked
	if parked == Passed {
		parked = Quiet
		if slices.ContainsFunc(v.c.Open,
			func(m Message) bool { return m.State == Delivered && m.Ends.IsZero() && m.N != h.Aside.Message }) {
			parked = Unanswered
		}
	}
	to = append(to, byte(len(v.fixed)), place(reasons, parked),
		bits(l.Delivered, l.Stopped, l.Left > 0, !l.Ends.IsZero(), !l.WaitTo.IsZero(), !l.Silence.IsZero(), l.GoOn != 0, l.Spoke),
		bits(h.Aside.Delivered, !h.Aside.Ends.IsZero(), h.Aside.Spoke), v.at(l.Upto), v.at(h.Aside.Message), 0, 0, byte(len(v.c.Open)))
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
	if !v.canGetTurn(p) {
		rest = 0 // it is computed again when the agent returns
	}
	to = append(to, roles, place(states, p.State), byte(slices.Index(v.queue, name)+1), bits(p.JoinOnConnect, p.Stop != 0, p.Gone),
		v.at(rest), v.at(p.Heard), byte(took), byte(p.Late), byte(len(p.Parallel)))
	for _, a := range p.Parallel {
		to = append(to, v.at(a.N), bits(a.Delivered))
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

// reader decodes a canonical form.
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

// channels returns a state with this canonical form.
func (o *form) decode(key string) *Channels {
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
	}
	return cs
}

func (r *reader) head(c *Channel) {
	h := &c.Head
	h.Seq = r.number()
	h.Turn, h.ActionSeq = 2, 1
	h.Parked = reasons[r.next()]
	var left, ends, wait, silence, goOn, asideEnds, lapses bool
	r.flags(&h.Lease.Delivered, &h.Lease.Stopped, &left, &ends, &wait, &silence, &goOn, &h.Lease.Spoke)
	h.Lease.Left, h.Lease.GoOn = time.Duration(one(left)), one(goOn)
	h.Lease.Ends, h.Lease.WaitTo, h.Lease.Silence = moment(ends), moment(wait), moment(silence)
	r.flags(&h.Aside.Delivered, &asideEnds, &h.Aside.Spoke)
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
		r.flags(&a.Delivered)
		p.Parallel = append(p.Parallel, a)
	}
	p.Ahead = r.numbers()
	c.Participants[name] = p
	return p
}
