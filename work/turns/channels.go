package turns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// Requests of people about channels. Errors are a *table.Refusal, or a *team.Unknown if there is
// no such channel or agent.

// Say posts a person's message. An empty mode means the channel's mode. It returns when the message
// is durable.
func (c *Controller) Say(ctx context.Context, by change.Actor, channelName, text, mode string) (view.Spoken, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	ev := loop.EventBy(by, "", channel.HumanSpoke{Channel: channel.ChannelID(channelName), Mode: channel.Mode(mode), Bytes: len(text)})
	ev.What = channel.HumanSpoke{Channel: channel.ChannelID(channelName), By: ev.Actor.ID, Mode: channel.Mode(mode), Bytes: len(text)}
	ev.Text = text
	var spoken view.Spoken
	seq, err := c.loop.Do(ctx, loop.Request{Event: ev, Found: func(changes []change.Change) {
		for i := range changes {
			set := change.As[channel.Set](changes[i].Body)
			if set == nil {
				continue
			}
			if set.Body.Post != nil {
				spoken.N = set.Body.Post.N
			}
			for j := range set.Body.Messages {
				if m := &set.Body.Messages[j]; m.N == spoken.N {
					spoken.State = string(m.State)
				}
			}
		}
	}})
	if err != nil {
		return view.Spoken{}, err
	}
	spoken.Seq, spoken.MessageID = seq, channelName+"/"+strconv.FormatUint(spoken.N, 10)
	return spoken, nil
}

// inChannel submits a request about channels.
func (c *Controller) inChannel(ctx context.Context, by change.Actor, what channel.Input) (uint64, error) {
	return c.loop.Submit(ctx, by, "", what)
}

// Grant gives an agent the turn. It is refused while another agent has it, unless now is set (T4,
// T23).
func (c *Controller) Grant(ctx context.Context, by change.Actor, channelName, agent string, now bool) (uint64, error) {
	return c.inChannel(ctx, by, channel.GrantAsked{Channel: channel.ChannelID(channelName), Agent: channel.AgentID(agent), Now: now})
}

// Skip ends the current turn (T23); number 0 means any turn.
func (c *Controller) Skip(ctx context.Context, by change.Actor, channelName string, number uint64) (uint64, error) {
	return c.inChannel(ctx, by, channel.SkipAsked{Channel: channel.ChannelID(channelName), Turn: number})
}

// Override ends a wait (T15): the turn continues or is forfeited.
func (c *Controller) Override(ctx context.Context, by change.Actor, channelName string, goOn bool) (uint64, error) {
	return c.inChannel(ctx, by, channel.OverrideAsked{Channel: channel.ChannelID(channelName), GoOn: goOn})
}

// Assign puts an agent at the end of a channel's queue (T2).
func (c *Controller) Assign(ctx context.Context, by change.Actor, channelName, agent string) (uint64, error) {
	return c.inChannel(ctx, by, channel.AssignAsked{Channel: channel.ChannelID(channelName), Agent: channel.AgentID(agent)})
}

// Unassign removes an agent from a channel (T5, T16).
func (c *Controller) Unassign(ctx context.Context, by change.Actor, channelName, agent string) (uint64, error) {
	return c.inChannel(ctx, by, channel.RemoveAsked{Channel: channel.ChannelID(channelName), Agent: channel.AgentID(agent)})
}

// Disable removes an agent from all turns (T20), until Enable (T21).
func (c *Controller) Disable(ctx context.Context, by change.Actor, agent string) (uint64, error) {
	return c.inChannel(ctx, by, channel.DisableAsked{Agent: channel.AgentID(agent)})
}

// Enable ends Disable.
func (c *Controller) Enable(ctx context.Context, by change.Actor, agent string) (uint64, error) {
	return c.inChannel(ctx, by, channel.EnableAsked{Agent: channel.AgentID(agent)})
}

// Channels returns all channels in order of name.
func (c *Controller) Channels(ctx context.Context) ([]view.ChannelView, error) {
	views := []view.ChannelView{}
	if err := c.loop.View(ctx, func(t *team.Team) {
		for _, id := range t.ChannelIDs() {
			views = append(views, c.channelView(id))
		}
	}); err != nil {
		return nil, err
	}
	for i := range views {
		if err := c.lastOf(ctx, &views[i]); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// Channel returns one channel.
func (c *Controller) Channel(ctx context.Context, name string) (view.ChannelView, error) {
	var shown view.ChannelView
	var unknown error
	if err := c.loop.View(ctx, func(t *team.Team) {
		if t.Channels.ByID[channel.ChannelID(name)] == nil {
			unknown = &team.Unknown{What: "channel", Name: name, Known: t.ChannelIDs()}
			return
		}
		shown = c.channelView(name)
	}); cmp.Or(err, unknown) != nil {
		return view.ChannelView{}, cmp.Or(err, unknown)
	}
	return shown, c.lastOf(ctx, &shown)
}

// lastShown is how many bytes of the last message a channel's view contains.
const lastShown = 200

// lastOf adds the last message.
func (c *Conversations) lastOf(ctx context.Context, view *view.ChannelView) error {
	if view.Messages == 0 {
		return nil
	}
	said, err := c.Messages(ctx, view.Name, []uint64{view.Messages})
	if err != nil || len(said) == 0 {
		return err
	}
	last := said[0]
	if runes := []rune(last.Text); len(runes) > lastShown {
		last.Text = string(runes[:lastShown])
	}
	if last.Kind == string(channel.OfHuman) {
		last.State = string(channel.Answered)
		for _, m := range view.Open {
			if m.N == last.N {
				last.State = m.State
			}
		}
	}
	view.Last = &last
	return nil
}

// channelView runs in the loop.
func (c *Controller) channelView(name string) view.ChannelView {
	t := c.loop.State()
	ch := t.Channels.ByID[channel.ChannelID(name)]
	head, set := &ch.Head, &ch.Settings
	circle, known := t.ChannelConfigs[name]
	shown := view.ChannelView{
		Name: name, Queue: []string{}, Holder: string(head.Holder), State: "PARKED", Messages: head.Seq, Turn: head.Turn,
		Why: ParkedWords(ch), Parked: string(head.Parked), Mode: string(set.Mode), Lead: string(set.Lead),
		RoundsMax: set.RoundsMax, TimeoutMS: set.DefaultTimeout.Milliseconds(), Agents: []view.MemberView{}, Open: []view.OpenMessage{},
		Configured: known && !circle.Off, Since: view.Moment(head.Lease.Since),
	}
	for _, agent := range ch.Queue() {
		shown.Queue = append(shown.Queue, string(agent))
	}
	if head.Holder != "" {
		shown.State, shown.Why = string(t.Channels.StateOf(head.Holder, channel.ChannelID(name))),
			cmp.Or(waitsWords(ch), AnsweredWords(t, name))
	}
	shown.Deadline = view.Moment(deadlineOf(ch))
	if a := head.Aside; a.Message != 0 {
		shown.Aside = &view.AsideView{Agent: string(a.Agent), Message: a.Message, Deadline: shown.Deadline}
	}
	for _, m := range ch.Open {
		shown.Open = append(shown.Open, view.OpenMessage{N: m.N, By: m.By, Mode: string(m.Mode), State: string(m.State)})
	}
	for _, agent := range MembersOf(ch, circle.Agents) {
		shown.Agents = append(shown.Agents, c.memberView(name, ch, agent))
	}
	return shown
}

// ParkedWords explain why no agent has the turn, and name the oldest message of a person that has no
// answer. They are empty while an agent has the turn.
func ParkedWords(c *channel.Channel) string {
	words := parkedWords[c.Head.Parked]
	if words == "" || c.Head.Parked == channel.NoAgents || c.Head.Parked == channel.Held {
		return words
	}
	for _, m := range c.Open {
		if m.Ends.IsZero() {
			return words + fmt.Sprintf("; message %d of %s has no answer", m.N, m.By)
		}
	}
	return words
}

var parkedWords = map[channel.Reason]string{
	channel.Quiet: "no agent has anything to answer", channel.Unanswered: "the agents did not answer a message of a person",
	channel.Passed: "all agents have passed", channel.Rounds: "the agents have used their rounds: the channel waits for a person",
	channel.NoAgents: "no agent is available", channel.Held: "the team is held",
	channel.Limited: "the agents that have something to answer have reached a limit",
}

// waitsWords explain what the turn waits for; empty if it does not wait.
func waitsWords(c *channel.Channel) string {
	switch l := &c.Head.Lease; {
	case l.Stopped && c.Head.Aside.Message != 0:
		return "a person interrupted and is answered first"
	case l.Why != "":
		return l.Why
	case !l.WaitTo.IsZero():
		return "it asked to wait"
	default:
		return ""
	}
}

// AnsweredWords say that the agent with the turn answered without TURN_COMPLETE, and what ends its turn; empty if it
// did not.
func AnsweredWords(t *team.Team, name string) string {
	head := &t.Channels.ByID[channel.ChannelID(name)].Head
	if head.Lease.Answered.IsZero() {
		return ""
	}
	words := "it answered without TURN_COMPLETE"
	if a := t.Agents[string(head.Holder)]; a != nil && !a.Settings.Policy.Foreign && !a.Session.ServesChannels() {
		words += " and its session has ended"
	}
	words += "; `fairlead channel skip " + name + "` ends its turn"
	switch l := &head.Lease; {
	case !l.Silence.IsZero():
		return words + ", else its silence does"
	case !l.Ends.IsZero():
		return words + ", else its time limit does"
	default:
		return words + ", which has no time limit"
	}
}

// deadlineOf is when the turn, the wait or the answer to a person expires.
func deadlineOf(c *channel.Channel) time.Time {
	return table.Earliest(c.Head.Lease.Ends, c.Head.Lease.WaitTo, c.Head.Lease.Silence, c.Head.Aside.Ends)
}

// MembersOf lists the participants of a channel: in the order of the configuration, then others by
// name.
func MembersOf(c *channel.Channel, configured []string) []string {
	var names, others []string
	is := func(name string) bool {
		s := c.Participants[channel.AgentID(name)]
		return s != nil && !s.Gone
	}
	for _, name := range configured {
		if is(name) {
			names = append(names, name)
		}
	}
	for agent := range c.Participants {
		if name := string(agent); is(name) && !slices.Contains(configured, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

func (c *Controller) memberView(channelName string, ch *channel.Channel, name string) view.MemberView {
	s, a := ch.Participants[channel.AgentID(name)], c.loop.State().Channels.Agents[channel.AgentID(name)]
	view := view.MemberView{
		Name: name, State: string(c.loop.State().Channels.StateOf(s.Agent, channel.ChannelID(channelName))),
		Owed: s.JoinOnConnect,
	}
	if s.TookFor == ch.Head.Human {
		view.Took = s.Took
	}
	if a != nil {
		view.Connected, view.Disabled, view.Crashed, view.Limit = a.Connected, a.Disabled, a.Crashed, a.Limit
	}
	if is := c.loop.State().Agents[name]; is != nil {
		view.Foreign = is.Settings.Policy.Foreign
		view.Working = is.Session.AnswerPending() && string(is.Session.Delivery.Token.Channel) == channelName
	}
	return view
}

// TurnWhy says what is the matter with an agent's turns in channels; empty: nothing.
func TurnWhy(t *team.Team, agent string) string {
	if a := t.Channels.Agents[channel.AgentID(agent)]; a != nil {
		for _, id := range a.Channels {
			if t.Channels.ByID[id].Head.Holder != channel.AgentID(agent) {
				continue
			}
			if words := AnsweredWords(t, string(id)); words != "" {
				return "in #" + string(id) + " " + words
			}
		}
	}
	return ""
}

// TurnsOf returns an agent's state in each of its channels.
func (c *Controller) TurnsOf(agent string) map[string]string {
	states := map[string]string{}
	if a := c.loop.State().Channels.Agents[channel.AgentID(agent)]; a != nil {
		for _, id := range a.Channels {
			states[string(id)] = string(c.loop.State().Channels.StateOf(channel.AgentID(agent), id))
		}
	}
	return states
}
