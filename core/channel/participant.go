package channel

import (
	"cmp"
	"fmt"
	"slices"
)

// configureAgent adds or reconfigures an agent.
func (d *channelsDraft) configureAgent(in AgentConfigured) error {
	a := Agent{}
	known := d.channels.Agents[in.Agent]
	if known != nil {
		a = *known
	}
	switch {
	case known != nil && a.AgentSettings == in.Settings:
		return nil
	case known == nil && len(d.channels.Agents) >= agentsMax:
		return refusal(string(in.Agent), Configured, "unknown", "", fmt.Sprintf("there are %d agents, which is the limit", agentsMax))
	}
	a.AgentSettings = in.Settings
	d.setAgent(in.Agent, a)
	d.add(rowConfigured, "", in.Agent, "", "", Configured, Body{})
	return nil
}

func (d *channelsDraft) known(name AgentID, event Event) (Agent, error) {
	a := d.channels.Agents[name]
	if a == nil {
		return Agent{}, refusal(string(name), event, "unknown", "", "no agent has this name; add it to fairlead.yaml")
	}
	return *a, nil
}

// own applies a rule for the agent in general.
func (d *channelsDraft) own(name AgentID, from State, event Event) error {
	rule, err := Table.Look(string(name), from, event)
	if err != nil {
		return err
	}
	d.add(rule.ID, "", name, from, rule.To, event, Body{})
	return nil
}

func (d *channelsDraft) connect(name AgentID) error {
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
	return d.joinAssigned(name)
}

// joinAssigned queues an agent in the channels to which it was assigned while it was offline.
func (d *channelsDraft) joinAssigned(name AgentID) error {
	for _, id := range d.is.Channels {
		c := d.channel(id)
		if p := c.look(name); p == nil || !p.JoinOnConnect {
			continue
		}
		if err := c.assign(name); err != nil {
			return err
		}
		c.advance()
	}
	return nil
}

// disconnect removes an agent from all rotations in one batch.
func (d *channelsDraft) disconnect(name AgentID, event Event, why string) error {
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
		d.leaveOtherChannels(name)
		return nil
	}
	first := len(d.changes)
	for _, id := range a.Channels {
		c := d.channel(id)
		p := c.look(name)
		if p.State == "" && c.head.Rests != name && len(p.Parallel)+len(p.Ahead) == 0 {
			continue
		}
		from := cmp.Or(p.State, Idle)
		if err := c.takeFrom(from, name, event, why); err != nil {
			return err
		}
		c.leadLost(name)
		c.advance()
	}
	if len(d.changes) == first {
		if err := d.own(name, Idle, event); err != nil {
			return err
		}
	}
	d.leaveOtherChannels(name)
	return nil
}

// leaveOtherChannels handles the channels in whose rotation a disconnected agent is not: where it
// was answering an interruption, because the lead need not be a member, and where a cancellation of
// its work was pending, which is done now.
func (d *channelsDraft) leaveOtherChannels(name AgentID) {
	for _, id := range sorted(d.channels.ByID) {
		if ch := d.channels.ByID[id]; ch.Head.Aside.Agent != name && (ch.Participants[name] == nil || ch.Participants[name].Stop == 0) {
			continue
		}
		c := d.channel(id)
		if p := c.look(name); p != nil && p.Stop != 0 && !d.is.Connected {
			if c.participant(name).Stop = 0; p.Gone {
				c.leave(name)
			}
			c.emit(rowConfirmed, name, "", "", Event(StopWork))
		}
		c.leadLost(name)
		c.advance()
	}
}

func (d *channelsDraft) enable(name AgentID) error {
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
	return d.joinAssigned(name)
}

// limit sets or lifts an agent's limit, and ends its turns (X9).
func (d *channelsDraft) limit(name AgentID, limit string) error {
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
	d.add(rowLimited, "", name, "", "", event, Body{Why: limit})
	for _, id := range a.Channels {
		c := d.channel(id)
		if limit != "" && c.head.Holder == name {
			if err := c.take(name, LimitReached, limit); err != nil {
				return err
			}
		}
		c.advance()
	}
	return nil
}

// configure adds or reconfigures a channel.
func (d *channelsDraft) configure(in ChannelConfigured) error {
	subject := "#" + string(in.Channel)
	set := in.Settings
	switch {
	case !slices.Contains([]Mode{ByQueue, Interrupt, Inject, Parallel}, set.Mode):
		return refusal(subject, Configured, "unchanged", "",
			fmt.Sprintf("%q is not a mode; use queue, interrupt, inject or parallel", set.Mode))
	case set.DefaultTimeout < 0 || set.RoundsMax < 0 || set.WaitTimeout <= 0 || set.AutoDetectSilence <= 0:
		return refusal(subject, Configured, "unchanged", "", "its times must be positive, and its rounds must not be negative")
	}
	was := d.channels.ByID[in.Channel]
	if was == nil && len(d.channels.ByID) >= channelsMax {
		return refusal(subject, Configured, "unknown", "", fmt.Sprintf("there are %d channels, which is the limit", channelsMax))
	}
	if was != nil && was.Settings == set {
		return nil
	}
	if was == nil {
		head := Head{Parked: NoAgents}
		d.add(rowConfigured, in.Channel, "", "", "", Configured, Body{Settings: &set, Head: &head})
		return nil
	}
	d.add(rowConfigured, in.Channel, "", "", "", Configured, Body{Settings: &set})
	c := d.channel(in.Channel)
	c.rules = set
	c.advance()
	return nil
}

func (c *channelDraft) assign(name AgentID) error {
	a := c.agentNow(name)
	state := c.state(name)
	switch {
	case a == nil:
		return c.refuse(name, Assigned, "T2", "no agent has this name; add it to fairlead.yaml")
	case c.isParticipant(name) && state != Idle && state != Offline:
		return nil
	case c.isParticipant(name) && state == Offline && c.look(name).JoinOnConnect:
		return nil
	case c.isParticipant(name) && c.head.Rests == name:
		return nil // its next message puts it into the queue
	case !c.isParticipant(name) && len(c.base.Participants) >= agentsPerChannelMax:
		return c.refuse(name, Assigned, "T2", fmt.Sprintf("%d agents are in this channel, which is the limit", agentsPerChannelMax))
	}
	if state == Idle {
		c.second(name)
	}
	c.welcome(name)
	return c.take(name, Assigned, "")
}

// second queues a resting single agent before another one is assigned. Otherwise it would be lost
// when the other one rests.
func (c *channelDraft) second(name AgentID) {
	if rests := c.head.Rests; rests != "" && rests != name {
		c.must(rests, SecondCame)
	}
}

// welcome adds a member. It need not answer earlier messages of agents, but it must answer
// unanswered messages of people.
func (c *channelDraft) welcome(name AgentID) {
	p := c.participant(name)
	p.Gone, p.JoinOnConnect = false, !c.agentNow(name).Online()
	p.Rest = c.head.Seq
	for _, m := range c.open {
		if m.Ends.IsZero() {
			p.Rest = min(p.Rest, m.N-1)
			break
		}
	}
	p.Heard = min(p.Heard, p.Rest)
	if a := c.agentNow(name); !slices.Contains(a.Channels, c.id) {
		is := *a
		is.Channels = append(slices.Clone(is.Channels), c.id)
		slices.Sort(is.Channels)
		c.setAgent(name, is)
	}
}

func (c *channelDraft) remove(name AgentID) error {
	if !c.isParticipant(name) {
		return c.refuse(name, Removed, "T5", "it is not in this channel")
	}
	return c.take(name, Removed, "")
}
