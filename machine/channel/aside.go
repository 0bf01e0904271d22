package channel

import "slices"

// interrupt stops whoever has the turn until a person has an answer (T17). One at a time: the
// next one waits for the one before, and for nothing else.
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
		c.must(h.Holder, SentOn) // a person's word ends its wait; it is given the message like any injected one
	}
}

// leadFree says whether the channel has a lead who could answer now.
func (c *channelDraft) leadFree() bool {
	lead := c.rules.Lead
	return lead != "" && lead != c.head.Holder && !c.now.Held && c.agentNow(lead).Online() && c.agentNow(lead).Limit == ""
}

func (c *channelDraft) openAside(n uint64, who AgentID) {
	c.head.Aside = Aside{Message: n, Agent: who, Ends: c.after(c.timeout(who))}
}

// askItself has the holder that was stopped answer the person itself.
func (c *channelDraft) askItself(n uint64) {
	c.head.Aside = Aside{Message: n, Agent: c.head.Holder}
	c.must(c.head.Holder, AskedItself)
}

// aside is what the one who answers a person says.
func (c *channelDraft) aside(in Said) {
	c.tellAside()
	if in.Bytes > 0 {
		c.post(OfAside, string(in.Agent), in.Bytes, in.Turn, in.Re)
	}
	if !in.Ended && !in.Complete {
		c.emit(rowAside, in.Agent, "", "", "said_aside")
		return
	}
	c.progress(in.Re, GotAnswer, nil)
	c.asideOver(in.Agent)
}

// tellAside notes that whoever is to answer a person has the message.
func (c *channelDraft) tellAside() {
	a := &c.head.Aside
	if a.Told {
		return
	}
	a.Told = true
	turn := uint64(0)
	if a.Agent == c.head.Holder {
		turn = c.head.Turn
		c.ahead(a.Message)
	} else if p := c.look(a.Agent); c.inRotation(a.Agent) && a.Message > p.Heard && len(p.Ahead) < aheadMax {
		p = c.participant(a.Agent) // a lead in the circle is not given it again with its turn
		p.Ahead = append(slices.Clip(p.Ahead), a.Message)
		slices.Sort(p.Ahead)
	}
	c.handed(a.Message, turn)
}

// inRotation says whether an agent has a place here that the turn comes to.
func (c *channelDraft) inRotation(name AgentID) bool {
	p := c.look(name)
	return p != nil && (p.State != "" || c.head.Rests == name)
}

// hasElse says whether somebody else than one agent has a message and could answer it.
func (c *channelDraft) hasElse(n uint64, name AgentID) bool {
	h := &c.head
	if h.Aside.Message == n && h.Aside.Told {
		return true
	}
	for other := range c.base.Participants {
		if other == name || !c.inRotation(other) {
			continue
		}
		p := c.look(other)
		mine := other == h.Holder && (h.Lease.Told && n <= h.Lease.Upto || slices.Contains(h.Lease.Ahead, n))
		if mine || n <= p.Heard || slices.Contains(p.Ahead, n) {
			return true
		}
	}
	return false
}

// ahead notes that the holder has a message in the middle of its turn.
func (c *channelDraft) ahead(n uint64) {
	l := &c.head.Lease
	l.Ahead = append(l.Ahead[:len(l.Ahead):len(l.Ahead)], n)
}

// asideOver goes on after an answer: with the next interruption, with the turn that was
// stopped, or, where it is gone, with the circle.
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

// leadLost is the end of an aside whose lead is gone or gave no answer: the holder that was
// stopped answers itself; where there is none, the message is the next turn's.
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
