package team

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/session"
)

// channelIdleWords is why such a session is asked to go.
const channelIdleWords = "nobody has anything to tell it in a channel"

// channelIdleMax is how long such a session stays when nobody has anything to tell it: a conversation
// goes on within minutes, and a process that nobody talks to is one too many.
const channelIdleMax = 5 * time.Minute

// Delivery is what a session for channels was told last. One thing at a time: what it says until its
// answer is over, it says to that.
type Delivery struct {
	Key   string             `json:"key"` // of the errand
	Do    channel.ActionKind `json:"do"`
	Token channel.Token      `json:"token"`
	N     uint64             `json:"n,omitempty"`
	Re    uint64             `json:"re,omitempty"`    // the message that it answers without a turn
	Input int64              `json:"input,omitempty"` // bytes of input up to and with it
	Told  bool               `json:"told,omitempty"`  // false: the session is being started with it
	Begun time.Time          `json:"begun,omitzero"`
	Over  time.Time          `json:"over,omitzero"` // its answer is over since
}

// DeliveryOf is an errand as a session keeps it.
func DeliveryOf(action channel.Action) Delivery {
	delivery := Delivery{Key: action.Key, Do: action.Do, Token: action.Token, N: action.N}
	if action.Do == channel.TellAside || action.Do == channel.TellMessage && action.Token.Turn == 0 {
		delivery.Re = action.N
	}
	return delivery
}

// ActionOf gives an errand back by its key, for one that is in a session's input and is not
// asked for any more: what is said to it comes too late, and is known to.
func ActionOf(key string) (channel.Action, bool) {
	part := strings.Split(key, "/")
	if len(part) != 4 {
		return channel.Action{}, false
	}
	n, err := strconv.ParseUint(part[3], 10, 64)
	if err != nil {
		return channel.Action{}, false
	}
	action := channel.Action{Key: key, Do: channel.ActionKind(part[0]), N: n, Token: channel.Token{Channel: channel.ChannelID(part[1]), Agent: channel.AgentID(part[2])}}
	if action.Do == channel.TellTurn {
		action.Token.Turn = n
	}
	return action, true
}

// ServesChannels says whether the session takes part in channels: one of the lead does, beside what it is
// there for.
func (s *Session) ServesChannels() bool {
	return s != nil && (s.For == ForChannels || s.For == ForLead)
}

// AnswerPending says whether the session has not answered yet what it was told.
func (s *Session) AnswerPending() bool {
	return s.ServesChannels() && s.Delivery != nil && s.Delivery.Over.IsZero()
}

// ChannelsOf lists the channels that an agent has to do with: where it is a member, and where it
// leads. By name.
func (t *Team) ChannelsOf(agent string) []string {
	var ids []string
	if a := t.Channels.Agents[channel.AgentID(agent)]; a != nil {
		for _, id := range a.Channels {
			ids = append(ids, string(id))
		}
	}
	for _, id := range t.outsiders()[agent] {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// outsiders finds the channels in which somebody has something to do who is no member, or no
// more: a lead that answers a person, and one who was removed and whose work is to be stopped.
func (t *Team) outsiders() map[string][]string {
	if t.guests == nil {
		t.guests = map[string][]string{}
		for id, c := range t.Channels.ByID {
			if lead := c.Head.Aside.Agent; lead != "" {
				t.guests[string(lead)] = append(t.guests[string(lead)], string(id))
			}
			for name, s := range c.Participants {
				if s.Gone {
					t.guests[string(name)] = append(t.guests[string(name)], string(id))
				}
			}
		}
	}
	return t.guests
}

// applyTurn makes a change of the floor true.
func (t *Team) applyTurn(ch channel.Change) {
	asked := func() bool { // before the change, and after it
		c := t.Channels.ByID[ch.Channel]
		return c != nil && c.Head.Aside.Agent != ""
	}
	moved := asked() || len(ch.Body.Left) > 0 || slices.ContainsFunc(ch.Body.Participants, func(s channel.Participant) bool { return s.Gone })
	before := t.concerns(ch.Channel)
	if t.Channels.Apply(ch); moved || asked() {
		t.guests = nil
	}
	if t.asks == nil || ch.Channel == "" {
		return
	}
	after := t.concerns(ch.Channel)
	for _, name := range before {
		if !slices.Contains(after, name) {
			t.asksNothing(name, ch.Channel)
		}
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			t.asksOf(name, ch.Channel)
		}
	}
}

// asking lists the channels that can have something for an agent to do now, by name. Of a thousand that
// it is in these are the few in which it has the turn, or answers a person: whatever is looked for over
// all its channels is looked for in them.
func (t *Team) asking(agent channel.AgentID) []channel.ChannelID {
	if t.asks == nil {
		t.asks = map[channel.AgentID][]channel.ChannelID{}
		for id := range t.Channels.ByID {
			for _, name := range t.concerns(id) {
				t.asksOf(name, id)
			}
		}
	}
	return t.asks[agent]
}

func (t *Team) concerns(id channel.ChannelID) []channel.AgentID {
	if c := t.Channels.ByID[id]; c != nil {
		return c.Concerns(nil)
	}
	return nil
}

func (t *Team) asksOf(name channel.AgentID, id channel.ChannelID) {
	if at, found := slices.BinarySearch(t.asks[name], id); !found {
		t.asks[name] = slices.Insert(t.asks[name], at, id)
	}
}

func (t *Team) asksNothing(name channel.AgentID, id channel.ChannelID) {
	if at, found := slices.BinarySearch(t.asks[name], id); found {
		t.asks[name] = slices.Delete(t.asks[name], at, at+1)
	}
}

// ChannelActions is what is to be done in a channel now, for whoever is in it.
func (t *Team) ChannelActions(id string, at time.Time) []channel.Action {
	return t.Channels.Actions(channel.ChannelID(id), t.turnNow(at))
}

func (t *Team) turnNow(at time.Time) channel.Now {
	return channel.Now{At: at, Held: t.Hold.On || t.Stopping}
}

// AgentChannelActions is what is to be told to one agent now, over all its channels: what stops it first,
// then what the lead is to do for the team, in its own session, then what people want of it, then its turns, the one that it was given first before the others.
func (t *Team) AgentChannelActions(agent string, at time.Time) []channel.Action {
	var actions []channel.Action
	if a := t.Agents[agent]; a != nil && a.Session.IsLead() {
		actions = t.leadActions(agent)
	}
	for _, id := range t.asking(channel.AgentID(agent)) {
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

// firstDelivery is the first errand that tells an agent something.
func (t *Team) firstDelivery(agent string, at time.Time) (channel.Action, bool) {
	for _, action := range t.AgentChannelActions(agent, at) {
		if action.Do != channel.StopWork {
			return action, true
		}
	}
	return channel.Action{}, false
}

// Events that come from Next alone.
type (
	talkDue  struct{} // an agent has to be told something, and has no session for it
	talkOver struct{} // its session for channels is to go
)

// nextOfChannels gives what follows for an agent's part in channels.
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
	foreign := a.Settings.Policy.Foreign // it comes for what it is to be told
	if foreign && !a.Session.ServesChannels() {
		return nil
	}
	_, some := t.firstDelivery(a.Name, at)
	some = some && !foreign
	may, _ := t.mayRunSession(a, at)
	switch s := a.Session; {
	case some && may && !s.ServesChannels() && !isIn(a.Queue, ForChannels):
		return talkDue{}
	case s.ServesChannels() && !s.IsLead() && s.Phase == session.Running && s.Ending == "" && !s.AnswerPending() && t.channelSessionIdle(a, some, at):
		return talkOver{}
	}
	return nil
}

// mayServeChannels says whether a claim for channels stands, or why not. While the team is held it keeps
// its place in the line.
func (t *Team) mayServeChannels(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayRunSession(a, at); !ok && !t.Hold.On && !t.Stopping {
		return false, why
	}
	if _, some := t.firstDelivery(a.Name, at); !some {
		return false, channelIdleWords
	}
	return !a.Settings.Policy.Foreign, foreignWords
}

// foreignWords is why nobody starts a session for an agent that runs its own loop.
const foreignWords = "it comes by itself for what it is to be told in a channel"

// deliveryWanted says whether what a session is to be started with is still to be told.
func (t *Team) deliveryWanted(a *Agent, at time.Time) (ok bool, why string) {
	if a.Settings.Policy.Foreign {
		return false, foreignWords
	}
	for _, action := range t.AgentChannelActions(a.Name, at) {
		if action.Key == a.Session.Delivery.Key {
			return true, ""
		}
	}
	return false, "what it was to be told is over"
}

// channelSessionIdle says whether a session that has nothing to answer is to go.
// A hold is no reason: what it said before is worth keeping for what it is told after.
func (t *Team) channelSessionIdle(a *Agent, some bool, at time.Time) bool {
	is := t.Channels.Agents[channel.AgentID(a.Name)]
	if t.Stopping || a.Removed || a.Settings.Policy.Foreign || is.Limit != "" || !is.Online() {
		return true
	}
	rest := t.channelIdleDeadline(a)
	return !some && (len(a.Queue) > 0 || len(t.ChannelsOf(a.Name)) == 0 || !rest.IsZero() && !at.Before(rest))
}

// channelIdleDeadline is when a session for channels has had nothing to answer for too long.
func (t *Team) channelIdleDeadline(a *Agent) time.Time {
	s := a.Session
	if !s.ServesChannels() || s.IsLead() || s.Phase != session.Running || s.Ending != "" || s.Delivery == nil || s.Delivery.Over.IsZero() {
		return time.Time{}
	}
	return s.Delivery.Over.Add(channelIdleMax)
}

// channelTimer does what is due of an agent's part in channels.
func (d *draft) channelTimer(a *Agent) error {
	at, is := d.ev.At, d.team.Channels.Agents[channel.AgentID(a.Name)]
	if limit, over := d.team.sessionDeadline(a); a.Session.ServesChannels() && !over.IsZero() && !at.Before(over) {
		if err := d.endSession(a, ending{EndLimit, "session " + limit.String()}, false); err != nil || is == nil {
			return err
		}
		return d.channels(channel.LimitHit{Agent: channel.AgentID(a.Name), Limit: "session " + limit.String()}) // lifted by Next, since it is of one answer
	}
	if rest := d.team.channelIdleDeadline(a); !rest.IsZero() && !at.Before(rest) {
		return d.endSession(a, ending{reason: EndIdle}, false)
	}
	if is != nil && is.Limit != "" && d.team.channelLimit(a, at) == "" {
		return d.channels(channel.LimitLifted{Agent: channel.AgentID(a.Name)})
	}
	return nil
}

// channelLimit is what keeps an agent from its turns: a limit of the day, or its provider.
func (t *Team) channelLimit(a *Agent, at time.Time) string {
	if a.Waits() {
		return a.Limited.words()
	}
	return t.OverLimit(a, at)
}

// dayDeadline is when a limit of the day is lifted that keeps an agent from its turns.
func (t *Team) dayDeadline(a *Agent, at time.Time) time.Time {
	if !a.Settings.Limits.ofDay() && !t.Limits.ofDay() {
		return time.Time{} // what stood before they were taken away Next lifts at the start
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

// openChannelSession has an agent told what it is to be told, in a session that is opened for that, or stands
// in line for one (J1).
func (d *draft) openChannelSession(a *Agent) error {
	action, some := d.team.firstDelivery(a.Name, d.ev.At)
	switch {
	case !some:
		return nil
	case d.team.slotFree(a) && len(a.Queue) == 0 && !d.turnNow().Held:
		return d.startChannelSession(a, action)
	}
	return d.request(a, Request{For: ForChannels, Kind: control.ChannelTurn, At: d.ev.At})
}

func (d *draft) startChannelSession(a *Agent, action channel.Action) error {
	delivery := DeliveryOf(action)
	return d.openSession(a, Session{Kind: control.ChannelTurn, For: ForChannels, Delivery: &delivery})
}

// channelSessionSeen takes in that the process of a session for channels lives: so it has what it was
// started with.
func (d *draft) channelSessionSeen(a *Agent, s *Session, input int64, adopted bool) error {
	if s.IsLead() {
		if err := d.leadSeen(a, s, adopted); err != nil {
			return err
		}
	}
	if s.Delivery == nil || s.Delivery.Told {
		return nil
	}
	delivery := *s.Delivery
	delivery.Told, delivery.Begun, delivery.Input = true, d.ev.At, input
	d.recordDelivery(a, delivery)
	return d.leadDelivered(delivery)
}

// delivered takes in that a running session has one more thing. What goes into the middle of an
// answer is part of what it answers.
func (d *draft) delivered(a *Agent, what Delivered) error {
	s, err := d.ours(a, session.Told, what.Session)
	if err != nil {
		return err
	}
	if _, err := d.look(a, session.Told); err != nil {
		return err
	}
	if s.Delivery == nil || what.Input <= s.Delivery.Input {
		return nil
	}
	delivery := DeliveryOf(what.Action)
	delivery.Told, delivery.Begun, delivery.Input = true, d.ev.At, what.Input
	if s.Delivery.Over.IsZero() && s.Delivery.Token == delivery.Token && delivery.Re == 0 {
		delivery.Begun = s.Delivery.Begun
	}
	d.recordDelivery(a, delivery)
	return d.leadDelivered(delivery)
}

func (d *draft) recordDelivery(a *Agent, delivery Delivery) {
	rule, err := d.look(a, session.Told)
	if err != nil {
		panic("team: a session that runs can be told something: " + err.Error())
	}
	d.add(a.entity(), "session", rule.ID, string(a.phase()), string(rule.To), string(session.Told), Body{Delivery: &delivery})
	a.setDelivery(delivery)
}

func (a *Agent) setDelivery(delivery Delivery) {
	s := *a.Session
	s.Delivery = &delivery
	a.Session = &s
}

// channelSessionEnded tells the floor how a session for channels ended in the middle of an answer. One that
// was stopped, or asked to go, has not crashed.
func (d *draft) channelSessionEnded(a *Agent, s *Session) error {
	if s.IsLead() {
		if err := d.leadOver(s); err != nil {
			return err
		}
	}
	if !s.AnswerPending() || s.Outcome == control.Withdrawn || IsLeadToken(s.Delivery.Token) {
		return nil
	}
	talk, is := s.Delivery, d.team.Channels.Agents[s.Delivery.Token.Agent]
	if is == nil || !is.Connected {
		return nil
	}
	if s.Outcome == control.RateLimited { // X9; what it was told it is told again, when it may go on
		return d.channels(channel.LimitHit{Agent: talk.Token.Agent, Limit: d.team.channelLimit(a, d.ev.At)})
	}
	if s.Outcome == control.OK || s.Outcome == control.Cancelled || d.stopping(a.Name) {
		if !talk.Told {
			return nil // nobody has told it anything: it is told in the next session
		}
		return d.channels(channel.Said{Token: talk.Token, Re: talk.Re, Ended: true})
	}
	return d.channels(channel.AgentGone{Agent: talk.Token.Agent, How: channel.Crashed, Why: s.ID + ": " + s.Why})
}

// stopping says whether an agent's work in a channel was to be stopped.
func (d *draft) stopping(agent string) bool {
	for _, id := range d.team.ChannelsOf(agent) {
		if s := d.team.Channels.ByID[channel.ChannelID(id)].Participants[channel.AgentID(agent)]; s != nil && s.Stop != 0 {
			return true
		}
	}
	return false
}
