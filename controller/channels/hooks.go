package channels

import (
	"container/heap"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/loop"
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

func (d *dues) Len() int { return len(d.byTime) }

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
func (e *Controller) dueInChannels(now time.Time) []loop.Request {
	var batch []loop.Request
	for _, about := range e.dues.past(now) {
		batch = append(batch, loop.Request{
			Event: loop.EventBy(sessions.ByTimer, "", channel.TimerFired{About: about}),
			Look:  func(t *team.Team) { e.dues.set(about.Channel, t.Channels.Deadline(about.Channel)) },
		})
	}
	for _, name := range e.State().Names() {
		a, m := e.State().Agents[name], e.sessions.Slots[name]
		if m == nil {
			continue
		}
		if at := e.partDue(m, a); at.IsZero() || now.Before(at) {
			continue
		}
		if e.Joins(m) {
			last := e.PartOf(m).beat
			e.PartOf(m).beat = time.Time{}
			batch = append(batch, loop.Request{Event: loop.EventBy(sessions.ByTimer, "", channel.AgentBeatsMissed{Agent: channel.AgentID(name), Last: last})})
			continue
		}
		e.PartOf(m).probeAt = time.Time{}
		batch = append(batch, loop.Request{Agent: name})
	}
	return batch
}

// partDue is when something is to be done about an agent's part in channels; zero: never.
func (e *Controller) partDue(m *sessions.Slot, a *team.Agent) time.Time {
	p := e.parts[a.Name]
	if e.Holding() || p == nil || p.beat.IsZero() && p.probeAt.IsZero() {
		return time.Time{} // asked of every agent between two batches: most are seen by this
	}
	switch is := e.State().Channels.Agents[channel.AgentID(a.Name)]; {
	case is == nil:
		return time.Time{}
	case !e.Joins(m):
		return p.probeAt
	case !is.Connected || p.beat.IsZero():
		return time.Time{}
	default:
		return p.beat.Add(channel.BeatsMissedMax * channel.BeatEvery)
	}
}

// channelNews collects what a batch changed in channels.
type channelNews struct {
	channels map[channel.ChannelID]bool
	all      bool // a hold began or ended, which changes what every agent may be told
}

// channelHooks are what the channels' controller does in the loop.
func (e *Controller) ChannelHooks() loop.Hooks {
	news := channelNews{channels: map[channel.ChannelID]bool{}}
	return loop.Hooks{
		Appended: e.books.note,
		Note:     func(ch team.Change, t *loop.Touched) bool { return news.note(ch, t, e.State()) },
		Spread: func(t *loop.Touched) {
			e.channelsMoved(&news, t)
			clear(news.channels)
			news.all = false
		},
		Act: func(t *loop.Touched) {
			for name := range t.Agents {
				e.talkErrands(name)
			}
		},
		Next: e.nextInChannels,
		Due:  e.dueInChannels,
	}
}

// nextInChannels is the next deadline of a channel, or of an agent's part in its channels.
func (e *Controller) nextInChannels() time.Time {
	next := e.dues.next()
	for name, a := range e.State().Agents {
		if m := e.sessions.Slots[name]; m != nil {
			next = loop.Earlier(next, e.partDue(m, a))
		}
	}
	return next
}

// note marks the agents and channels that a change concerns, and says whether it was about channels.
func (n *channelNews) note(ch team.Change, touched *loop.Touched, t *team.Team) bool {
	switch set := ch.Body.Turn; {
	case set != nil:
		if id, ok := strings.CutPrefix(ch.Entity, ChannelPrefix); ok {
			n.channels[channel.ChannelID(id)] = true
		}
		if set.Agent != "" {
			touched.Agent(set.Agent)
		}
		if a := t.Channels.Agents[channel.AgentID(set.Agent)]; a != nil && set.Body.Agent != nil {
			for _, id := range a.Channels { // the agent came, left, or takes no input
				n.channels[id] = true
			}
		}
		return true
	case ch.Body.ChannelConfig != nil:
		return true
	case ch.Body.Team != nil:
		n.all = true
	}
	return false
}

// channelsMoved sets the timers of the channels that changed, and marks the agents that these channels
// ask something of.
func (e *Controller) channelsMoved(n *channelNews, touched *loop.Touched) {
	for id := range n.channels {
		e.dues.set(id, e.State().Channels.Deadline(id))
		for _, todo := range e.State().ChannelActions(string(id), e.Now()) {
			touched.Agent(string(todo.Token.Agent))
		}
	}
	if n.all {
		for name := range e.State().Channels.Agents {
			touched.Agent(string(name))
		}
	}
}

// channelsBegin takes all channels up where they stood: deadlines are what they were, and a
// heartbeat counts from now (SPEC, Turn).
func (e *Controller) ChannelsBegin() {
	for id := range e.State().Channels.ByID {
		e.dues.set(id, e.State().Channels.Deadline(id))
	}
	for _, m := range e.sessions.Slots {
		e.PartOf(m).beat = e.Now()
	}
	e.probeAll()
}

const ChannelPrefix = "channel/"
