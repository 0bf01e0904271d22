package turns

import (
	"container/heap"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// timerQueue holds the next deadline of each channel, earliest first, so that a step costs only the
// channels that it changed. Each deadline is kept as it was set: a timer that fires late cannot end
// another agent's turn.
type timerQueue struct {
	byTime []*timer
	of     map[channel.ChannelID]*timer
}

type timer struct {
	channel.Deadline
	at int // index in byTime
}

func (d *timerQueue) Len() int { return len(d.byTime) }

func (d *timerQueue) Less(i, j int) bool { return d.byTime[i].At.Before(d.byTime[j].At) }

func (d *timerQueue) Swap(i, j int) {
	d.byTime[i], d.byTime[j] = d.byTime[j], d.byTime[i]
	d.byTime[i].at, d.byTime[j].at = i, j
}

// Push implements heap.Interface.
func (d *timerQueue) Push(x any) {
	one := x.(*timer) //nolint:forcetypeassert // nothing else is pushed
	one.at = len(d.byTime)
	d.byTime = append(d.byTime, one)
}

// Pop implements heap.Interface.
func (d *timerQueue) Pop() any {
	last := d.byTime[len(d.byTime)-1]
	d.byTime[len(d.byTime)-1] = nil
	d.byTime = d.byTime[:len(d.byTime)-1]
	return last
}

// set replaces a channel's deadline; a zero time removes it.
func (d *timerQueue) set(id channel.ChannelID, next channel.Deadline) {
	was := d.of[id]
	switch {
	case was == nil && next.At.IsZero():
	case was == nil:
		if d.of == nil {
			d.of = map[channel.ChannelID]*timer{}
		}
		d.of[id] = &timer{Deadline: next}
		heap.Push(d, d.of[id])
	case next.At.IsZero():
		heap.Remove(d, was.at)
		delete(d.of, id)
	default:
		was.Deadline = next
		heap.Fix(d, was.at)
	}
}

// past removes and returns the deadlines that are due.
func (d *timerQueue) past(now time.Time) []channel.Deadline {
	var out []channel.Deadline
	for len(d.byTime) > 0 && !now.Before(d.byTime[0].At) {
		first := d.byTime[0]
		out = append(out, first.Deadline)
		heap.Pop(d)
		delete(d.of, first.Channel)
	}
	return out
}

// dueInChannels returns a request for each expired timer of a channel or of a participant.
func (c *Controller) dueInChannels(now time.Time) []loop.Request {
	var batch []loop.Request
	for _, about := range c.timers.past(now) {
		what := channel.Input(channel.TimerFired{About: about})
		if is := c.loop.State().Channels.ByID[about.Channel]; is != nil && about.What == channel.SilenceTimer {
			what = c.afterSilence(about, is)
		}
		batch = append(batch, loop.Request{
			Event: loop.EventBy(sessions.ByTimer, "", what),
			Look:  func(t *team.Team) { c.timers.set(about.Channel, t.Channels.Deadline(about.Channel)) },
		})
	}
	for _, name := range c.loop.State().Names() {
		a, m := c.loop.State().Agents[name], c.sessions.Slots[name]
		if m == nil {
			continue
		}
		if at := c.participantDue(m, a); at.IsZero() || now.Before(at) {
			continue
		}
		if c.Joins(m) {
			last := c.Participant(m).beat
			c.Participant(m).beat = time.Time{}
			batch = append(batch,
				loop.Request{Event: loop.EventBy(sessions.ByTimer, "", channel.AgentBeatsMissed{Agent: channel.AgentID(name), Last: last})})
			continue
		}
		c.Participant(m).probeAt = time.Time{}
		batch = append(batch, loop.Request{Agent: name})
	}
	return batch
}

// participantDue is when an agent's participation needs attention; zero: never.
func (c *Controller) participantDue(m *sessions.Slot, a *team.Agent) time.Time {
	p := c.participants[a.Name]
	if c.loop.Holding() || p == nil || p.beat.IsZero() && p.probeAt.IsZero() {
		return time.Time{} // called for every agent between two batches, so the common case returns first
	}
	switch is := c.loop.State().Channels.Agents[channel.AgentID(a.Name)]; {
	case is == nil:
		return time.Time{}
	case !c.Joins(m):
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
	all      bool              // a hold began or ended, which changes what every agent may receive
	names    []channel.AgentID // memory of channelsMoved
}

// ChannelHooks returns the channels' hooks into the loop.
func (c *Controller) ChannelHooks() loop.Hooks {
	news := channelNews{channels: map[channel.ChannelID]bool{}}
	return loop.Hooks{
		OnBatch: func(changes []change.Change, first uint64, t *loop.Touched) {
			c.index.note(changes, first)
			for i := range changes {
				news.note(&changes[i], t, c.loop.State())
			}
			c.channelsMoved(&news, t)
			clear(news.channels)
			news.all = false
		},
		Act: func(t *loop.Touched) {
			for name := range t.Agents {
				c.tellNext(name)
			}
		},
		Next: func() (next time.Time) {
			if len(c.timers.byTime) > 0 {
				next = c.timers.byTime[0].At
			}
			for name, a := range c.loop.State().Agents {
				if m := c.sessions.Slots[name]; m != nil {
					next = table.Earliest(next, c.participantDue(m, a))
				}
			}
			return next
		},
		Due: c.dueInChannels,
	}
}

// note marks the agents and channels that a change concerns.
func (n *channelNews) note(ch *change.Change, touched *loop.Touched, t *team.Team) {
	switch set := ch.Body.(type) {
	case *channel.Set:
		if id, ok := strings.CutPrefix(ch.Entity, channel.EntityPrefix); ok {
			n.channels[channel.ChannelID(id)] = true
		}
		if set.Agent != "" {
			touched.Agent(string(set.Agent))
		}
		if a := t.Channels.Agents[set.Agent]; a != nil && set.Body.Agent != nil {
			for _, id := range a.Channels { // the agent connected, left, or accepts no input
				n.channels[id] = true
			}
		}
	case *team.TeamSet:
		n.all = true
	}
}

// channelsMoved sets the timers of the changed channels and marks the agents that may have actions in
// them.
func (c *Controller) channelsMoved(n *channelNews, touched *loop.Touched) {
	for id := range n.channels {
		c.timers.set(id, c.loop.State().Channels.Deadline(id))
		if is := c.loop.State().Channels.ByID[id]; is != nil {
			c.noteSilence(id, is)
			n.names = is.Concerns(n.names[:0])
			for _, name := range n.names {
				touched.Agent(string(name))
			}
		}
	}
	if n.all {
		for name := range c.loop.State().Channels.Agents {
			touched.Agent(string(name))
		}
	}
}

// ChannelsBegin restores all channels after a start: deadlines stay as they were, heartbeats count
// from now (SPEC, Turn).
func (c *Controller) ChannelsBegin() {
	for id := range c.loop.State().Channels.ByID {
		c.timers.set(id, c.loop.State().Channels.Deadline(id))
	}
	for _, m := range c.sessions.Slots {
		if c.Joins(m) {
			c.Participant(m).beat = c.loop.Now()
		}
	}
	c.probeAll()
}
