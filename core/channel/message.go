package channel

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// spoke handles a person's message.
func (c *channelDraft) spoke(in HumanSpoke) error {
	subject := "#" + string(c.id)
	mode := cmp.Or(in.Mode, c.rules.Mode)
	room := openMax
	if mode == Interrupt {
		room += openInterruptsMax
	}
	switch {
	case !slices.Contains([]Mode{ByQueue, Interrupt, Inject, Parallel}, mode):
		return refusal(subject, Event(Spoken), string(Unsaid), "M1",
			fmt.Sprintf("%q is not a mode; use queue, interrupt, inject or parallel", mode))
	case in.Bytes <= 0 || in.Bytes > messageBytesMax:
		return refusal(subject, Event(Spoken), string(Unsaid), "M1",
			fmt.Sprintf("it has %d bytes, 1 to %d are allowed", in.Bytes, messageBytesMax))
	case len(c.open) >= room:
		return refusal(subject, Event(Spoken), string(Unsaid), "M1",
			fmt.Sprintf("%d messages wait for an answer, which is the limit; wait, or skip the current turn", len(c.open)))
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
	if c.head.Parked == NoAgents {
		c.announceNoAgents()
	}
	c.emit("M1", "", "", "", Event(Spoken))
	if mode == Interrupt {
		c.interrupt(n)
	}
	return nil
}

// toAll gives every agent that is online its own copy of a message; agents that already have it keep
// it. It returns false if there is no agent.
func (c *channelDraft) toAll(n uint64) bool {
	some := false
	for _, name := range sorted(c.base.Participants) {
		if !c.isParticipant(name) || c.state(name) == Offline {
			continue
		}
		some = true
		if c.parallelIndex(name, n) < 0 && len(c.look(name).Parallel) < apartMax {
			p := c.participant(name)
			p.Parallel = append(slices.Clip(p.Parallel), ParallelMessage{N: n})
		}
	}
	return some
}

// lapsesAt returns when a message to all lapses.
func (c *channelDraft) lapsesAt() time.Time { return c.after(max(c.rules.DefaultTimeout, time.Second)) }

// post assigns a number to a message, with the next change.
func (c *channelDraft) post(kind PostKind, by string, bytes int, turn, re uint64) uint64 {
	c.head.Seq++
	c.next.Post = &Post{N: c.head.Seq, Kind: kind, By: by, Turn: turn, Re: re, Bytes: bytes}
	return c.head.Seq
}

// said handles text of an agent: in its turn, outside of it, or late.
func (c *channelDraft) said(in Said) error {
	switch {
	case c.agentNow(in.Agent) == nil:
		return c.refuse(in.Agent, "said", "", "no agent has this name; add it to fairlead.yaml")
	case in.Bytes < 0 || in.Bytes > messageBytesMax:
		return c.refuse(in.Agent, "said", "", fmt.Sprintf("it has %d bytes, 0 to %d are allowed", in.Bytes, messageBytesMax))
	case in.Re != 0 && c.head.Aside.Message == in.Re && c.head.Aside.Agent == in.Agent:
		c.aside(in)
	case in.Re != 0 && c.parallelIndex(in.Agent, in.Re) >= 0:
		c.answerParallel(in)
	case in.Re != 0 || !c.holds(in.Token):
		c.late(in)
	case c.head.Aside.Agent == in.Agent && !c.head.Aside.Delivered:
		c.late(in) // text of the answer that was cancelled
	case c.head.Aside.Agent == in.Agent:
		in.Re = c.head.Aside.Message
		c.aside(in)
	case c.state(in.Agent) == Waiting && !in.Complete && !(in.Ended && c.head.Lease.Ending != "" && !c.head.Lease.Stopped):
		c.late(in) // sent before the cancellation or the end of the wait arrived
	default:
		return c.speak(in)
	}
	return nil
}

// late records text that changes no state.
func (c *channelDraft) late(in Said) {
	if in.Bytes > 0 {
		c.post(OfLate, string(in.Agent), in.Bytes, in.Turn, in.Re)
	}
	if in.Complete {
		c.next.Warn = fmt.Sprintf("TURN_COMPLETE without the turn: turn %d has ended or belonged to another agent", in.Turn)
	}
	if c.next.Post != nil || c.next.Warn != "" || len(c.next.Messages) > 0 {
		c.emit(rowLate, in.Agent, "", "", SaidLate)
	}
}

// speak handles text of the agent that has the turn.
func (c *channelDraft) speak(in Said) error {
	l := &c.head.Lease
	if in.Bytes > 0 {
		n := c.post(OfTurn, string(in.Agent), in.Bytes, in.Turn, 0)
		if h := &c.head; h.Said.By != in.Agent {
			h.Said = Calls{By: in.Agent, Last: n, Else: h.Said.Last}
		} else {
			h.Said.Last = n
		}
		c.head.Passes, l.Spoke = 0, true
	}
	l.answers()
	switch {
	case in.Complete:
		return c.finish(in.Agent, completed)
	case in.Ended && l.Ending != "":
		return c.ends(in.Agent)
	case in.Ended:
		c.next.Warn = "Agent completed response without TURN_COMPLETE"
		l.Answered = c.now.At
		if c.rules.AutoDetectEnd {
			l.Silence = c.after(c.rules.AutoDetectSilence)
		}
		c.emit(rowUnfinished, in.Agent, "", "", "unfinished")
	default:
		if c.rules.AutoDetectEnd && c.agentNow(in.Agent).NoEnd {
			l.Silence = c.after(c.rules.AutoDetectSilence)
		}
		c.emit(rowSaid, in.Agent, "", "", "said")
	}
	return nil
}

// worked lets the silence of the agent with the turn begin again.
func (c *channelDraft) worked(t Token) {
	if l := &c.head.Lease; c.head.Holder == t.Agent && c.head.Turn == t.Turn && !l.Silence.IsZero() {
		l.Silence = c.after(c.rules.AutoDetectSilence)
		c.emit(rowSaid, t.Agent, "", "", "worked")
	}
}

// turnEnd has the events of one way to end a turn: after text and without any, with other agents and alone.
type turnEnd struct{ spoke, alone, empty, emptyAlone Event }

var (
	completed  = turnEnd{Completed, CompletedAlone, CompletedEmpty, CompletedEmptyAlone}
	fellSilent = turnEnd{FellSilent, FellSilentAlone, FellSilentEmpty, FellSilentEmptyAlone}
)

func (c *channelDraft) finish(agent AgentID, end turnEnd) error {
	switch alone := c.alone(agent); {
	case c.head.Lease.Spoke && alone:
		return c.take(agent, end.alone, "")
	case c.head.Lease.Spoke:
		return c.take(agent, end.spoke, "")
	case alone:
		return c.take(agent, end.emptyAlone, noText)
	default:
		return c.take(agent, end.empty, noText)
	}
}

// WithoutText reports whether an event is the end of a turn in which the agent said nothing.
func WithoutText(event Event) bool {
	return slices.Contains([]Event{CompletedEmpty, CompletedEmptyAlone, FellSilentEmpty, FellSilentEmptyAlone}, event)
}

// noText is shown with the end of a turn without text.
const noText = "no text in this turn"

// parallelIndex returns the index of a participant's message to all; -1: none.
func (c *channelDraft) parallelIndex(agent AgentID, n uint64) int {
	p := c.look(agent)
	if p == nil {
		return -1
	}
	return slices.IndexFunc(p.Parallel, func(a ParallelMessage) bool { return a.N == n })
}

// answerParallel handles an answer to a message to all.
func (c *channelDraft) answerParallel(in Said) {
	c.tellParallel(in.Agent, in.Re)
	if in.Bytes > 0 {
		c.post(OfAside, string(in.Agent), in.Bytes, 0, in.Re)
		if i, open := find(c.open, in.Re); open && c.open[i].State != Answered {
			c.progress(in.Re, GotAnswer, nil)
		}
	}
	if in.Ended || in.Complete {
		p := c.participant(in.Agent)
		p.Parallel = without(p.Parallel, in.Re)
	}
	c.emit(rowAside, in.Agent, "", "", "said_apart")
}

// tellParallel records that an agent has received a message to all.
func (c *channelDraft) tellParallel(agent AgentID, n uint64) {
	p := c.participant(agent)
	i := c.parallelIndex(agent, n)
	if p.Parallel[i].Delivered {
		return
	}
	p.Parallel = slices.Clone(p.Parallel)
	p.Parallel[i].Delivered = true
	if n > p.Heard {
		p.Ahead = append(slices.Clip(p.Ahead), n)
		slices.Sort(p.Ahead)
	}
	c.handed(n, 0)
}

func without(list []ParallelMessage, n uint64) []ParallelMessage {
	list = slices.DeleteFunc(slices.Clone(list), func(a ParallelMessage) bool { return a.N == n })
	if len(list) == 0 {
		return nil
	}
	return list
}
