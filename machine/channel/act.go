package channel

import (
	"slices"
	"time"
)

// act carries one act of a rule out, on the seat and the head that the next change holds.
func (c *circle) act(act Act, s *Seat, event Event, why string) {
	h := &c.head
	switch act {
	case JoinQueue:
		h.Place++
		s.Place, s.Owed = h.Place, false
		c.unrest(s)
	case LeaveQueue:
		s.Place, s.Owed, s.Apart, s.Ahead = 0, false, nil, nil // what it had ahead died with it
		if a := c.agentNow(s.Agent); a == nil || !a.Connected {
			s.Stop = 0 // there is nothing left to stop
		}
		c.unrest(s)
		c.lostWith(s.Agent)
	case LeaveCircle:
		c.leaveCircle(s)
	case TakeTurn:
		c.takeTurn(s)
	case StartTurnTimer:
		h.Lease.Ends = c.after(c.timeout(s.Agent))
	case PauseTurnTimer:
		if l := &h.Lease; !l.Ends.IsZero() {
			l.Left = max(l.Ends.Sub(c.now.At), 1)
		}
		h.Lease.Ends, h.Lease.Silence, h.Lease.GoOn = time.Time{}, time.Time{}, 0
	case ResumeTimer:
		h.Lease.Ends = c.after(h.Lease.Left)
		h.Lease.Left = 0
	case StartWaitTimer:
		h.Lease.WaitTo = c.after(c.rules.WaitTimeout)
		h.Lease.Why = cut(why)
	case StopWaitTimer:
		h.Lease.WaitTo, h.Lease.Why = time.Time{}, ""
	case EndTurn:
		c.endTurn(s, event)
	case LoseTurn:
		c.freeTurn(s.Agent)
	case CloseMessages:
		c.closeMessages(s)
	case RestHere:
		h.Rests, s.Place = s.Agent, 0
	case CancelWork:
		h.Errand++
		s.Stop = h.Errand
	case GoOn:
		h.Errand++
		h.Lease.GoOn, h.Lease.Stopped = h.Errand, false
	case CountPass:
		h.Passes++
	case AnnounceLate:
		if c.rules.AnnounceTimeouts {
			c.next.Say = "⏱️ " + string(s.Agent) + " turn timed out"
		}
	case AnnounceGone:
		if c.rules.AnnounceDisconnect {
			c.next.Say = "⚠️ " + string(s.Agent) + " disconnected, skipping turn"
		}
	case NoteContext:
		c.next.Why = cut(why)
	default:
		panic("turn: no such act: " + string(act))
	}
}

// after is a deadline; no duration is no deadline.
func (d *draft) after(wait time.Duration) time.Time {
	if wait <= 0 {
		return time.Time{}
	}
	return d.now.At.Add(wait)
}

// timeout is how long an agent's turn may take.
func (c *circle) timeout(agent AgentID) time.Duration {
	if a := c.agentNow(agent); a != nil && a.Timeout > 0 {
		return a.Timeout
	}
	return c.rules.DefaultTimeout
}

func (c *circle) unrest(s *Seat) {
	if c.head.Rests == s.Agent {
		c.head.Rests = ""
	}
}

// leaveCircle takes the seat away, or leaves it until the agent's work was stopped.
func (c *circle) leaveCircle(s *Seat) {
	c.unrest(s)
	c.lostWith(s.Agent)
	if a := c.agentNow(s.Agent); a != nil {
		is := *a
		is.Channels = slices.DeleteFunc(slices.Clone(is.Channels), func(id ChannelID) bool { return id == c.id })
		if len(is.Channels) == 0 {
			is.Channels = nil // as the journal gives it back
		}
		c.setAgent(s.Agent, is)
	}
	if s.Stop == 0 {
		c.leave(s.Agent)
		return
	}
	*s = Seat{Agent: s.Agent, Stop: s.Stop, Gone: true}
}

func (c *circle) takeTurn(s *Seat) {
	h := &c.head
	h.Turn++
	h.Holder, h.Parked = s.Agent, ""
	h.Lease = Lease{Upto: h.Seq, Since: c.now.At, ByHand: c.hand}
	c.hand = false
	s.Place = 0
	if s.TookFor != h.Human {
		s.Took, s.TookFor = 0, h.Human
	}
	s.Took++
}

// endTurn gives the turn back. What the holder was given in it, it has. Where it was given
// nothing and nobody else has anything to answer, it is not asked again for the same: that
// would spin.
func (c *circle) endTurn(s *Seat, event Event) {
	l := &c.head.Lease
	if l.Told {
		c.hear(s, l.Upto)
	} else {
		c.hear(s, s.Heard)
	}
	switch {
	case event == LimitReached: // when that is lifted, it is asked for the same again
	case l.Told:
		s.Rest = max(s.Rest, l.Upto)
	case !c.othersWait(s.Agent):
		s.Rest = c.head.Seq
	}
	c.freeTurn(s.Agent)
}

// hear notes what a seat has: all up to a message, and the single ones that came ahead.
func (c *circle) hear(s *Seat, upto uint64) {
	s.Heard = max(s.Heard, upto)
	ahead := slices.Concat(s.Ahead, c.head.Lease.Ahead)
	ahead = slices.DeleteFunc(ahead, func(n uint64) bool { return n <= s.Heard })
	slices.Sort(ahead)
	s.Ahead = slices.Compact(ahead)
	if len(s.Ahead) == 0 {
		s.Ahead = nil // as the journal gives it back
	}
}

// lostWith takes back what an agent alone had, when it leaves: nobody could answer it.
func (c *circle) lostWith(name AgentID) {
	var lost []uint64
	for _, m := range c.open {
		if m.State == Delivered && m.Ends.IsZero() && !c.hasElse(m.N, name) {
			lost = append(lost, m.N)
		}
	}
	for _, n := range lost {
		c.progress(n, LostWithIt, func(m *Message) { m.Turn = 0 })
	}
}

func (c *circle) freeTurn(agent AgentID) {
	c.head.Holder, c.head.Lease = "", Lease{}
	if c.head.Aside.Agent == agent {
		c.head.Aside = Aside{}
	}
}

// closeMessages has the messages answered that the holder has and ends its turn with.
func (c *circle) closeMessages(s *Seat) {
	l := &c.head.Lease
	var closed []uint64
	for _, m := range c.open {
		has := m.N <= s.Heard || (l.Told && m.N <= l.Upto) || slices.Contains(l.Ahead, m.N) || slices.Contains(s.Ahead, m.N)
		if has && m.State == Delivered && m.Ends.IsZero() && m.N != c.head.Aside.Message {
			closed = append(closed, m.N)
		}
	}
	for _, n := range closed {
		c.progress(n, GotAnswer, nil)
	}
}
