package channel

import "slices"

// interrupt pauses the turn until a person has an answer (T17). Interruptions are answered one at a
// time, in order.
func (c *channelDraft) interrupt(n uint64) {
	h := &c.head
	if h.Holder == "" || h.Aside.Message != 0 {
		return
	}
	lead := c.leadFree()
	switch active := c.state(h.Holder) == Active; {
	case lead && active:
		c.openAside(n, c.rules.Lead)
		h.Lease.Stopped = true
		c.must(h.Holder, Interrupted)
	case lead:
		c.openAside(n, c.rules.Lead)
		c.emit("T17", "", "", "", Interrupted)
	case active:
		h.Lease.Stopped = true
		c.must(h.Holder, Interrupted)
		c.askItself(n)
	default:
		c.must(h.Holder, SentOn) // a person's message ends the wait; the agent receives it like any injected message
	}
}

// leadFree reports whether the channel has a lead that could answer now.
func (c *channelDraft) leadFree() bool {
	lead := c.rules.Lead
	return lead != "" && lead != c.head.Holder && !c.now.Held && c.agentNow(lead).Online() && c.agentNow(lead).Limit == ""
}

func (c *channelDraft) openAside(n uint64, who AgentID) {
	c.head.Aside = Aside{Message: n, Agent: who, Ends: c.after(c.timeout(who))}
}

// askItself makes the paused agent answer the person itself.
func (c *channelDraft) askItself(n uint64) {
	c.head.Aside = Aside{Message: n, Agent: c.head.Holder}
	c.must(c.head.Holder, AskedItself)
}

// aside handles text of the agent that answers an interruption.
func (c *channelDraft) aside(in Said) {
	c.tellAside()
	if in.Bytes > 0 {
		c.post(OfAside, string(in.Agent), in.Bytes, in.Turn, in.Re)
		c.head.Aside.Spoke = true
	}
	switch {
	case !in.Ended && !in.Complete:
		c.emit(rowAside, in.Agent, "", "", "said_aside")
	case c.head.Aside.Spoke:
		c.progress(in.Re, GotAnswer, nil)
		c.asideOver(in.Agent)
	case in.Agent == c.head.Holder:
		c.dropped()
	default:
		c.leadLost(in.Agent)
	}
}

// dropped continues the turn of an agent that did not answer the person who interrupted it.
func (c *channelDraft) dropped() {
	c.head.Aside = Aside{}
	c.must(c.head.Holder, AsideDropped)
}

// tellAside records that the agent that answers an interruption has received the message.
func (c *channelDraft) tellAside() {
	a := &c.head.Aside
	if a.Delivered {
		return
	}
	a.Delivered = true
	turn := uint64(0)
	if a.Agent == c.head.Holder {
		turn = c.head.Turn
		c.ahead(a.Message)
	} else if p := c.look(a.Agent); c.inRotation(a.Agent) && a.Message > p.Heard && len(p.Ahead) < aheadMax {
		p = c.participant(a.Agent) // a lead in the rotation does not receive the message a second time with its turn
		p.Ahead = append(slices.Clip(p.Ahead), a.Message)
		slices.Sort(p.Ahead)
	}
	c.handed(a.Message, turn)
}

// inRotation reports whether an agent is in the rotation.
func (c *channelDraft) inRotation(name AgentID) bool {
	p := c.look(name)
	return p != nil && (p.State != "" || c.head.Rests == name)
}

// hasElse reports whether another agent has a message and could answer it.
func (c *channelDraft) hasElse(n uint64, name AgentID) bool {
	h := &c.head
	if h.Aside.Message == n && h.Aside.Delivered {
		return true
	}
	for other := range c.base.Participants {
		if other == name || !c.inRotation(other) {
			continue
		}
		p := c.look(other)
		mine := other == h.Holder && (h.Lease.Delivered && n <= h.Lease.Upto || slices.Contains(h.Lease.Ahead, n))
		if mine || n <= p.Heard || slices.Contains(p.Ahead, n) {
			return true
		}
	}
	return false
}

// ahead records that the agent with the turn received a message during it.
func (c *channelDraft) ahead(n uint64) {
	l := &c.head.Lease
	l.Ahead = append(l.Ahead[:len(l.Ahead):len(l.Ahead)], n)
}

// asideOver continues after an answer: with the next interruption, with the paused turn or, if that
// has ended, with the rotation.
func (c *channelDraft) asideOver(by AgentID) {
	h := &c.head
	h.Aside = Aside{}
	next := uint64(0)
	for _, m := range c.open {
		if m.Mode == Interrupt && m.State == Kept {
			next = m.N
			break
		}
	}
	stopped := h.Holder != "" && c.state(h.Holder) == Waiting && h.Lease.Stopped
	self := h.Holder == by
	switch {
	case next != 0 && stopped && c.leadFree():
		c.openAside(next, c.rules.Lead)
		c.emit(rowAside, by, "", "", AsideAnswered)
	case next != 0 && stopped:
		c.emit(rowAside, by, "", "", AsideAnswered)
		c.askItself(next)
	case next != 0 && self:
		h.Aside = Aside{Message: next, Agent: h.Holder}
		h.Lease.Ends = c.after(c.timeout(h.Holder))
		c.emit(rowAside, by, "", "", AsideAnswered)
	case stopped, self:
		c.must(h.Holder, AsideAnswered)
	default:
		c.emit(rowAside, by, "", "", AsideAnswered)
		if next != 0 {
			c.interrupt(next)
		}
	}
}

// leadLost ends an interruption whose lead was removed or did not answer, in time or with any text. The paused agent answers
// instead; without a paused agent, the message goes to the next turn.
func (c *channelDraft) leadLost(name AgentID) {
	h := &c.head
	if h.Aside.Message == 0 || h.Aside.Agent != name {
		return
	}
	n := h.Aside.Message
	h.Aside = Aside{}
	if i, ok := find(c.open, n); ok && c.open[i].State == Delivered && !c.hasElse(n, "") {
		c.progress(n, LostWithAgent, func(m *Message) { m.Turn = 0 })
	}
	c.emit(rowAside, "", "", "", "lead_lost")
	if h.Holder != "" && c.state(h.Holder) == Waiting && h.Lease.Stopped {
		c.askItself(n)
	}
}
