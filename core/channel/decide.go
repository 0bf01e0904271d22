package channel

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Limits. At a limit, the input is refused with the number.
const (
	agentsPerChannelMax = 128  // in a longer rotation the wait for a turn would be too long
	agentsMax           = 4096 // of one team
	channelsMax         = 4096
	openMax             = 256 // unanswered messages of people in one channel
	openInterruptsMax   = 16  // additional interruptions: they never wait behind messages
	// longer text belongs in a file; a change in the journal can be six times as long, because of JSON escaping
	messageBytesMax = 128 << 10
	aheadMax        = 64   // messages that an agent receives during a turn; further ones wait for its end
	apartMax        = 16   // messages to all that one agent has not answered; further ones wait for its turn
	whyBytesMax     = 2000 // people read it in the log
)

// BeatEvery is the interval of a foreign agent's heartbeats; after BeatsMissedMax missed ones it
// counts as disconnected (SPEC, Turn). Heartbeats are not part of this state: the receiver counts
// them.
const (
	BeatEvery      = 10 * time.Second
	BeatsMissedMax = 3
)

// Decide returns the changes that follow from an input. It changes nothing: apply all changes before
// the next call. No changes and no error mean that the input has no effect, for example because a
// timer is late. The error is a *table.Refusal.
func (cs *Channels) Decide(in Input, now Now) ([]change.Change, error) {
	now.At = now.At.UTC().Round(0) // the same value as when it is read from the journal again
	d := &channelsDraft{channels: cs, now: now}
	if err := d.decide(in); err != nil {
		return nil, err
	}
	return d.changes, nil
}

// changesUsual is how many changes an input leads to: a hand-off ends a turn and begins the next.
const changesUsual = 2

// channelsDraft collects the changes of one input.
type channelsDraft struct {
	channels *Channels
	now      Now
	changes  []change.Change

	who AgentID // the agent whose own state changes; empty: none
	is  Agent   // its new state
	set bool    // is has to go into the next change

	drafts []*channelDraft // channels that the input has affected so far, usually one
}

func (d *channelsDraft) decide(in Input) error {
	switch in := in.(type) {
	case AgentConfigured:
		return d.configureAgent(in)
	case AgentConnected:
		return d.connect(in.Agent)
	case AgentGone:
		if in.How != Disconnected && in.How != Crashed {
			panic("channel: unknown cause of a disconnection: " + string(in.How))
		}
		return d.disconnect(in.Agent, in.How, in.Why)
	case AgentBeatsMissed:
		if d.now.At.Before(in.Last.Add(BeatsMissedMax * BeatEvery)) {
			return nil
		}
		return d.disconnect(in.Agent, BeatsMissed,
			fmt.Sprintf("%d heartbeats missed, the last one at %s", BeatsMissedMax, in.Last.UTC().Format("15:04:05")))
	case DisableAsked:
		return d.disconnect(in.Agent, Disabled, "")
	case EnableAsked:
		return d.enable(in.Agent)
	case LimitHit:
		return d.limit(in.Agent, in.Limit)
	case LimitLifted:
		return d.limit(in.Agent, "")
	case ChannelConfigured:
		return d.configure(in)
	case Released:
		for _, id := range sorted(d.channels.ByID) {
			d.channel(id).advance()
		}
		return nil
	default:
		return d.inChannel(in)
	}
}

// inChannel decides an input about one channel.
func (d *channelsDraft) inChannel(in Input) error {
	subject := in.Subject()
	id := ChannelID(subject.Entity)
	if d.channels.ByID[id] == nil {
		return refusal("#"+string(id), subject.Event, "unknown", "", "there is no such channel; add it to fairlead.yaml")
	}
	c := d.channel(id)
	var err error
	switch in := in.(type) {
	case AssignAsked:
		err = c.assign(in.Agent)
	case RemoveAsked:
		err = c.remove(in.Agent)
	case GrantAsked:
		err = c.grant(in)
	case SkipAsked:
		err = c.skip(in)
	case OverrideAsked:
		err = c.override(in)
	case HumanSpoke:
		err = c.spoke(in)
	case Said:
		err = c.said(in)
	case FinishAsked:
		err = c.endsLater(in)
	case Worked:
		c.worked(in.Token)
	case PassAsked:
		err = c.pass(in.Token)
	case WaitAskedFor:
		err = c.wait(in)
	case WaitOver:
		err = c.waitOver(in.Token)
	case ActionConfirmed:
		c.confirm(in)
	case ActionForgotten:
		c.forget(in)
	case TimerFired:
		if !c.hasPassed(in.About) {
			return nil
		}
		err = c.timer(in.About)
	default:
		panic(fmt.Sprintf("channel: unknown input: %T", in))
	}
	if err == nil {
		c.advance()
	}
	return err
}

func refusal(subject string, event Event, state, row, reason string, takes ...string) error {
	return &table.Refusal{Subject: subject, Event: string(event), State: state, Row: row, Reason: reason, Takes: takes}
}

// channelDraft is one channel with the changes so far applied.
type channelDraft struct {
	*channelsDraft
	id           ChannelID
	base         *Channel
	rules        Settings
	head         Head
	participants participantList // those that changed
	gone         map[AgentID]bool
	open         []Message
	copied       bool // open is a copy, which may be changed

	next    Body      // content of the next change
	byHand  bool      // a person grants the next turn
	changed []AgentID // participants in the next change
}

func (d *channelsDraft) channel(id ChannelID) *channelDraft {
	if i := slices.IndexFunc(d.drafts, func(c *channelDraft) bool { return c.id == id }); i >= 0 {
		return d.drafts[i]
	}
	base := d.channels.ByID[id]
	c := &channelDraft{channelsDraft: d, id: id, base: base, rules: base.Settings, head: base.Head, open: base.Open}
	d.drafts = append(d.drafts, c)
	return c
}

// participantList are the participants that changed: few, so a list is faster than a map.
type participantList []*Participant

// of returns that of an agent; nil: it did not change.
func (s participantList) of(agent AgentID) *Participant {
	if i := slices.IndexFunc(s, func(p *Participant) bool { return p.Agent == agent }); i >= 0 {
		return s[i]
	}
	return nil
}

// look returns a participant for reading; nil: none.
func (c *channelDraft) look(agent AgentID) *Participant {
	if p := c.participants.of(agent); p != nil {
		return p
	}
	if c.gone[agent] {
		return nil
	}
	return c.base.Participants[agent]
}

// participant returns a participant for writing and adds it to the next change.
func (c *channelDraft) participant(agent AgentID) *Participant {
	p := c.participants.of(agent)
	if p == nil {
		p = &Participant{Agent: agent}
		if was := c.look(agent); was != nil {
			*p = *was
		}
		c.participants = append(c.participants, p)
		delete(c.gone, agent)
	}
	if !slices.Contains(c.changed, agent) {
		c.changed = append(c.changed, agent)
	}
	return p
}

// leave removes a participant with the next change.
func (c *channelDraft) leave(agent AgentID) {
	c.participants = slices.DeleteFunc(c.participants, func(p *Participant) bool { return p.Agent == agent })
	if c.gone == nil {
		c.gone = map[AgentID]bool{}
	}
	c.gone[agent] = true
	c.next.Left = append(c.next.Left, agent)
	c.changed = slices.DeleteFunc(c.changed, func(a AgentID) bool { return a == agent })
}

func (c *channelDraft) isParticipant(agent AgentID) bool {
	p := c.look(agent)
	return p != nil && !p.Gone
}

// agentNow returns an agent with the changes so far applied; nil: unknown.
func (d *channelsDraft) agentNow(name AgentID) *Agent {
	if d.who == name && name != "" {
		return &d.is
	}
	return d.channels.Agents[name]
}

// setAgent replaces an agent's own state with the next change.
func (d *channelsDraft) setAgent(name AgentID, a Agent) { d.who, d.is, d.set = name, a, true }

// state returns an agent's state in the channel.
func (c *channelDraft) state(agent AgentID) State {
	if p := c.look(agent); p != nil && p.State != "" {
		return p.State
	}
	if c.agentNow(agent).Online() {
		return Idle
	}
	return Offline
}

func (c *channelDraft) subject(agent AgentID) string { return string(agent) + " in #" + string(c.id) }

// refuse returns a refusal for an agent in the channel.
func (c *channelDraft) refuse(agent AgentID, event Event, row, reason string) error {
	state := c.state(agent)
	return refusal(c.subject(agent), event, string(state), row, reason, table.Names(Table[state])...)
}

// take applies the table's rule for an event in the agent's state.
func (c *channelDraft) take(agent AgentID, event Event, why string) error {
	return c.takeFrom(c.state(agent), agent, event, why)
}

// takeFrom is take for an agent whose previous state can no longer be derived, because the agent went offline.
func (c *channelDraft) takeFrom(from State, agent AgentID, event Event, why string) error {
	rule, err := Table.Look(c.subject(agent), from, event)
	if err != nil {
		return err
	}
	p := c.participant(agent)
	p.State = rule.To
	if rule.To == Idle || rule.To == Offline {
		p.State = "" // the agent's own state
	}
	for _, act := range rule.Do {
		c.act(act, p, event, why)
	}
	c.emit(rule.ID, agent, from, rule.To, event)
	return nil
}

// must is like take, for states that were checked before.
func (c *channelDraft) must(agent AgentID, event Event) {
	if err := c.take(agent, event, ""); err != nil {
		panic("channel: " + err.Error())
	}
}

// emit creates a change from everything prepared so far.
func (c *channelDraft) emit(row string, agent AgentID, from, to State, event Event) {
	head := c.head
	c.next.Head = &head
	if len(c.changed) > 0 {
		c.next.Participants = make([]Participant, 0, len(c.changed))
	}
	for _, name := range c.changed {
		c.next.Participants = append(c.next.Participants, *c.participants.of(name))
	}
	c.changed = c.changed[:0]
	c.add(row, c.id, agent, from, to, event, c.next)
	c.next = Body{}
}

// add adds a change of a channel or, if it is empty, of an agent in general.
func (d *channelsDraft) add(row string, channel ChannelID, agent AgentID, from, to State, event Event, body Body) {
	if d.set {
		if agent != d.who {
			panic("channel: the new value of " + string(d.who) + " would be stored with a change of " + string(agent))
		}
		is := d.is
		body.Agent, d.set = &is, false
	}
	if d.changes == nil {
		d.changes = make([]change.Change, 0, changesUsual)
	}
	entity := agentPrefix + string(agent)
	if channel != "" {
		entity = EntityPrefix + string(channel)
	}
	d.changes = append(d.changes, change.Change{
		Machine: "turn", Entity: entity, Row: row, From: string(from), To: string(to), Trigger: string(event), At: d.now.At,
		Body: &Set{Agent: agent, Body: body},
	})
}

// progress moves a person's message by the table, with the next change.
func (c *channelDraft) progress(n uint64, event MessageEvent, edit func(*Message)) {
	i, ok := find(c.open, n)
	m := Message{N: n, State: Unsaid}
	if ok {
		m = c.open[i]
	}
	rule, err := MessageTable.Look(fmt.Sprintf("message %d in #%s", n, c.id), m.State, event)
	if err != nil {
		panic("channel: " + err.Error())
	}
	m.State = rule.To
	if edit != nil {
		edit(&m)
	}
	if !c.copied {
		c.open, c.copied = slices.Clone(c.open), true
	}
	c.open = put(c.open, m)
	c.next.Messages = append(c.next.Messages, Progress{Message: m, Row: rule.ID})
}

// handed records that an agent has received a message; turn 0: without a turn.
func (c *channelDraft) handed(n, turn uint64) {
	i, ok := find(c.open, n)
	switch {
	case !ok, c.open[i].State == Answered:
	case c.open[i].State == Kept:
		c.progress(n, Handed, func(m *Message) { m.Turn = turn })
	default:
		c.progress(n, HandedOn, nil)
	}
}

func sorted[K ~string, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// cut limits a text from an agent or a person to the size that the journal keeps.
func cut(s string) string { return clip.Text(s, whyBytesMax) }
