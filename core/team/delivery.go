package team

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
)

// channelIdleWords is why such a session is asked to end.
const channelIdleWords = "no channel has anything to tell it"

// channelIdleMax is how long a session for channels stays without work: conversations continue
// within minutes, and idle processes waste resources.
const channelIdleMax = 5 * time.Minute

// Delivery is the last action that was delivered to a session for channels. There is only one at a
// time: everything that the agent says until its answer ends belongs to it.
type Delivery struct {
	Key       string             `json:"key"` // of the action
	Do        channel.ActionKind `json:"do"`
	Token     channel.Token      `json:"token"`
	N         uint64             `json:"n,omitempty"`
	Re        uint64             `json:"re,omitempty"`    // the message that it answers without a turn
	Input     int64              `json:"input,omitempty"` // bytes of input up to and including it
	Confirmed bool               `json:"told,omitempty"`  // false: the session is being started with it
	Begun     time.Time          `json:"begun,omitzero"`
	Over      time.Time          `json:"over,omitzero"`  // when its answer ended
	Held      string             `json:"held,omitempty"` // a turn word at the end of the answer so far: it counts if the answer ends there
}

// DeliveryOf converts an action to the form that a session keeps.
func DeliveryOf(action channel.Action) Delivery {
	delivery := Delivery{Key: action.Key, Do: action.Do, Token: action.Token, N: action.N}
	if action.Do == channel.TellAside || action.Do == channel.TellMessage && action.Token.Turn == 0 {
		delivery.Re = action.N
	}
	return delivery
}

// ActionOf parses an action's key. It is used for an action that was delivered and is no longer
// pending: text that answers it is recognized as late.
func ActionOf(key string) (channel.Action, bool) {
	part := strings.Split(key, "/")
	if len(part) != 4 {
		return channel.Action{}, false
	}
	n, err := strconv.ParseUint(part[3], 10, 64)
	if err != nil {
		return channel.Action{}, false
	}
	action := channel.Action{
		Key: key, Do: channel.ActionKind(part[0]), N: n,
		Token: channel.Token{Channel: channel.ChannelID(part[1]), Agent: channel.AgentID(part[2])},
	}
	if action.Do == channel.TellTurn {
		action.Token.Turn = n
	}
	return action, true
}

// ServesChannels reports whether the session takes part in channels. A lead session does, too.
func (s *Session) ServesChannels() bool {
	return s != nil && (s.For == ForChannels || s.For == ForLead)
}

// AnswerPending reports whether the session has not answered its last delivery yet.
func (s *Session) AnswerPending() bool {
	return s.ServesChannels() && s.Delivery != nil && s.Delivery.Over.IsZero()
}

// ChannelsOf lists the channels of an agent by name: where it is a member, and where it is the lead.
func (t *Team) ChannelsOf(agent string) []string {
	var ids []string
	if a := t.Channels.Agents[channel.AgentID(agent)]; a != nil {
		for _, id := range a.Channels {
			ids = append(ids, string(id))
		}
	}
	for id, c := range t.Channels.ByID {
		if isGuest(c, channel.AgentID(agent)) && !slices.Contains(ids, string(id)) {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// isGuest reports whether an agent that is not a member has work in a channel: a lead that answers
// a person, or a removed agent whose work is to be cancelled.
func isGuest(c *channel.Channel, agent channel.AgentID) bool {
	is := c.Participants[agent]
	return c.Head.Aside.Agent == agent || is != nil && is.Gone
}

// ChannelActions returns the pending actions of a channel for all its agents.
func (t *Team) ChannelActions(id string, at time.Time) []channel.Action {
	return t.Channels.Actions(channel.ChannelID(id), t.turnNow(at))
}

func (t *Team) turnNow(at time.Time) channel.Now {
	return channel.Now{At: at, Held: t.held() || t.Stopping}
}

// AgentChannelActions returns the pending actions for one agent over all its channels: first
// cancellations, then the lead's actions for the crew in its own session, then people's messages,
// then turns in the order in which they were granted.
func (t *Team) AgentChannelActions(agent string, at time.Time) []channel.Action {
	var actions []channel.Action
	if a := t.Agents[agent]; a != nil && a.Session.IsLead() {
		actions = t.leadActions(agent)
	}
	for _, id := range slices.Sorted(maps.Keys(t.Channels.ByID)) {
		actions = append(actions, t.Channels.ActionsOf(id, channel.AgentID(agent), t.turnNow(at))...)
	}
	slices.SortStableFunc(actions, func(a, b channel.Action) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), t.givenAt(a).Compare(t.givenAt(b)))
	})
	return actions
}

func urgency(action channel.Action) int {
	switch action.Do {
	case channel.StopWork:
		return 0
	case channel.TellTurn:
		return 2
	default:
		return 1
	}
}

func (t *Team) givenAt(action channel.Action) time.Time {
	if action.Do != channel.TellTurn {
		return time.Time{}
	}
	return t.Channels.ByID[action.Token.Channel].Head.Lease.Since
}

// firstDelivery is what an agent gets next: nothing of a channel where its work is to be stopped, as the stop would reach that too.
func (t *Team) firstDelivery(agent string, at time.Time) (channel.Action, bool) {
	var stops []channel.ChannelID
	for _, action := range t.AgentChannelActions(agent, at) {
		if action.Do == channel.StopWork { // these are first
			stops = append(stops, action.Token.Channel)
		} else if !slices.Contains(stops, action.Token.Channel) {
			return action, true
		}
	}
	return channel.Action{}, false
}

// nextOfChannels returns the next event for an agent's channels.
func (t *Team) nextOfChannels(a *Agent, at time.Time) any {
	is := t.Channels.Agents[channel.AgentID(a.Name)]
	if is == nil {
		return nil
	}
	switch limit := t.channelLimit(a, at); {
	case limit != "" && is.Limit == "":
		return channel.LimitHit{Agent: channel.AgentID(a.Name), Limit: limit}
	case limit == "" && is.Limit != "":
		return channel.LimitLifted{Agent: channel.AgentID(a.Name)}
	}
	foreign := a.Settings.Policy.Foreign // it fetches its actions itself
	if foreign && !a.Session.ServesChannels() {
		return nil
	}
	_, some := t.firstDelivery(a.Name, at)
	some = some && !foreign
	may, _ := t.mayRunSession(a, at)
	switch s := a.Session; {
	case some && may && !s.ServesChannels() && !isIn(a.Queue, ForChannels):
		return openChannelSession{}
	case s.ServesChannels() && !s.IsLead() && s.Phase == session.Running && s.Ending == "" && !s.AnswerPending() &&
		t.channelSessionIdle(a, some, at):
		return endSession{ending{reason: EndIdle}}
	}
	return nil
}

// mayServeChannels reports whether a request for channels is still valid, or why not. While the team
// is held, the request stays in the queue.
func (t *Team) mayServeChannels(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayRunSession(a, at); !ok && !t.Hold.On && !t.Stopping {
		return false, why
	}
	if _, some := t.firstDelivery(a.Name, at); !some {
		return false, channelIdleWords
	}
	return !a.Settings.Policy.Foreign, foreignWords
}

// foreignWords is why Fairlead starts no session for a foreign agent.
const foreignWords = "it fetches its channel messages itself"

// deliveryWanted reports whether the action with which a session is to start is still pending.
func (t *Team) deliveryWanted(a *Agent, at time.Time) (ok bool, why string) {
	if a.Settings.Policy.Foreign {
		return false, foreignWords
	}
	for _, action := range t.AgentChannelActions(a.Name, at) {
		if action.Key == a.Session.Delivery.Key {
			return true, ""
		}
	}
	return false, "the action is no longer pending"
}

// channelSessionIdle reports whether an idle session is to end. A hold is no reason: the session's
// context is useful afterwards.
func (t *Team) channelSessionIdle(a *Agent, some bool, at time.Time) bool {
	is := t.Channels.Agents[channel.AgentID(a.Name)]
	if t.Stopping || a.Removed || a.Settings.Policy.Foreign || is.Limit != "" || !is.Online() {
		return true
	}
	rest := t.channelIdleDeadline(a)
	return !some && (len(a.Queue) > 0 || len(t.ChannelsOf(a.Name)) == 0 || !rest.IsZero() && !at.Before(rest))
}

// channelIdleDeadline is when a session for channels has been idle for too long.
func (t *Team) channelIdleDeadline(a *Agent) time.Time {
	s := a.Session
	if !s.ServesChannels() || s.IsLead() || s.Phase != session.Running || s.Ending != "" || s.Delivery == nil || s.Delivery.Over.IsZero() {
		return time.Time{}
	}
	return s.Delivery.Over.Add(channelIdleMax)
}

// channelTimer handles what is due in an agent's channels.
func (d *decision) channelTimer(a *Agent) error {
	at, is := d.ev.At, d.team.Channels.Agents[channel.AgentID(a.Name)]
	if limit, over := d.team.sessionDeadline(a); a.Session.ServesChannels() && !over.IsZero() && !at.Before(over) {
		if err := d.endSession(a, ending{EndLimit, "session " + limit.String()}, false); err != nil || is == nil {
			return err
		}
		// Next lifts it, since it applies to one answer
		return d.channels(channel.LimitHit{Agent: channel.AgentID(a.Name), Limit: "session " + limit.String()})
	}
	if rest := d.team.channelIdleDeadline(a); !rest.IsZero() && !at.Before(rest) {
		return d.endSession(a, ending{reason: EndIdle}, false)
	}
	if is != nil && is.Limit != "" && d.team.channelLimit(a, at) == "" {
		return d.channels(channel.LimitLifted{Agent: channel.AgentID(a.Name)})
	}
	return nil
}

// channelLimit returns what prevents an agent's turns: a daily limit, or its provider's rate limit.
func (t *Team) channelLimit(a *Agent, at time.Time) string {
	if a.Waits() {
		return a.Limited.Words()
	}
	return t.OverLimit(a, at)
}

// dayDeadline is when a daily limit that prevents an agent's turns ends.
func (t *Team) dayDeadline(a *Agent, at time.Time) time.Time {
	if !a.Settings.Limits.ofDay() && !t.Limits.ofDay() {
		return time.Time{} // Next lifts obsolete limits at the start
	}
	if is := t.Channels.Agents[channel.AgentID(a.Name)]; is == nil || is.Limit == "" || a.Waits() {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, cmp.Or(a.Usage.Day, t.Usage.Day))
	if err != nil {
		return at
	}
	return day.Add(24 * time.Hour)
}

// openChannelSession opens a session for an agent's next action, or queues a request (J1).
func (d *decision) openChannelSession(a *Agent) error {
	action, some := d.team.firstDelivery(a.Name, d.ev.At)
	switch {
	case !some:
		return nil
	case d.team.slotFree(a) && len(a.Queue) == 0 && !d.team.turnNow(d.ev.At).Held:
		return d.startChannelSession(a, action)
	}
	return d.request(a, Request{For: ForChannels, Kind: control.ChannelTurn, At: d.ev.At})
}

func (d *decision) startChannelSession(a *Agent, action channel.Action) error {
	delivery := DeliveryOf(action)
	return d.openSession(a, Session{Kind: control.ChannelTurn, For: ForChannels, Delivery: &delivery})
}

// channelSessionSeen records that the process of a session for channels is alive, and so has
// received the action with which it was started.
func (d *decision) channelSessionSeen(a *Agent, s *Session, input int64, adopted bool) error {
	if s.IsLead() {
		if err := d.leadSeen(a, s, adopted); err != nil {
			return err
		}
	}
	if s.Delivery == nil || s.Delivery.Confirmed {
		return nil
	}
	delivery := *s.Delivery
	delivery.Confirmed, delivery.Begun, delivery.Input = true, d.ev.At, input
	d.recordDelivery(a, delivery)
	return d.leadDelivered(delivery)
}

// delivered records that a running session has received a further action. An action during an answer
// becomes part of what is answered.
func (d *decision) delivered(a *Agent, what Delivered) error {
	s, err := d.ours(a, what)
	if err != nil {
		return err
	}
	if _, err := d.look(a, session.ActionDelivered); err != nil {
		return err
	}
	if s.Delivery == nil || what.Input <= s.Delivery.Input {
		return nil
	}
	delivery := DeliveryOf(what.Action)
	delivery.Confirmed, delivery.Begun, delivery.Input = true, d.ev.At, what.Input
	if s.Delivery.Over.IsZero() && s.Delivery.Token == delivery.Token && delivery.Re == 0 {
		delivery.Begun = s.Delivery.Begun
	}
	d.recordDelivery(a, delivery)
	return d.leadDelivered(delivery)
}

func (d *decision) recordDelivery(a *Agent, delivery Delivery) {
	rule, err := d.look(a, session.ActionDelivered)
	if err != nil {
		panic("team: a session that runs can be told something: " + err.Error())
	}
	d.add(a.entity(), "session", rule.ID, string(a.phase()), string(rule.To), string(session.ActionDelivered), &delivery)
	a.setDelivery(delivery)
}

func (a *Agent) setDelivery(delivery Delivery) {
	s := *a.Session
	s.Delivery = &delivery
	a.Session = &s
}

// channelSessionEnded reports the end of a session during an answer to the channel. A session that
// was stopped or asked to end has not crashed.
func (d *decision) channelSessionEnded(a *Agent, s *Session) error {
	if !s.AnswerPending() || s.Outcome == control.Withdrawn || IsLeadToken(s.Delivery.Token) {
		return nil
	}
	delivery, is := s.Delivery, d.team.Channels.Agents[s.Delivery.Token.Agent]
	if is == nil || !is.Connected {
		return nil
	}
	if s.Outcome == control.RateLimited { // X9; the action is delivered again after the rate limit
		return d.channels(channel.LimitHit{Agent: delivery.Token.Agent, Limit: d.team.channelLimit(a, d.ev.At)})
	}
	if s.Outcome == control.Anew {
		return d.channels(channel.ActionForgotten{Token: delivery.Token, Do: delivery.Do, N: delivery.N})
	}
	if s.Outcome == control.OK || s.Outcome == control.Cancelled || d.stopping(a.Name) {
		if !delivery.Confirmed {
			return nil // the action was not delivered: the next session gets it
		}
		return d.channels(channel.Said{Token: delivery.Token, Re: delivery.Re, Ended: true})
	}
	return d.channels(channel.AgentGone{Agent: delivery.Token.Agent, How: channel.Crashed, Why: s.ID + ": " + s.Why})
}

// stopping reports whether an agent's work in a channel was to be cancelled.
func (d *decision) stopping(agent string) bool {
	return slices.ContainsFunc(d.team.ChannelsOf(agent), func(id string) bool {
		s := d.team.Channels.ByID[channel.ChannelID(id)].Participants[channel.AgentID(agent)]
		return s != nil && s.Stop != 0
	})
}
