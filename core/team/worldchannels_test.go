package team

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/session"
)

// The channels of the world: people who post and intervene, agents that answer in their sessions,
// and foreign agents that come and go.

// inChannels assigns all configured agents to two channels.
func inChannels(conf *Configured) {
	conf.Turns = map[string]channel.AgentSettings{}
	for name := range conf.Agents {
		conf.Turns[name] = channel.AgentSettings{NoInputMidAnswer: name == "bob"}
	}
	settings := channel.DefaultSettings()
	settings.DefaultTimeout, settings.WaitTimeout = 20*time.Second, 30*time.Second
	led := settings
	led.Lead, led.Mode, led.RoundsMax = "bob", channel.Interrupt, 2
	configured := func(names ...string) []string {
		return slices.DeleteFunc(names, func(name string) bool { _, ok := conf.Agents[name]; return !ok })
	}
	conf.Channels = map[string]Channel{
		"reviews": {Settings: settings, Agents: configured("ada", "bob", "cleo")},
		"ops":     {Settings: led, Agents: configured("ada", "dora")},
	}
}

// messageRecord records independently what was said.
type messageRecord struct {
	texts   map[string][]string                        // channel → texts of its messages; message 1 is the first
	people  map[string]map[uint64]channel.MessageState // channel → number → state of a person's message
	inputOf map[string]string                          // action → session whose input has it
}

func newWords() *messageRecord {
	return &messageRecord{texts: map[string][]string{}, people: map[string]map[uint64]channel.MessageState{}, inputOf: map[string]string{}}
}

// judge checks a change of a channel: each message has its own number, and its text.
func (b *messageRecord) judge(w *world, ch change.Change, ev Event) {
	channelName, is := strings.CutPrefix(ch.Entity, channel.EntityPrefix)
	set := change.As[channel.Set](ch.Body)
	if !is {
		return
	}
	if post := set.Body.Post; post != nil {
		if b.texts[channelName] = append(b.texts[channelName], set.Text); post.N != uint64(len(b.texts[channelName])) ||
			set.Text != ev.Text || len(set.Text) != post.Bytes {
			w.t.Fatalf("in #%s %q is number %d of %d bytes, the %d. that was said", channelName, set.Text, post.N, post.Bytes,
				len(b.texts[channelName]))
		}
	}
	for _, m := range set.Body.Messages {
		if b.people[channelName] == nil {
			b.people[channelName] = map[uint64]channel.MessageState{}
		}
		was, known := b.people[channelName][m.N]
		if known == (m.Row == "M1") || known && was == channel.Answered && m.State != channel.Answered || was == channel.Lapsed {
			w.t.Fatalf("message %d in #%s was %q, and is %q by %s", m.N, channelName, was, m.State, m.Row)
		}
		b.people[channelName][m.N] = m.State
	}
}

// check checks the invariants after every event: at most one agent has the turn, and no message is
// lost.
func (b *messageRecord) check(w *world) {
	for _, channelName := range w.team.ChannelIDs() {
		c := w.team.Channels.ByID[channel.ChannelID(channelName)]
		var hold []string
		for name := range w.team.Channels.Agents {
			if s := w.team.Channels.StateOf(name, channel.ChannelID(channelName)); s == channel.Active || s == channel.Waiting {
				hold = append(hold, string(name))
			}
		}
		if len(hold) > 1 || len(hold) == 1 && hold[0] != string(c.Head.Holder) {
			w.t.Fatalf("in #%s %v have the turn, but the head names %q", channelName, hold, c.Head.Holder)
		}
		b.holderWorks(w, channelName, hold)
		for n, state := range b.people[channelName] {
			if is, open := c.MessageState(n); state != channel.Answered && state != channel.Lapsed && (!open || is != state) {
				w.t.Fatalf("message %d in #%s is %s, but the channel says %q", n, channelName, state, is)
			}
		}
	}
	for _, name := range w.team.Names() {
		a := w.team.Agents[name]
		if s := a.Session; s.ServesChannels() &&
			(s.Delivery == nil || s.Kind != map[Purpose]control.Kind{ForChannels: control.ChannelTurn, ForLead: control.Lead}[s.For] ||
				a.Settings.Policy.Foreign && !s.AnswerPending() && s.Ending == "" && !w.starting) {
			w.t.Fatalf("%s has a session for channels: %+v, %+v", name, s, s.Delivery)
		}
	}
}

// holderWorks checks an agent that is ACTIVE: its session has the turn, or an action is pending, or
// the prompt was delivered and a timer ends the turn. Foreign agents have no session here.
func (b *messageRecord) holderWorks(w *world, channelName string, hold []string) {
	for _, name := range hold {
		a := w.team.Agents[name]
		if w.team.Channels.StateOf(channel.AgentID(name), channel.ChannelID(channelName)) != channel.Active || a == nil ||
			a.Settings.Policy.Foreign {
			continue
		}
		if s := a.Session; s.ServesChannels() && s.Delivery.Token.Channel == channel.ChannelID(channelName) {
			continue
		}
		if head := w.team.Channels.ByID[channel.ChannelID(channelName)].Head; (head.Lease.Delivered || head.Aside.Delivered) &&
			!head.Lease.Ends.IsZero() {
			continue // its answer ended without TURN_COMPLETE, so its turn ends by the timeout (seed 003, edge case 4)
		}
		if len(w.team.AgentChannelActions(name, w.at)) == 0 {
			w.t.Fatalf("in #%s %s is active with the session %+v, without a time limit and without a pending action", channelName, name,
				a.Session)
		}
	}
}

// delivered records that an action reached a session's input. It must be the only one, unless the
// earlier session has ended.
func (b *messageRecord) delivered(w *world, key, session string) {
	if before, some := b.inputOf[key]; some && (before == session || w.procs[before].alive) {
		w.t.Fatalf("%s was delivered to %s, and to %s before", key, session, before)
	}
	b.inputOf[key] = session
}

// channelActions begins the pending actions of channels that have not begun.
func (w *world) channelActions() {
	w.leavesOutNothing()
	for _, name := range w.team.Names() {
		is := w.team.Channels.Agents[channel.AgentID(name)]
		_, configured := w.conf.Agents[name]
		if is == nil || w.team.Agents[name].Settings.Policy.Foreign {
			continue
		}
		if !is.Connected && configured {
			w.once("probe "+name, func() { w.say("", channel.AgentConnected{Agent: channel.AgentID(name)}) })
		}
		if p := w.unacknowledged(name); p != nil {
			w.once("acknowledge "+p.label, func() { w.acknowledge(name) })
			continue
		}
		for _, action := range w.team.AgentChannelActions(name, w.at) {
			switch {
			case action.Do == channel.StopWork:
				w.once(action.Key, func() { w.stopWork(name, action) })
			case w.takes(name, action):
				w.once(action.Key, func() { w.write(name, action) })
			}
		}
	}
}

// leavesOutNothing checks that every action that a channel requires of an agent is among the
// agent's actions.
func (w *world) leavesOutNothing() {
	asked := map[string][]string{}
	for _, id := range w.team.ChannelIDs() {
		for _, action := range w.team.ChannelActions(id, w.at) {
			asked[string(action.Token.Agent)] = append(asked[string(action.Token.Agent)], action.Key)
		}
	}
	for name := range w.team.Channels.Agents {
		var begun []string
		for _, action := range w.team.AgentChannelActions(string(name), w.at) {
			if action.Token.Channel != "" {
				begun = append(begun, action.Key)
			}
		}
		want := asked[string(name)]
		slices.Sort(begun)
		slices.Sort(want)
		if !slices.Equal(begun, want) {
			w.t.Fatalf("the actions of %s are %q, but its channels require %q", name, begun, want)
		}
	}
}

// once adds a job unless it is in progress. It may be added again after it was done.
func (w *world) once(key string, do func()) {
	if w.doing[" "+key] {
		return
	}
	w.doing[" "+key] = true
	w.later(key, func() {
		delete(w.doing, " "+key)
		do()
	})
}

// takes reports whether a session can receive an action now.
func (w *world) takes(name string, action channel.Action) bool {
	s := w.team.Agents[name].Session
	if !s.ServesChannels() || s.Phase != session.Running || s.Ending != "" || s.Stop != nil || w.conf.Turns[name].NoInputMidAnswer {
		return false
	}
	return !s.AnswerPending() || action.Do == channel.TellMessage && action.Token.Turn != 0 && s.Delivery.Token == action.Token
}

// write puts an action into a session's input, unless that was done before a crash.
func (w *world) write(name string, action channel.Action) {
	if !w.takes(name, action) ||
		!slices.ContainsFunc(w.team.AgentChannelActions(name, w.at), func(t channel.Action) bool { return t.Key == action.Key }) {
		return
	}
	s := w.team.Agents[name].Session
	p := w.procs[s.ID]
	if p == nil || !p.alive || w.unacknowledged(name) != nil {
		return
	}
	p.input += 100
	p.label = action.Key
	w.words.delivered(w, action.Key, s.ID)
	w.actions()
}

// unacknowledged returns the process whose input has something that the team does not know: it was
// written just now, or before a crash.
func (w *world) unacknowledged(name string) *proc {
	s := w.team.Agents[name].Session
	if !s.ServesChannels() || s.Phase != session.Running {
		return nil
	}
	if p := w.procs[s.ID]; p != nil && p.label != "" && p.label != s.Delivery.Key {
		return p
	}
	return nil
}

func (w *world) acknowledge(name string) {
	p := w.unacknowledged(name)
	if p == nil {
		return
	}
	errand, _ := ActionOf(p.label)
	for _, action := range w.team.AgentChannelActions(name, w.at) {
		if action.Key == p.label {
			errand = action
		}
	}
	w.say(name, Delivered{Session: w.team.Agents[name].Session.ID, Action: errand, Input: p.input})
}

// stopWork stops an agent's answer: in its session, or by ending it.
func (w *world) stopWork(name string, action channel.Action) {
	s := w.team.Agents[name].Session
	acknowledge := func() { w.say("", channel.ActionConfirmed{Token: action.Token, Do: action.Do, N: action.N}) }
	if !s.AnswerPending() || s.Delivery.Token.Channel != action.Token.Channel || s.Phase != session.Running {
		acknowledge()
		return
	}
	p := w.procs[s.ID]
	if p.alive && w.rnd.IntN(2) == 0 && !w.conf.Turns[name].NoInputMidAnswer {
		p.offset += 10
		w.say(name, SessionReported{Session: s.ID, Offset: p.offset, Over: true})
		acknowledge()
		return
	}
	if p.alive {
		w.ends(s.ID, control.Failed)
	}
	var wait func()
	wait = func() {
		if now := w.team.Agents[name].Session; now != nil && now.ID == s.ID {
			w.later("stopping "+s.ID, wait)
			return
		}
		acknowledge()
	}
	wait()
}

// channelHappens applies one random event of a channel.
func (w *world) channelHappens(how uint64) {
	channelName := channel.ChannelID(from([]string{"reviews", "reviews", "ops"}, how))
	name := channel.AgentID(from(everybody, how>>4))
	now := how>>8%2 == 0
	switch how >> 16 % 24 {
	case 0, 1, 2, 3:
		text := fmt.Sprint("question ", how%1000)
		w.tells(channel.HumanSpoke{
			Channel: channelName, By: "julian",
			Mode:  from([]channel.Mode{"", channel.ByQueue, channel.Inject, channel.Interrupt, channel.Parallel}, how>>24),
			Bytes: len(text),
		}, text)
	case 4:
		w.say("", channel.GrantAsked{Channel: channelName, Agent: name, Now: now})
	case 5:
		if !now {
			break
		}
		w.say("", channel.SkipAsked{Channel: channelName})
	case 6:
		w.say("", channel.OverrideAsked{Channel: channelName, GoOn: now})
	case 7:
		w.say("", channel.AssignAsked{Channel: channelName, Agent: name})
	case 8:
		if now {
			w.say("", channel.RemoveAsked{Channel: channelName, Agent: name})
		}
	case 9:
		if now {
			w.say("", channel.DisableAsked{Agent: name})
		}
	case 10, 11:
		w.say("", channel.EnableAsked{Agent: name})
	case 12, 13:
		w.channelTimer(string(channelName), now)
	case 14, 15:
		w.foreignTurn(from([]string{"cleo", "dora"}, how>>24), how>>32)
	default:
		for range how >> 40 % 12 { // pending messages are delivered, so that an agent can speak
			w.work()
		}
		w.agentSpeaks(how >> 24)
	}
}

func (w *world) tells(in channel.Input, text string) { _ = w.event(Event{What: in, Text: text}) }

// channelTimer advances the clock to a channel's deadline, or fires one that is not due.
func (w *world) channelTimer(id string, due bool) {
	about := w.team.Channels.Deadline(channel.ChannelID(id))
	if about.At.IsZero() {
		return
	}
	if due && about.At.After(w.at) {
		w.at = about.At
	}
	lines := len(w.journal)
	w.say("", channel.TimerFired{About: about})
	if about.At.After(w.at) && len(w.journal) != lines {
		w.t.Fatalf("a timer of #%s that is not due had an effect", id)
	}
	if next := w.team.Channels.Deadline(channel.ChannelID(id)); next == about && !about.At.After(w.at) {
		w.t.Fatalf("#%s: the deadline %+v in the past does not end", id, about)
	}
}

// agentSpeaks makes an agent say something in its session in answer to its last prompt.
func (w *world) agentSpeaks(how uint64) {
	var ids []string
	for _, id := range w.alive() {
		if s := w.sessionOf(w.procs[id]); (w.procs[id].what == ForChannels || w.procs[id].what == ForLead) && s != nil && s.ID == id &&
			s.Phase == session.Running && s.Delivery.Confirmed {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	p := w.procs[from(ids, how)]
	s := w.sessionOf(p)
	text, token := fmt.Sprint("answer ", how%1000), s.Delivery.Token
	if IsLeadToken(token) {
		w.leadSpeaks(p, s, how>>16)
		return
	}
	if p.agent == w.team.Crew.Lead.Agent && how>>40%4 == 0 && (w.team.Crew.Lead.Session == "" || w.team.Crew.Lead.Session == s.ID) {
		w.lists(s.ID, how>>44) // its markers count here, too
	}
	over := false
	switch how >> 16 % 10 {
	case 0:
		w.say("", channel.WaitAskedFor{Token: token, Why: "a build"})
	case 1:
		w.say("", channel.WaitOver{Token: token})
	case 2:
		w.say("", channel.PassAsked{Token: token})
		over = true
	case 3:
		w.tells(channel.Said{Token: token, Re: s.Delivery.Re, Ended: true}, "")
		over = true
	case 4, 5:
		w.tells(channel.Said{Token: token, Re: s.Delivery.Re, Bytes: len(text)}, text)
	default:
		w.tells(channel.Said{Token: token, Re: s.Delivery.Re, Bytes: len(text), Complete: true, Ended: true}, text)
		over = true
	}
	if p.offset += 10; w.sessionOf(p) != nil {
		w.say(p.agent, SessionReported{Session: s.ID, Offset: p.offset, Over: over})
	}
}

// foreignTurn makes an agent without a session answer.
func (w *world) foreignTurn(name string, how uint64) {
	a := w.team.Agents[name]
	if is := w.team.Channels.Agents[channel.AgentID(name)]; is == nil || !a.Settings.Policy.Foreign {
		return
	}
	switch how % 8 {
	case 0:
		w.say("", channel.AgentGone{
			Agent: channel.AgentID(name), How: from([]channel.Event{channel.Disconnected, channel.Crashed}, how>>8),
			Why: "it left",
		})
	case 1:
		w.say("", channel.AgentConnected{Agent: channel.AgentID(name)})
	default:
		for _, action := range w.team.AgentChannelActions(name, w.at) {
			w.say("", channel.ActionConfirmed{Token: action.Token, Do: action.Do, N: action.N})
			if delivery := DeliveryOf(action); how>>8%2 == 0 {
				w.tells(channel.Said{Token: action.Token, Re: delivery.Re, Bytes: 3, Complete: true, Ended: true}, "yes")
			}
		}
	}
}

// sameChannels compares the pending actions of channels with those of the replayed team.
func (w *world) sameChannels(live, again *Team) {
	for _, name := range live.Names() {
		a, b := live.AgentChannelActions(name, w.at), again.AgentChannelActions(name, w.at)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			w.t.Fatalf("%s has other actions in the replayed team:\n%v\n%v", name, a, b)
		}
	}
	for _, id := range live.ChannelIDs() {
		if a, b := live.Channels.Deadline(channel.ChannelID(id)), again.Channels.Deadline(channel.ChannelID(id)); a != b {
			w.t.Fatalf("#%s has the deadline %+v, replayed %+v", id, a, b)
		}
	}
}

// settleChannels connects all agents, and lets every turn end.
func (w *world) settleChannels() {
	for _, name := range slices.Sorted(maps.Keys(w.team.Channels.Agents)) {
		w.say("", channel.EnableAsked{Agent: name})
	}
	for _, id := range w.team.ChannelIDs() {
		w.channelTimer(id, true)
	}
}

// channelsSettled returns what is not as expected although nothing prevents it.
func (w *world) channelsSettled() string {
	for _, id := range w.team.ChannelIDs() {
		c := w.team.Channels.ByID[channel.ChannelID(id)]
		if c.Head.Holder != "" || c.Head.Aside.Message != 0 {
			return fmt.Sprintf("#%s has an open turn: %+v", id, c.Head)
		}
	}
	for _, name := range w.team.Names() {
		if s := w.team.Agents[name].Session; s.ServesChannels() && s.Ending == "" {
			return fmt.Sprintf("%s has %+v", name, s)
		}
	}
	return ""
}
