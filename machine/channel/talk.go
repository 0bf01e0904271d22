package channel

import (
	"fmt"
	"slices"
	"time"
)

// spoke is a person's message.
func (c *circle) spoke(in HumanSpoke) error {
	subject := "#" + string(c.id)
	mode := in.Mode
	if mode == "" {
		mode = c.rules.Mode
	}
	room := openMax
	if mode == Interrupt {
		room += openInterruptsMax
	}
	switch {
	case !slices.Contains([]Mode{ByQueue, Interrupt, Inject, Parallel}, mode):
		return refusal(subject, Event(Spoken), string(Unsaid), "M1", fmt.Sprintf("%q is no mode; take queue, interrupt, inject or parallel", mode))
	case in.Bytes <= 0 || in.Bytes > messageBytesMax:
		return refusal(subject, Event(Spoken), string(Unsaid), "M1", fmt.Sprintf("it has %d bytes, 1 to %d are allowed", in.Bytes, messageBytesMax))
	case len(c.open) >= room:
		return refusal(subject, Event(Spoken), string(Unsaid), "M1", fmt.Sprintf("%d messages wait for an answer, which is the limit; wait, or skip whoever has the turn", len(c.open)))
	}
	n := c.post(OfHuman, cut(in.By), in.Bytes, 0, 0)
	m := Message{N: n, By: cut(in.By), Mode: mode, State: Kept}
	if mode == Parallel && c.toAll(n) {
		m.Ends = c.lapsesAt()
	} else {
		c.head.Human = n
		c.head.Passes = 0
	}
	c.progress(n, Spoken, func(is *Message) { m.State = is.State; *is = m })
	if c.head.Parked == Nobody {
		c.sayNobody()
	}
	c.emit("M1", "", "", "", Event(Spoken))
	if mode == Interrupt {
		c.interrupt(n)
	}
	return nil
}

// toAll gives everybody who is there a message of his own, and who has it already keeps it;
// false: there is nobody.
func (c *circle) toAll(n uint64) bool {
	some := false
	for _, name := range sorted(c.base.Seats) {
		if !c.member(name) || c.state(name) == Offline {
			continue
		}
		some = true
		if c.apart(name, n) < 0 && len(c.look(name).Apart) < apartMax {
			s := c.seat(name)
			s.Apart = append(slices.Clip(s.Apart), Apart{N: n})
		}
	}
	return some
}

// lapsesAt is when a message to all is over.
func (c *circle) lapsesAt() time.Time { return c.after(max(c.rules.DefaultTimeout, time.Second)) }

// post gives what was said its number, with the next change.
func (c *circle) post(kind PostKind, by string, bytes int, turn, re uint64) uint64 {
	c.head.Seq++
	c.next.Post = &Post{N: c.head.Seq, Kind: kind, By: by, Turn: turn, Re: re, Bytes: bytes}
	return c.head.Seq
}

// said is what an agent says: under its turn, apart from it, or too late.
func (c *circle) said(in Said) error {
	switch {
	case c.agentNow(in.Agent) == nil:
		return c.refuse(in.Agent, "said", "", "no agent has this name; add it to fairlead.yaml")
	case in.Bytes < 0 || in.Bytes > messageBytesMax:
		return c.refuse(in.Agent, "said", "", fmt.Sprintf("it has %d bytes, 0 to %d are allowed", in.Bytes, messageBytesMax))
	case in.Re != 0 && c.head.Aside.Message == in.Re && c.head.Aside.Agent == in.Agent:
		c.aside(in)
	case in.Re != 0 && c.apart(in.Agent, in.Re) >= 0:
		c.answerApart(in)
	case in.Re != 0 || !c.holds(in.Token):
		c.late(in)
	case c.head.Aside.Agent == in.Agent && !c.head.Aside.Told:
		c.late(in) // of the answer that it was stopped in
	case c.head.Aside.Agent == in.Agent:
		in.Re = c.head.Aside.Message
		c.aside(in)
	case c.state(in.Agent) == Waiting && !in.Complete && !(in.Ended && c.head.Lease.Ending != "" && !c.head.Lease.Stopped):
		c.late(in) // what it still said when it was stopped, or before it heard that it waits
	default:
		return c.speak(in)
	}
	return nil
}

// late keeps what moves nothing.
func (c *circle) late(in Said) {
	if in.Bytes > 0 {
		c.post(OfLate, string(in.Agent), in.Bytes, in.Turn, in.Re)
	}
	if in.Complete {
		c.next.Warn = fmt.Sprintf("TURN_COMPLETE without the turn: %d is over or was never its", in.Turn)
	}
	if c.next.Post != nil || c.next.Warn != "" || len(c.next.Messages) > 0 {
		c.emit(rowLate, in.Agent, "", "", "said_late")
	}
}

// speak is the holder speaking in its turn.
func (c *circle) speak(in Said) error {
	l := &c.head.Lease
	if in.Bytes > 0 {
		n := c.post(OfTurn, string(in.Agent), in.Bytes, in.Turn, 0)
		if h := &c.head; h.Said.By != in.Agent {
			h.Said = Calls{By: in.Agent, Last: n, Else: h.Said.Last}
		} else {
			h.Said.Last = n
		}
		c.head.Passes = 0
	}
	l.Silence = time.Time{}
	switch {
	case in.Complete:
		return c.finish(in.Agent, Completed, CompletedAlone)
	case in.Ended && l.Ending != "":
		return c.ends(in.Agent)
	case in.Ended:
		c.next.Warn = "Agent completed response without TURN_COMPLETE"
		if c.rules.AutoDetectEnd {
			l.Silence = c.after(c.rules.AutoDetectSilence)
		}
		c.emit(rowUnfinished, in.Agent, "", "", "unfinished")
	default:
		c.emit(rowSaid, in.Agent, "", "", "said")
	}
	return nil
}

func (c *circle) finish(agent AgentID, event, alone Event) error {
	if c.alone(agent) {
		event = alone
	}
	return c.take(agent, event, "")
}

// apart is where a seat has a message of its own; -1: it has not.
func (c *circle) apart(agent AgentID, n uint64) int {
	s := c.look(agent)
	if s == nil {
		return -1
	}
	return slices.IndexFunc(s.Apart, func(a Apart) bool { return a.N == n })
}

// answerApart is an answer to a message to all.
func (c *circle) answerApart(in Said) {
	c.tellApart(in.Agent, in.Re)
	if in.Bytes > 0 {
		c.post(OfAside, string(in.Agent), in.Bytes, 0, in.Re)
		if i, open := find(c.open, in.Re); open && c.open[i].State != Answered {
			c.progress(in.Re, GotAnswer, nil)
		}
	}
	if in.Ended || in.Complete {
		s := c.seat(in.Agent)
		s.Apart = without(s.Apart, in.Re)
	}
	c.emit(rowAside, in.Agent, "", "", "said_apart")
}

// tellApart notes that an agent has a message to all.
func (c *circle) tellApart(agent AgentID, n uint64) {
	s := c.seat(agent)
	i := c.apart(agent, n)
	if s.Apart[i].Told {
		return
	}
	s.Apart = slices.Clone(s.Apart)
	s.Apart[i].Told = true
	if n > s.Heard {
		s.Ahead = append(slices.Clip(s.Ahead), n)
		slices.Sort(s.Ahead)
	}
	c.handed(n, 0)
}

func without(list []Apart, n uint64) []Apart {
	list = slices.DeleteFunc(slices.Clone(list), func(a Apart) bool { return a.N == n })
	if len(list) == 0 {
		return nil
	}
	return list
}
