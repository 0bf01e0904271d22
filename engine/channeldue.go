package engine

import (
	"container/heap"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

// dues are the next moments of all channels, the earliest first: a step costs the channels that
// it moved, however many there are. Each is kept as it was when it was set, so that a timer
// which fires late ends nobody else's turn.
type dues struct {
	byTime []*due
	of     map[channel.ChannelID]*due
}

type due struct {
	channel.Deadline
	at int // its place in byTime
}

func (d *dues) Len() int           { return len(d.byTime) }
func (d *dues) Less(i, j int) bool { return d.byTime[i].At.Before(d.byTime[j].At) }
func (d *dues) Swap(i, j int) {
	d.byTime[i], d.byTime[j] = d.byTime[j], d.byTime[i]
	d.byTime[i].at, d.byTime[j].at = i, j
}

// Push is heap's.
func (d *dues) Push(x any) {
	one := x.(*due) //nolint:forcetypeassert // nothing else is pushed
	one.at = len(d.byTime)
	d.byTime = append(d.byTime, one)
}

// Pop is heap's.
func (d *dues) Pop() any {
	last := d.byTime[len(d.byTime)-1]
	d.byTime[len(d.byTime)-1] = nil
	d.byTime = d.byTime[:len(d.byTime)-1]
	return last
}

// set makes a channel's next moment this one; a zero time is none.
func (d *dues) set(id channel.ChannelID, next channel.Deadline) {
	was := d.of[id]
	switch {
	case was == nil && next.At.IsZero():
	case was == nil:
		if d.of == nil {
			d.of = map[channel.ChannelID]*due{}
		}
		d.of[id] = &due{Deadline: next}
		heap.Push(d, d.of[id])
	case next.At.IsZero():
		heap.Remove(d, was.at)
		delete(d.of, id)
	default:
		was.Deadline = next
		heap.Fix(d, was.at)
	}
}

func (d *dues) next() time.Time {
	if len(d.byTime) == 0 {
		return time.Time{}
	}
	return d.byTime[0].At
}

// past takes those out that are due.
func (d *dues) past(now time.Time) []channel.Deadline {
	var out []channel.Deadline
	for len(d.byTime) > 0 && !now.Before(d.byTime[0].At) {
		first := d.byTime[0]
		out = append(out, first.Deadline)
		heap.Pop(d)
		delete(d.of, first.Channel)
	}
	return out
}

// dueInChannels are the timers of channels, and of agents in them, that have run out.
func (e *Engine) dueInChannels(now time.Time) []request {
	var batch []request
	for _, about := range e.dues.past(now) {
		batch = append(batch, request{
			event: eventBy(byTimer, "", channel.TimerFired{About: about}),
			look:  func(t *team.Team) { e.dues.set(about.Channel, t.Floor.Deadline(about.Channel)) },
		})
	}
	for _, name := range e.team.Names() {
		a, m := e.team.Agents[name], e.members[name]
		if m == nil {
			continue
		}
		if at := e.partDue(m, a); at.IsZero() || now.Before(at) {
			continue
		}
		if e.joins(m) {
			last := m.part.beat
			m.part.beat = time.Time{}
			batch = append(batch, request{event: eventBy(byTimer, "", channel.AgentBeatsMissed{Agent: channel.AgentID(name), Last: last})})
			continue
		}
		m.part.probeAt = time.Time{}
		e.talkErrands(name)
	}
	return batch
}

// partDue is when something is to be done about an agent's part in channels; zero: never.
func (e *Engine) partDue(m *member, a *team.Agent) time.Time {
	if e.holding || m.part.beat.IsZero() && m.part.probeAt.IsZero() {
		return time.Time{} // asked of every agent between two batches: most are seen by this
	}
	switch is := e.team.Floor.Agents[channel.AgentID(a.Name)]; {
	case is == nil:
		return time.Time{}
	case !e.joins(m):
		return m.part.probeAt
	case !is.Connected || m.part.beat.IsZero():
		return time.Time{}
	default:
		return m.part.beat.Add(channel.BeatsMissedMax * channel.BeatEvery)
	}
}

// news collects what a batch has moved in channels.
type news struct {
	agents   map[string]bool
	channels map[channel.ChannelID]bool
	all      bool
}

// note takes a change in, and says whether it was about channels.
func (n *news) note(ch team.Change, t *team.Team) bool {
	switch set := ch.Body.Turn; {
	case set != nil:
		if id, ok := strings.CutPrefix(ch.Entity, channelPrefix); ok {
			n.channel(channel.ChannelID(id))
		}
		if set.Agent != "" {
			n.agents[set.Agent] = true
		}
		if a := t.Floor.Agents[channel.AgentID(set.Agent)]; a != nil && set.Body.Agent != nil {
			for _, id := range a.Channels { // who is there now, or deaf, or gone
				n.channel(id)
			}
		}
		return true
	case ch.Body.Circle != nil:
		return true
	case ch.Body.Team != nil: // a hold, and its end, change what may be told to anybody
		n.all = true
	}
	return false
}

func (n *news) channel(id channel.ChannelID) {
	if n.channels == nil {
		n.channels = map[channel.ChannelID]bool{}
	}
	n.channels[id] = true
}

// channelsMoved sets the timers of channels that moved, and names whom they ask something of.
func (e *Engine) channelsMoved(n *news) {
	for id := range n.channels {
		e.dues.set(id, e.team.Floor.Deadline(id))
		for _, todo := range e.team.ChannelTodo(string(id), e.clock.now()) {
			n.agents[string(todo.Token.Agent)] = true
		}
	}
	if n.all {
		for name := range e.team.Floor.Agents {
			n.agents[string(name)] = true
		}
	}
}

// channelsBegin takes all channels up where they stood: deadlines are what they were, and a
// heartbeat counts from now (SPEC, Turn).
func (e *Engine) channelsBegin() {
	for id := range e.team.Floor.Channels {
		e.dues.set(id, e.team.Floor.Deadline(id))
	}
	for _, m := range e.members {
		m.part.beat = e.clock.now()
	}
	e.probeAll()
}

const channelPrefix = "channel/"
