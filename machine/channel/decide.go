package channel

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/machine"
)

// Everything has a limit; whoever meets one is refused and told its number.
const (
	agentsPerChannelMax = 128  // a circle longer than this never comes round
	agentsMax           = 4096 // of one team
	channelsMax         = 4096
	openMax             = 256       // people's messages that nobody has answered, in one channel
	openInterruptsMax   = 16        // and so many interruptions beyond that: they never wait behind messages
	messageBytesMax     = 128 << 10 // what is longer is a file; a change of the journal holds six times as much, which is what JSON may make of it
	aheadMax            = 64        // messages given to an agent in the middle of a turn; more wait for its end
	apartMax            = 16        // messages to all that one agent has not answered; more wait for its turn
	whyBytesMax         = 2000      // a log line is read by people
)

// BeatEvery is how often a foreign agent says that it lives; BeatsMissedMax heartbeats missed
// are a disconnect (SPEC, Turn). Heartbeats are not kept here: whoever hears them counts.
const (
	BeatEvery      = 10 * time.Second
	BeatsMissedMax = 3
)

// Decide says what an input leads to. It changes nothing: apply the changes for that, all of
// them, before the next question. No changes and no error means that it is so already, or that
// a timer has come too late. The error is a *machine.Refusal.
func (cs *Channels) Decide(in Input, now Now) ([]Change, error) {
	now.At = now.At.UTC().Round(0) // as the journal will give it back
	d := &draft{channels: cs, now: now}
	if err := d.decide(in); err != nil {
		return nil, err
	}
	return d.changes, nil
}

// draft collects the changes of one input.
type draft struct {
	channels *Channels
	now      Now
	changes  []Change

	who AgentID // the agent that the changes so far have set, if any
	is  Agent   // and how it is now
	set bool    // it is to go with the next change

	circles map[ChannelID]*channelDraft // those that the input has touched so far
}

func (d *draft) decide(in Input) error {
	switch in := in.(type) {
	case AgentConfigured, AgentConnected, AgentGone, AgentBeatsMissed, DisableAsked, EnableAsked, LimitHit, LimitLifted:
		return d.agent(in)
	case ChannelConfigured:
		return d.configure(in)
	case Released:
		for _, id := range sorted(d.channels.ByID) {
			d.channel(id).advance()
		}
		return nil
	}
	return d.inChannel(in)
}

// inChannel is what happens in one channel.
func (d *draft) inChannel(in Input) error {
	id, event := about(in)
	if d.channels.ByID[id] == nil {
		return refusal("#"+string(id), event, "unknown", "", "there is no such channel; add it to fairlead.yaml")
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
	case PassAsked:
		err = c.pass(in.Token)
	case WaitAskedFor:
		err = c.wait(in)
	case WaitOver:
		err = c.waitOver(in.Token)
	case Told:
		c.told(in)
	case TimerFired:
		err = c.timer(in.About)
	default:
		panic(fmt.Sprintf("turn: no such input: %T", in))
	}
	if err == nil {
		c.advance()
	}
	return err
}

// about gives the channel that an input is about, and the name under which it is refused.
func about(in Input) (id ChannelID, event Event) {
	switch in := in.(type) {
	case AssignAsked:
		return in.Channel, Assigned
	case RemoveAsked:
		return in.Channel, Removed
	case GrantAsked:
		return in.Channel, Granted
	case SkipAsked:
		return in.Channel, Skipped
	case OverrideAsked:
		return in.Channel, SentOn
	case HumanSpoke:
		return in.Channel, Event(Spoken)
	case Said:
		return in.Channel, "said"
	case FinishAsked:
		return in.Channel, in.event()
	case PassAsked:
		return in.Channel, PassedOn
	case WaitAskedFor:
		return in.Channel, WaitAsked
	case WaitOver:
		return in.Channel, WaitResolved
	case Told:
		return in.Channel, "told"
	case TimerFired:
		return in.About.Channel, TimedOut
	default:
		panic(fmt.Sprintf("turn: no such input: %T", in))
	}
}

func refusal(subject string, event Event, state, row, reason string, takes ...string) error {
	return &machine.Refusal{Subject: subject, Event: string(event), State: state, Row: row, Reason: reason, Takes: takes}
}

// channelDraft is one channel on which the changes so far are true.
type channelDraft struct {
	*draft
	id    ChannelID
	base  *Channel
	rules Settings
	head  Head
	seats map[AgentID]*Participant // those that changed
	gone  map[AgentID]bool
	open  []Message
	mine  bool // open is a copy

	next Body      // what goes with the next change
	hand bool      // the next turn is given by a person
	moot []AgentID // seats that the next change holds
}

func (d *draft) channel(id ChannelID) *channelDraft {
	c := d.circles[id]
	if c == nil {
		base := d.channels.ByID[id]
		c = &channelDraft{draft: d, id: id, base: base, rules: base.Settings, head: base.Head, open: base.Open}
		if d.circles == nil {
			d.circles = map[ChannelID]*channelDraft{}
		}
		d.circles[id] = c
	}
	return c
}

// look gives a seat to be read; nil: there is none.
func (c *channelDraft) look(agent AgentID) *Participant {
	if p, ok := c.seats[agent]; ok {
		return p
	}
	if c.gone[agent] {
		return nil
	}
	return c.base.Participants[agent]
}

// participant gives a seat to be written, and has it go with the next change.
func (c *channelDraft) participant(agent AgentID) *Participant {
	p, ok := c.seats[agent]
	if !ok {
		p = &Participant{Agent: agent}
		if was := c.look(agent); was != nil {
			*p = *was
		}
		if c.seats == nil {
			c.seats = map[AgentID]*Participant{}
		}
		c.seats[agent] = p
		delete(c.gone, agent)
	}
	if !slices.Contains(c.moot, agent) {
		c.moot = append(c.moot, agent)
	}
	return p
}

// leave takes a seat away with the next change.
func (c *channelDraft) leave(agent AgentID) {
	delete(c.seats, agent)
	if c.gone == nil {
		c.gone = map[AgentID]bool{}
	}
	c.gone[agent] = true
	c.next.Left = append(c.next.Left, agent)
	c.moot = slices.DeleteFunc(c.moot, func(a AgentID) bool { return a == agent })
}

func (c *channelDraft) isParticipant(agent AgentID) bool {
	p := c.look(agent)
	return p != nil && !p.Gone
}

// agentNow is an agent as the changes so far have it; nil: nobody knows it.
func (d *draft) agentNow(name AgentID) *Agent {
	if d.who == name && name != "" {
		return &d.is
	}
	return d.channels.Agents[name]
}

// setAgent sets an agent as such; it goes with the next change.
func (d *draft) setAgent(name AgentID, a Agent) { d.who, d.is, d.set = name, a, true }

// state is where an agent stands in the channel.
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

// refuse says no on behalf of an agent in the channel.
func (c *channelDraft) refuse(agent AgentID, event Event, row, reason string) error {
	state := c.state(agent)
	return refusal(c.subject(agent), event, string(state), row, reason, machine.Names(Table[state])...)
}

// take takes the table's rule for an event in the agent's state. From names the state where
// it is not to be read off any more: an agent that went offline was something before.
func (c *channelDraft) take(agent AgentID, event Event, why string) error {
	return c.takeFrom(c.state(agent), agent, event, why)
}

func (c *channelDraft) takeFrom(from State, agent AgentID, event Event, why string) error {
	rule, err := Table.Look(c.subject(agent), from, event)
	if err != nil {
		return err
	}
	p := c.participant(agent)
	p.State = rule.To
	if rule.To == Idle || rule.To == Offline {
		p.State = "" // the agent's own
	}
	for _, act := range rule.Do {
		c.act(act, p, event, why)
	}
	c.emit(rule.ID, agent, from, rule.To, event)
	return nil
}

// must is take where the state was looked at.
func (c *channelDraft) must(agent AgentID, event Event) {
	if err := c.take(agent, event, ""); err != nil {
		panic("turn: " + err.Error())
	}
}

// emit makes a change of all that was prepared.
func (c *channelDraft) emit(row string, agent AgentID, from, to State, event Event) {
	head := c.head
	c.next.Head = &head
	for _, name := range c.moot {
		c.next.Participants = append(c.next.Participants, *c.seats[name])
	}
	c.moot = c.moot[:0]
	c.add(Change{Row: row, Channel: c.id, Agent: agent, From: from, To: to, Trigger: event, Body: c.next})
	c.next = Body{}
}

func (d *draft) add(ch Change) {
	ch.At = d.now.At
	if d.set {
		if ch.Agent != d.who {
			panic("turn: what is set of " + string(d.who) + " would go with a change of " + string(ch.Agent))
		}
		is := d.is
		ch.Body.Agent, d.set = &is, false
	}
	d.changes = append(d.changes, ch)
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
		panic("turn: " + err.Error())
	}
	m.State = rule.To
	if edit != nil {
		edit(&m)
	}
	if !c.mine {
		c.open, c.mine = slices.Clone(c.open), true
	}
	c.open = put(c.open, m)
	c.next.Messages = append(c.next.Messages, Progress{Message: m, Row: rule.ID})
}

// handed notes that an agent has a message; turn 0: without a turn.
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

// cut shortens a text that others wrote, at a whole character. What is no UTF-8 is replaced:
// the journal could not hold it, and a replay would differ.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= whyBytesMax {
		return s
	}
	end := whyBytesMax
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
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
