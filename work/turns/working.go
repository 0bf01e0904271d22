package turns

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// workShare is the part of a core from which on an agent works during its silence: a hundredth, more than a program
// needs that only waits.
const workShare = 100

// silence is the processor time that the session of the agent with the turn had used when it fell silent.
type silence struct {
	ends time.Time
	used time.Duration
}

// noteSilence notes the processor time at the start of a silence. Only agents that report no end of their answers have
// one in which they may work.
func (c *Controller) noteSilence(id channel.ChannelID, is *channel.Channel) {
	ends := is.Head.Lease.Silence
	if began, known := c.silences[id]; known && began.ends.Equal(ends) {
		return
	}
	delete(c.silences, id)
	if used, known := c.processorTime(is); known {
		c.silences[id] = silence{ends, used}
	}
}

// processorTime is that of the session of an agent that may work during its silence. It is not known of a foreign agent,
// nor of a session on another host.
func (c *Controller) processorTime(is *channel.Channel) (used time.Duration, known bool) {
	l, a, m := &is.Head.Lease, c.loop.State().Channels.Agents[is.Head.Holder], c.sessions.Slots[string(is.Head.Holder)]
	if l.Silence.IsZero() || !l.Answered.IsZero() || a == nil || !a.NoEnd || m == nil {
		return 0, false
	}
	session := m.Open(c.loop.State())
	if session == nil {
		return 0, false
	}
	return sessions.ProcessorTime(c.sessions.Proc(session.ID))
}

// afterSilence is what the end of a silence means. A program that has used its processor meanwhile works: its silence
// begins again. Otherwise the turn ends.
func (c *Controller) afterSilence(about channel.Deadline, is *channel.Channel) channel.Input {
	began, noted := c.silences[about.Channel]
	if used, known := c.processorTime(is); known && noted && began.ends.Equal(about.At) &&
		used-began.used >= is.Settings.AutoDetectSilence/workShare {
		return channel.Worked{Token: channel.Token{Channel: about.Channel, Agent: is.Head.Holder, Turn: about.N}}
	}
	return channel.TimerFired{About: about}
}
