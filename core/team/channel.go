package team

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/table"
)

// ChannelConfig is a channel's configuration in fairlead.yaml. The current members are part of the
// channel state: people assign and remove agents, and that survives a restart.
type ChannelConfig struct {
	Agents []string `json:"agents,omitempty"`
	Off    bool     `json:"off,omitempty"` // no longer configured; its messages stay (X5)
}

// ChannelIDs lists the channels by name, including those that are no longer configured.
func (t *Team) ChannelIDs() []string {
	ids := make([]string, 0, len(t.Channels.ByID))
	for id := range t.Channels.ByID {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return ids
}

// channels decides a channel input. It is called at most once in an event, because it decides on the
// applied state: consequences follow from Next.
func (d *decision) channels(in channel.Input) error {
	if err := d.knows(in); err != nil {
		return err
	}
	changes, err := d.team.Channels.Decide(in, d.team.turnNow(d.ev.At))
	if err != nil {
		return err
	}
	d.addTurns(changes)
	return nil
}

// knows refuses unknown names, and requests for a channel that was removed from the configuration.
func (d *decision) knows(in channel.Input) error {
	about, t := in.Subject(), d.team
	channelName, agent := about.Entity, about.Agent
	switch {
	case about.Event == channel.Configured: // it adds names
	case agent != "" && t.Agents[agent] != nil && len(t.Channels.ByID) == 0:
		return &table.Refusal{
			Subject: agent, Event: string(about.Event), State: "in no channel", Row: "T2",
			Reason: "there are no channels; add one to fairlead.yaml and restart",
		}
	case agent != "" && t.Channels.Agents[channel.AgentID(agent)] == nil:
		return &Unknown{What: "agent", Name: agent, Known: t.Names()}
	case channelName != "" && t.Channels.ByID[channel.ChannelID(channelName)] == nil:
		return &Unknown{What: "channel", Name: channelName, Known: t.ChannelIDs()}
	case channelName != "" && t.ChannelConfigs[channelName].Off && about.Starts:
		return &table.Refusal{
			Subject: "#" + channelName, Event: string(about.Event), State: "removed", Row: "X5",
			Reason: "it is no longer in fairlead.yaml; add it there and restart",
		}
	}
	return nil
}

// addTurns adds changes of package channel, with the text of their message.
func (d *decision) addTurns(changes []change.Change) {
	for i := range changes {
		if set := change.As[channel.Set](changes[i].Body); set.Body.Post != nil {
			set.Text, set.Session = d.ev.Text, d.sessionOf(d.ev.What)
		}
	}
	d.take(changes)
}

// sessionOf returns the session of a message in a channel; empty: none of Fairlead's sessions.
func (d *decision) sessionOf(what any) string {
	said, ok := what.(channel.Said)
	if a := d.team.Agents[string(said.Token.Agent)]; ok && a != nil && a.Session.ServesChannels() {
		return cmp.Or(a.Session.UUID, a.Session.ID)
	}
	return ""
}

// configureChannels applies the configured channels, agents and members. It decides many inputs in
// one event, each on a state with the previous ones applied.
func (d *decision) configureChannels(conf Configured) error {
	if len(conf.Channels)+len(d.team.Channels.ByID) == 0 {
		return nil // an agent in no channel gets no turns
	}
	next := *d.team
	next.Channels = *cloneJSON(&d.team.Channels)
	d.team = &next
	decide := func(in channel.Input) error {
		first := len(d.changes)
		if err := d.channels(in); err != nil {
			return fmt.Errorf("team: the channels cannot be as fairlead.yaml has them: %w", err)
		}
		for _, ch := range d.changes[first:] {
			next.Channels.Apply(ch)
		}
		return nil
	}
	for _, in := range d.channelInputs(conf) {
		if err := decide(in); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(conf.Channels)) {
		agents := append([]string(nil), conf.Channels[name].Agents...) // nil, as it is decoded from the journal
		if err := d.configureChannel(name, ChannelConfig{Agents: agents}, decide); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.team.ChannelConfigs)) {
		if _, ok := conf.Channels[name]; !ok {
			if err := d.configureChannel(name, ChannelConfig{Off: true}, decide); err != nil {
				return err
			}
		}
	}
	return nil
}

// channelInputs returns the inputs that the configuration requires for channels and agents, except
// membership.
func (d *decision) channelInputs(conf Configured) (ins []channel.Input) {
	for _, name := range slices.Sorted(maps.Keys(conf.Channels)) {
		ins = append(ins, channel.ChannelConfigured{Channel: channel.ChannelID(name), Settings: conf.Channels[name].Settings})
	}
	for _, name := range slices.Sorted(maps.Keys(conf.Turns)) {
		ins = append(ins, channel.AgentConfigured{Agent: channel.AgentID(name), Settings: conf.Turns[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(d.team.Channels.Agents)) {
		if _, ok := conf.Turns[string(name)]; ok {
			continue
		}
		ins = append(ins, channel.AgentGone{Agent: name, How: channel.Disconnected, Why: "it is no longer in fairlead.yaml"})
		for _, channelName := range d.team.Channels.Agents[name].Channels {
			ins = append(ins, channel.RemoveAsked{Channel: channelName, Agent: name})
		}
	}
	return ins
}

// configureChannel compares with the previous configuration, not with the current members: an agent
// that a person removed stays removed.
func (d *decision) configureChannel(name string, now ChannelConfig, decide func(channel.Input) error) error {
	was, channelName := d.team.ChannelConfigs[name], channel.ChannelID(name)
	member := func(agent string) bool {
		s := d.team.Channels.ByID[channelName].Participants[channel.AgentID(agent)]
		return s != nil && !s.Gone
	}
	for _, agent := range now.Agents {
		if !slices.Contains(was.Agents, agent) && !member(agent) {
			if err := decide(channel.AssignAsked{Channel: channelName, Agent: channel.AgentID(agent)}); err != nil {
				return err
			}
		}
	}
	leave := was.Agents
	if now.Off {
		leave = nil
		for _, agent := range slices.Sorted(maps.Keys(d.team.Channels.ByID[channelName].Participants)) {
			leave = append(leave, string(agent))
		}
	}
	for _, agent := range leave {
		if !slices.Contains(now.Agents, agent) && member(agent) {
			if err := decide(channel.RemoveAsked{Channel: channelName, Agent: channel.AgentID(agent)}); err != nil {
				return err
			}
		}
	}
	if was.Off == now.Off && slices.Equal(was.Agents, now.Agents) && d.knowsChannel(name) {
		return nil
	}
	d.add(channel.EntityPrefix+name, "team", "E3", configuredEvent(was, d.knowsChannel(name)), configuredEvent(now, true), "channel_configured", &now)
	return nil
}

func (d *decision) knowsChannel(name string) bool {
	_, known := d.team.ChannelConfigs[name]
	return known
}

func configuredEvent(c ChannelConfig, known bool) string {
	switch {
	case !known:
		return "none"
	case c.Off:
		return "removed"
	default:
		return "configured"
	}
}
