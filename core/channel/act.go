package channel

import (
	"slices"
	"time"
)

// act carries out one act of a rule on the participant and the head that the next change contains.
func (c *channelDraft) act(act Act, p *Participant, event Event, why string) {
	h := &c.head
	switch act {
	case JoinQueue:
		h.Place++
		p.Place, p.JoinOnConnect = h.Place, false
		c.stopResting(p)
	case LeaveQueue:
		// the received messages are forgotten with the agent's program
		p.Place, p.JoinOnConnect, p.Parallel, p.Ahead, p.Late = 0, false, nil, nil, 0
		if a := c.agentNow(p.Agent); a == nil || !a.Connected {
			p.Stop = 0 // there is no work left to stop
		}
		c.stopResting(p)
		c.loseMessages(p.Agent)
	case LeaveRotation:
		c.leaveRotation(p)
	case TakeTurn:
		c.takeTurn(p)
	case StartTurnTimer:
		h.Lease.Ends = c.after(c.timeout(p.Agent))
	case PauseTurnTimer:
		if l := &h.Lease; !l.Ends.IsZero() {
			l.Left = max(l.Ends.Sub(c.now.At), 1)
		}
		h.Lease.Ends, h.Lease.GoOn = time.Time{}, 0
		h.Lease.answers()
	case ResumeTimer:
		h.Lease.Ends = c.after(h.Lease.Left)
		h.Lease.Left = 0
	case StartWaitTimer:
		h.Lease.WaitTo = c.after(c.rules.WaitTimeout)
		h.Lease.Why = cut(why)
	case StopWaitTimer:
		h.Lease.WaitTo, h.Lease.Why, h.Lease.WaitReason = time.Time{}, "", ""
	case EndTurn:
		c.endTurn(p, event)
	case LoseTurn:
		c.freeTurn(p.Agent)
	case CloseMessages:
		c.closeMessages(p)
	case RestHere:
		h.Rests, p.Place = p.Agent, 0
	case CancelWork:
		h.ActionSeq++
		p.Stop = h.ActionSeq
	case GoOn:
		h.ActionSeq++
		h.Lease.GoOn, h.Lease.Stopped = h.ActionSeq, false
	case CountPass:
		h.Passes++
	case AnnounceLate:
		if c.rules.AnnounceTimeouts {
			c.next.Say = "⏱️ " + string(p.Agent) + " turn timed out"
		}
	case AnnounceGone:
		if c.rules.AnnounceDisconnect {
			c.next.Say = "⚠️ " + string(p.Agent) + " disconnected, skipping turn"
		}
	case NoteContext:
		c.next.Why = cut(why)
	default:
		panic("channel: unknown act: " + string(act))
	}
}

// after returns a deadline; without a duration there is none.
func (d *channelsDraft) after(wait time.Duration) time.Time {
	if wait <= 0 {
		return time.Time{}
	}
	return d.now.At.Add(wait)
}

// timeout is the time limit of an agent's turn.
func (c *channelDraft) timeout(agent AgentID) time.Duration {
	if a := c.agentNow(agent); a != nil && a.Timeout > 0 {
		return a.Timeout
	}
	return c.rules.DefaultTimeout
}

func (c *channelDraft) stopResting(p *Participant) {
	if c.head.Rests == p.Agent {
		c.head.Rests = ""
	}
}

// leaveRotation removes the participant, or marks it as gone until the agent's work was stopped.
func (c *channelDraft) leaveRotation(p *Participant) {
	c.stopResting(p)
	c.loseMessages(p.Agent)
	if a := c.agentNow(p.Agent); a != nil {
		is := *a
		is.Channels = slices.DeleteFunc(slices.Clone(is.Channels), func(id ChannelID) bool { return id == c.id })
		if len(is.Channels) == 0 {
			is.Channels = nil // nil, as it is decoded from the journal
		}
		c.setAgent(p.Agent, is)
	}
	if p.Stop == 0 {
		c.leave(p.Agent)
		return
	}
	*p = Participant{Agent: p.Agent, Stop: p.Stop, Gone: true}
}

func (c *channelDraft) takeTurn(p *Participant) {
	h := &c.head
	h.Turn++
	h.Holder, h.Parked = p.Agent, ""
	h.Lease = Lease{Upto: h.Seq, Since: c.now.At, ByHand: c.byHand}
	c.byHand = false
	p.Place = 0
	if p.TookFor != h.Human {
		p.Took, p.TookFor = 0, h.Human
	}
	p.Took++
}

// endTurn ends the turn. The agent has received the messages that it was given in it. If it was
// given nothing and no other agent has anything to answer, it gets no further turn for the same
// messages: that would loop.
func (c *channelDraft) endTurn(p *Participant, event Event) {
	l := &c.head.Lease
	if l.Delivered {
		c.hear(p, l.Upto)
	} else {
		c.hear(p, p.Heard)
	}
	switch {
	case event == LimitReached: // after the limit is lifted, the agent is asked again for an answer to the same messages
	case l.Delivered:
		p.Rest = max(p.Rest, l.Upto)
	case !c.othersWait(p.Agent):
		p.Rest = c.head.Seq
	}
	c.freeTurn(p.Agent)
	c.retryUnanswered(p, event)
}

// lateMax is the number of consecutive turns that may time out where no limit of rounds ends them.
const lateMax = 3

// retryUnanswered gives an agent that timed out the unanswered messages of people once more: in its
// next turn it receives them again, with everything since. The limit of rounds ends this; where there
// is none, or no other agent takes part, lateMax does.
func (c *channelDraft) retryUnanswered(p *Participant, event Event) {
	has := func(m *Message) bool { return m.N <= p.Heard || slices.Contains(p.Ahead, m.N) }
	oldest := c.unanswered(has)
	if event != TimedOut || oldest == nil {
		p.Late = 0
		return
	}
	if c.rules.RoundsMax == 0 || c.alone(p.Agent) {
		p.Late++
	}
	if p.Late >= lateMax {
		p.Late = 0 // the next message may time out as often
		return
	}
	heard := min(p.Heard, oldest.N-1)
	var ahead []uint64 // messages that it keeps: those to all agents, and one that interrupted
	for i := range c.open {
		if m := &c.open[i]; m.N > heard && has(m) && !c.isUnanswered(m) {
			ahead = append(ahead, m.N)
		}
	}
	p.Heard, p.Rest, p.Ahead = heard, min(p.Rest, oldest.N-1), ahead
	c.loseMessages(p.Agent)
}

// unanswered returns the oldest message of a person that an agent has and none has answered, of those
// that the filter accepts; nil: none. A message to all is answered outside of turns.
func (c *channelDraft) unanswered(among func(*Message) bool) *Message {
	for i := range c.open {
		if m := &c.open[i]; c.isUnanswered(m) && among(m) {
			return m
		}
	}
	return nil
}

func anyMessage(*Message) bool { return true }

func (c *channelDraft) isUnanswered(m *Message) bool {
	return m.State == Delivered && m.Ends.IsZero() && m.N != c.head.Aside.Message
}

// hear records what a participant has received: everything up to a message, and single messages
// ahead of that.
func (c *channelDraft) hear(p *Participant, upto uint64) {
	p.Heard = max(p.Heard, upto)
	ahead := slices.Concat(p.Ahead, c.head.Lease.Ahead)
	ahead = slices.DeleteFunc(ahead, func(n uint64) bool { return n <= p.Heard })
	slices.Sort(ahead)
	p.Ahead = slices.Compact(ahead)
	if len(p.Ahead) == 0 {
		p.Ahead = nil // nil, as it is decoded from the journal
	}
}

// loseMessages reopens the messages that only this agent had received when it leaves, because no
// other agent could answer them. Without a name it reopens those that no agent has received.
func (c *channelDraft) loseMessages(name AgentID) {
	var lost []uint64
	for _, m := range c.open {
		if m.State == Delivered && m.Ends.IsZero() && !c.hasElse(m.N, name) {
			lost = append(lost, m.N)
		}
	}
	for _, n := range lost {
		c.progress(n, LostWithAgent, func(m *Message) { m.Turn = 0 })
	}
}

func (c *channelDraft) freeTurn(agent AgentID) {
	c.head.Holder, c.head.Lease = "", Lease{}
	if c.head.Aside.Agent == agent {
		c.head.Aside = Aside{}
	}
}

// closeMessages marks messages as answered when a turn ends: those that the agent with the turn has
// received.
func (c *channelDraft) closeMessages(p *Participant) {
	l := &c.head.Lease
	var closed []uint64
	for _, m := range c.open {
		has := m.N <= p.Heard || (l.Delivered && m.N <= l.Upto) || slices.Contains(l.Ahead, m.N) || slices.Contains(p.Ahead, m.N)
		if has && m.State == Delivered && m.Ends.IsZero() && m.N != c.head.Aside.Message {
			closed = append(closed, m.N)
		}
	}
	for _, n := range closed {
		c.progress(n, GotAnswer, nil)
	}
}
