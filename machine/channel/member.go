package channel

import (
	"fmt"
	"slices"
)

// agent decides what is about an agent as such, in all its channels.
func (d *draft) agent(in Input) error {
	switch in := in.(type) {
	case AgentConfigured:
		a := Agent{}
		if was := d.floor.Agents[in.Agent]; was != nil {
			a = *was
		}
		switch known := d.floor.Agents[in.Agent] != nil; {
		case known && a.AgentSettings == in.Settings:
			return nil
		case !known && len(d.floor.Agents) >= agentsMax:
			return refusal(string(in.Agent), "configured", "unknown", "", fmt.Sprintf("there are %d agents, which is the limit", agentsMax))
		}
		a.AgentSettings = in.Settings
		d.setAgent(in.Agent, a)
		d.add(Change{Row: rowConfigured, Agent: in.Agent, Trigger: "configured"})
		return nil
	case AgentConnected:
		return d.connect(in.Agent)
	case AgentGone:
		if in.How != Disconnected && in.How != Crashed {
			panic("turn: an agent is gone by " + string(in.How))
		}
		return d.goAway(in.Agent, in.How, in.Why)
	case AgentBeatsMissed:
		if d.now.At.Before(in.Last.Add(BeatsMissedMax * BeatEvery)) {
			return nil
		}
		return d.goAway(in.Agent, BeatsMissed, fmt.Sprintf("%d heartbeats missed, the last one at %s", BeatsMissedMax, in.Last.UTC().Format("15:04:05")))
	case DisableAsked:
		return d.goAway(in.Agent, Disabled, "")
	case EnableAsked:
		return d.enable(in.Agent)
	case LimitHit:
		return d.limit(in.Agent, in.Limit)
	case LimitLifted:
		return d.limit(in.Agent, "")
	default:
		panic(fmt.Sprintf("turn: no such input: %T", in))
	}
}

func (d *draft) known(name AgentID, event Event) (Agent, error) {
	a := d.floor.Agents[name]
	if a == nil {
		return Agent{}, refusal(string(name), event, "unknown", "", "no agent has this name; add it to fairlead.yaml")
	}
	return *a, nil
}

// own takes a rule for the agent as such.
func (d *draft) own(name AgentID, from State, event Event) error {
	rule, err := Table.Look(string(name), from, event)
	if err != nil {
		return err
	}
	d.add(Change{Row: rule.ID, Agent: name, From: from, To: rule.To, Trigger: event})
	return nil
}

func (d *draft) connect(name AgentID) error {
	a, err := d.known(name, Connected)
	if err != nil || a.Connected {
		return err
	}
	event := Connected
	switch {
	case a.Disabled:
		event = ConnectedInert
	case a.Crashed:
		event = Restarted
	}
	a.Connected, a.Crashed = true, false
	d.setAgent(name, a)
	if err := d.own(name, Offline, event); err != nil || a.Disabled {
		return err
	}
	return d.obeyAssignments(name)
}

// obeyAssignments queues an agent where somebody assigned it while it was offline.
func (d *draft) obeyAssignments(name AgentID) error {
	for _, id := range d.is.Channels {
		c := d.circle(id)
		if s := c.look(name); s == nil || !s.Owed {
			continue
		}
		if err := c.assign(name); err != nil {
			return err
		}
		c.moveOn()
	}
	return nil
}

// goAway takes an agent out of every circle that it stands in, in one batch.
func (d *draft) goAway(name AgentID, event Event, why string) error {
	a, err := d.known(name, event)
	if err != nil {
		return err
	}
	online := a.Online()
	switch {
	case event == Disabled && a.Disabled, event != Disabled && !a.Connected:
		return nil
	case event == Disabled:
		a.Disabled = true
	default:
		a.Connected, a.Crashed = false, event != Disconnected
	}
	d.setAgent(name, a)
	if !online {
		if event != Disabled {
			event = GoneInert
		}
		if err := d.own(name, Offline, event); err != nil {
			return err
		}
		d.elsewhere(name)
		return nil
	}
	first := len(d.changes)
	for _, id := range a.Channels {
		c := d.circle(id)
		s := c.look(name)
		if s.State == "" && c.head.Rests != name && len(s.Apart)+len(s.Ahead) == 0 {
			continue
		}
		from := s.State
		if from == "" {
			from = Idle
		}
		if err := c.takeFrom(from, name, event, why); err != nil {
			return err
		}
		c.leadLost(name)
		c.moveOn()
	}
	if len(d.changes) == first {
		if err := d.own(name, Idle, event); err != nil {
			return err
		}
	}
	d.elsewhere(name)
	return nil
}

// elsewhere looks after the channels in which an agent that is gone stands in no circle: where
// it was answering a person, whose lead need not be a member; and where its work was still to be
// stopped, which it is.
func (d *draft) elsewhere(name AgentID) {
	for _, id := range sorted(d.floor.Channels) {
		if ch := d.floor.Channels[id]; ch.Head.Aside.Agent != name && (ch.Seats[name] == nil || ch.Seats[name].Stop == 0) {
			continue
		}
		c := d.circle(id)
		if s := c.look(name); s != nil && s.Stop != 0 && !d.is.Connected {
			if c.seat(name).Stop = 0; s.Gone {
				c.leave(name)
			}
			c.emit(rowTold, name, "", "", Event(StopWork))
		}
		c.leadLost(name)
		c.moveOn()
	}
}

func (d *draft) enable(name AgentID) error {
	a, err := d.known(name, Enabled)
	if err != nil || !a.Disabled {
		return err
	}
	a.Disabled = false
	d.setAgent(name, a)
	if !a.Connected {
		return d.own(name, Offline, EnabledAway)
	}
	if err := d.own(name, Offline, Enabled); err != nil {
		return err
	}
	return d.obeyAssignments(name)
}

// limit sets or lifts what keeps an agent from turns, and ends those that it has (X9).
func (d *draft) limit(name AgentID, limit string) error {
	a, err := d.known(name, LimitReached)
	limit = cut(limit)
	if err != nil || a.Limit == limit {
		return err
	}
	a.Limit = limit
	d.setAgent(name, a)
	event := Event("limit_lifted")
	if limit != "" {
		event = LimitReached
	}
	d.add(Change{Row: rowLimited, Agent: name, Trigger: event, Body: Body{Why: limit}})
	for _, id := range a.Channels {
		c := d.circle(id)
		if limit != "" && c.head.Holder == name {
			if err := c.take(name, LimitReached, limit); err != nil {
				return err
			}
		}
		c.moveOn()
	}
	return nil
}

// configure makes a channel, or sets it anew.
func (d *draft) configure(in ChannelConfigured) error {
	subject := "#" + string(in.Channel)
	set := in.Settings
	switch {
	case !slices.Contains([]Mode{ByQueue, Interrupt, Inject, Parallel}, set.Mode):
		return refusal(subject, "configured", "unchanged", "", fmt.Sprintf("%q is no mode; take queue, interrupt, inject or parallel", set.Mode))
	case set.DefaultTimeout < 0 || set.RoundsMax < 0 || set.WaitTimeout <= 0 || set.AutoDetectSilence <= 0:
		return refusal(subject, "configured", "unchanged", "", "its times must be more than nothing, and its rounds no less than 0")
	}
	was := d.floor.Channels[in.Channel]
	if was == nil && len(d.floor.Channels) >= channelsMax {
		return refusal(subject, "configured", "unknown", "", fmt.Sprintf("there are %d channels, which is the limit", channelsMax))
	}
	if was != nil && was.Settings == set {
		return nil
	}
	if was == nil {
		head := Head{Parked: Nobody}
		d.add(Change{Row: rowConfigured, Channel: in.Channel, Trigger: "configured", Body: Body{Settings: &set, Head: &head}})
		return nil
	}
	d.add(Change{Row: rowConfigured, Channel: in.Channel, Trigger: "configured", Body: Body{Settings: &set}})
	c := d.circle(in.Channel)
	c.rules = set
	c.moveOn()
	return nil
}

func (c *circle) assign(name AgentID) error {
	a := c.agentNow(name)
	state := c.state(name)
	switch {
	case a == nil:
		return c.refuse(name, Assigned, "T2", "no agent has this name; add it to fairlead.yaml")
	case c.member(name) && state != Idle && state != Offline:
		return nil
	case c.member(name) && state == Offline && c.look(name).Owed:
		return nil
	case c.member(name) && c.head.Rests == name:
		return nil // its next message queues it
	case !c.member(name) && len(c.base.Seats) >= agentsPerChannelMax:
		return c.refuse(name, Assigned, "T2", fmt.Sprintf("%d agents are in this channel, which is the limit", agentsPerChannelMax))
	}
	if state == Idle {
		c.second(name)
	}
	c.welcome(name)
	return c.take(name, Assigned, "")
}

// second has whoever rests alone queued before somebody else is: it would be forgotten when that
// one rests in its place.
func (c *circle) second(name AgentID) {
	if rests := c.head.Rests; rests != "" && rests != name {
		c.must(rests, SecondCame)
	}
}

// welcome makes somebody a member. What the others said before is not its to answer; what a
// person asked and nobody answered is.
func (c *circle) welcome(name AgentID) {
	s := c.seat(name)
	s.Gone, s.Owed = false, !c.agentNow(name).Online()
	s.Rest = c.head.Seq
	for _, m := range c.open {
		if m.Ends.IsZero() {
			s.Rest = min(s.Rest, m.N-1)
			break
		}
	}
	s.Heard = min(s.Heard, s.Rest)
	if a := c.agentNow(name); !slices.Contains(a.Channels, c.id) {
		is := *a
		is.Channels = append(slices.Clone(is.Channels), c.id)
		slices.Sort(is.Channels)
		c.setAgent(name, is)
	}
}

func (c *circle) remove(name AgentID) error {
	if !c.member(name) {
		return c.refuse(name, Removed, "T5", "it is not in this channel")
	}
	return c.take(name, Removed, "")
}
