package channel

import (
	"cmp"
	"fmt"
	"slices"
)

// advance gives the turn to the next agent, or parks the channel. It runs at the end of every input,
// so that the end of one turn and the beginning of the next are one batch.
func (c *channelDraft) advance() {
	h := &c.head
	if h.Holder != "" || h.Aside.Message != 0 {
		return
	}
	if h.Rests != "" && c.due(c.look(h.Rests)) {
		c.must(h.Rests, Roused)
	}
	next, reason := c.pick()
	switch {
	case next != "":
		c.must(next, Granted)
	case h.Parked != reason:
		c.park(reason)
	}
}

func (c *channelDraft) park(reason Reason) {
	c.head.Parked = reason
	switch reason {
	case Rounds:
		rounds := "a round"
		if c.rules.RoundsMax != 1 {
			rounds = fmt.Sprintf("%d rounds", c.rules.RoundsMax)
		}
		c.next.Say = fmt.Sprintf("The agents have had %s; #%s waits for a human", rounds, c.id)
		if i := slices.IndexFunc(c.open, func(m Message) bool { return m.Ends.IsZero() }); i >= 0 {
			c.next.Say += fmt.Sprintf("; message %d of %s has no answer", c.open[i].N, c.open[i].By)
		}
	case Unanswered:
		m := c.unanswered(anyMessage)
		c.next.Say = fmt.Sprintf("No agent answered message %d of %s; #%s waits for a human", m.N, m.By, c.id)
	case NoAgents:
		c.announceNoAgents()
	case Quiet, Passed, Held, Limited:
	}
	c.emit(rowParked, "", "", "", Event("parked_"+string(reason)))
}

func (c *channelDraft) announceNoAgents() {
	if c.rules.AnnounceDisconnect && c.next.Say == "" {
		c.next.Say = "⚠️ No agents available in this channel"
	}
}

// pick finds the next agent: the first one in the rotation that has something to answer and may get
// a turn.
func (c *channelDraft) pick() (AgentID, Reason) {
	why, size := Reason(""), 0
	for _, p := range c.queued() {
		size++
		if !c.due(p) {
			continue
		}
		switch {
		case c.now.Held:
			return "", Held
		case c.agentNow(p.Agent).Limit != "":
			why = Limited
		case c.exhausted(p):
			why = cmp.Or(why, Rounds)
		default:
			return p.Agent, ""
		}
	}
	switch {
	case why != "":
		return "", why
	case size == 0 && c.head.Rests == "":
		return "", NoAgents
	case size > 0 && c.head.Passes >= size:
		return "", Passed
	case c.unanswered(anyMessage) != nil:
		return "", Unanswered
	default:
		return "", Quiet
	}
}

// queued lists the rotation in order, with the changes so far applied.
func (c *channelDraft) queued() []*Participant {
	queued := slices.DeleteFunc(c.base.queue(), func(p *Participant) bool { return c.participants.of(p.Agent) != nil || c.gone[p.Agent] })
	for _, p := range c.participants {
		if p.State == Queued {
			queued = append(queued, p)
		}
	}
	slices.SortFunc(queued, byPlace)
	return queued
}

// alone reports whether there is no other agent in the rotation.
func (c *channelDraft) alone(agent AgentID) bool {
	for _, p := range c.queued() {
		if p.Agent != agent {
			return false
		}
	}
	return true
}

// othersWait reports whether another agent would get the turn.
func (c *channelDraft) othersWait(agent AgentID) bool {
	for _, p := range c.queued() {
		if p.Agent != agent && c.due(p) && c.agentNow(p.Agent).Limit == "" && !c.exhausted(p) {
			return true
		}
	}
	return false
}

// due reports whether a participant has something to answer: another agent's message, or an
// unanswered message of a person.
func (c *channelDraft) due(p *Participant) bool {
	call := c.head.Said.Last
	if c.head.Said.By == p.Agent {
		call = c.head.Said.Else
	}
	if call > p.Rest {
		return true
	}
	for i := len(c.open) - 1; i >= 0 && c.open[i].N > p.Rest; i-- {
		m := &c.open[i]
		if m.Ends.IsZero() && m.N != c.head.Aside.Message && !slices.Contains(p.Ahead, m.N) {
			return true
		}
	}
	return false
}

// exhausted reports whether a participant has used its rounds since the last message of a person.
func (c *channelDraft) exhausted(p *Participant) bool {
	return c.rules.RoundsMax > 0 && p.TookFor == c.head.Human && p.Took >= c.rules.RoundsMax
}

// holds reports whether a token belongs to the current turn. It also counts as proof that the agent
// has received the turn, because no other source of the number exists.
func (c *channelDraft) holds(t Token) bool {
	if t.Agent == "" || c.head.Holder != t.Agent || c.head.Turn != t.Turn {
		return false
	}
	if !c.head.Lease.Delivered {
		c.tellTurn()
	}
	return true
}

// tellTurn records that the agent with the turn has received the messages since its last one.
func (c *channelDraft) tellTurn() {
	l := &c.head.Lease
	l.Delivered = true
	p := c.look(c.head.Holder)
	var fresh []uint64
	for _, m := range c.open {
		if m.N > p.Heard && m.N <= l.Upto && c.parallelIndex(p.Agent, m.N) < 0 && !slices.Contains(p.Ahead, m.N) &&
			!slices.Contains(l.Ahead, m.N) {
			fresh = append(fresh, m.N)
		}
	}
	for _, n := range fresh {
		c.handed(n, c.head.Turn)
	}
}

// over refuses input under a turn that has ended.
func (c *channelDraft) over(t Token, event Event) error {
	return c.refuse(t.Agent, event, "T7", fmt.Sprintf("it does not have turn %d; the last turn is %d", t.Turn, c.head.Turn))
}

func (c *channelDraft) pass(t Token) error {
	if !c.holds(t) {
		return c.over(t, PassedOn)
	}
	if c.head.Aside.Agent == t.Agent {
		c.dropped()
		return nil
	}
	return c.take(t.Agent, PassedOn, "")
}

// endsLater records that a turn ends with the current answer. It also ends a wait.
func (c *channelDraft) endsLater(in FinishAsked) error {
	event := in.Subject().Event
	switch {
	case !c.holds(in.Token):
		return c.over(in.Token, event)
	case c.head.Aside.Agent == in.Agent, c.head.Lease.Stopped:
		return c.refuse(in.Agent, event, "T17", "a person interrupted and waits for the answer; answer first, then the turn continues")
	case c.head.Lease.Ending == event:
		return nil
	case c.state(in.Agent) == Waiting:
		if err := c.take(in.Agent, WaitResolved, ""); err != nil {
			return err
		}
	}
	c.head.Lease.Ending = event
	c.emit(rowEnding, in.Agent, "", "", "ends_with_answer")
	return nil
}

// ends ends a turn as the agent announced before.
func (c *channelDraft) ends(agent AgentID) error {
	if c.head.Lease.Ending != PassedOn {
		return c.finish(agent, completed)
	}
	if c.state(agent) == Waiting { // the wait has no further effect
		if err := c.take(agent, WaitResolved, ""); err != nil {
			return err
		}
	}
	return c.take(agent, PassedOn, "")
}

func (c *channelDraft) wait(in WaitAskedFor) error {
	if !c.holds(in.Token) {
		return c.over(in.Token, WaitAsked)
	}
	if c.head.Aside.Agent == in.Agent {
		return c.refuse(in.Agent, WaitAsked, "T17", "a person interrupted and waits for the answer; answer first")
	}
	c.head.Lease.WaitReason = in.Reason
	return c.take(in.Agent, WaitAsked, in.Why)
}

func (c *channelDraft) waitOver(t Token) error {
	if !c.holds(t) {
		return c.over(t, WaitResolved)
	}
	if c.state(t.Agent) == Waiting && c.head.Lease.Stopped {
		return c.refuse(t.Agent, WaitResolved, "T17", "a person interrupted; the turn continues after the answer")
	}
	return c.take(t.Agent, WaitResolved, "")
}

func (c *channelDraft) grant(in GrantAsked) error {
	h := &c.head
	a := c.agentNow(in.Agent)
	switch {
	case !c.isParticipant(in.Agent):
		return c.refuse(in.Agent, Granted, "T2", "it is not in this channel; assign it first")
	case h.Holder == in.Agent:
		return nil
	case c.state(in.Agent) == Offline:
		return c.refuse(in.Agent, Granted, "T4", "it is not connected")
	case h.Aside.Message != 0 && h.Aside.Agent == in.Agent: // its answer would count for the new turn
		return c.refuse(in.Agent, Granted, "T17", "it is answering a person who interrupted; grant the turn after that")
	case c.now.Held:
		return c.refuse(in.Agent, Granted, "X8", "the team is held; release it first")
	case a.Limit != "":
		return c.refuse(in.Agent, Granted, "X9", "it is at its limit: "+a.Limit)
	case h.Holder != "" && !in.Now:
		return c.refuse(in.Agent, Granted, "T23", string(h.Holder)+" has the turn; wait, or grant it with --now")
	}
	if h.Holder != "" {
		c.must(h.Holder, Displaced)
	}
	switch {
	case h.Rests == in.Agent: // messages that it has received stay received
		c.must(in.Agent, Roused)
	case c.state(in.Agent) == Idle:
		c.second(in.Agent)
		c.welcome(in.Agent)
		c.must(in.Agent, Assigned)
	}
	h.Passes, c.byHand = 0, true
	return c.take(in.Agent, Granted, "")
}

func (c *channelDraft) skip(in SkipAsked) error {
	h := &c.head
	switch {
	case h.Holder == "":
		return refusal("#"+string(c.id), Skipped, string(h.Parked), "T23", "no agent has the turn")
	case in.Turn != 0 && in.Turn != h.Turn:
		return c.over(Token{Channel: c.id, Agent: h.Holder, Turn: in.Turn}, Skipped)
	}
	return c.take(h.Holder, Skipped, "")
}

func (c *channelDraft) override(in OverrideAsked) error {
	event := SentBack
	if in.GoOn {
		event = SentOn
	}
	if c.head.Holder == "" {
		return refusal("#"+string(c.id), event, string(c.head.Parked), "T15", "no agent waits here")
	}
	return c.take(c.head.Holder, event, "")
}
