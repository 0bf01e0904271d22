package team

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
)

// talkOverWords is why such a session is asked to go.
const talkOverWords = "nobody has anything to tell it in a channel"

// talkRest is how long such a session stays when nobody has anything to tell it: a conversation
// goes on within minutes, and a process that nobody talks to is one too many.
const talkRest = 5 * time.Minute

// Talk is what a session for channels was told last. One thing at a time: what it says until its
// answer is over, it says to that.
type Talk struct {
	Key   string         `json:"key"` // of the errand
	Do    channel.Errand `json:"do"`
	Token channel.Token  `json:"token"`
	N     uint64         `json:"n,omitempty"`
	Re    uint64         `json:"re,omitempty"`    // the message that it answers without a turn
	Input int64          `json:"input,omitempty"` // bytes of input up to and with it
	Told  bool           `json:"told,omitempty"`  // false: the session is being started with it
	Begun time.Time      `json:"begun,omitzero"`
	Over  time.Time      `json:"over,omitzero"` // its answer is over since
}

// TalkOf is an errand as a session keeps it.
func TalkOf(todo channel.Todo) Talk {
	talk := Talk{Key: todo.Key, Do: todo.Do, Token: todo.Token, N: todo.N}
	if todo.Do == channel.TellAside || todo.Do == channel.TellMessage && todo.Token.Turn == 0 {
		talk.Re = todo.N
	}
	return talk
}

// ErrandOf gives an errand back by its key, for one that is in a session's input and is not
// asked for any more: what is said to it comes too late, and is known to.
func ErrandOf(key string) (channel.Todo, bool) {
	part := strings.Split(key, "/")
	if len(part) != 4 {
		return channel.Todo{}, false
	}
	n, err := strconv.ParseUint(part[3], 10, 64)
	if err != nil {
		return channel.Todo{}, false
	}
	todo := channel.Todo{Key: key, Do: channel.Errand(part[0]), N: n, Token: channel.Token{Channel: channel.ChannelID(part[1]), Agent: channel.AgentID(part[2])}}
	if todo.Do == channel.TellTurn {
		todo.Token.Turn = n
	}
	return todo, true
}

// Talks says whether the session takes part in channels: one of the lead does, beside what it is
// there for.
func (s *Session) Talks() bool { return s != nil && (s.For == ForChannels || s.For == ForLead) }

// Answers says whether the session has not answered yet what it was told.
func (s *Session) Answers() bool { return s.Talks() && s.Talk != nil && s.Talk.Over.IsZero() }

// Circle lists the channels that an agent has to do with: where it is a member, and where it
// leads. By name.
func (t *Team) Circle(agent string) []string {
	var ids []string
	if a := t.Floor.Agents[channel.AgentID(agent)]; a != nil {
		for _, id := range a.Channels {
			ids = append(ids, string(id))
		}
	}
	for _, id := range t.outside()[agent] {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// outside finds the channels in which somebody has something to do who is no member, or no
// more: a lead that answers a person, and one who was removed and whose work is to be stopped.
func (t *Team) outside() map[string][]string {
	if t.guests == nil {
		t.guests = map[string][]string{}
		for id, c := range t.Floor.Channels {
			if lead := c.Head.Aside.Agent; lead != "" {
				t.guests[string(lead)] = append(t.guests[string(lead)], string(id))
			}
			for name, s := range c.Seats {
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
		c := t.Floor.Channels[ch.Channel]
		return c != nil && c.Head.Aside.Agent != ""
	}
	moved := asked() || len(ch.Body.Left) > 0 || slices.ContainsFunc(ch.Body.Seats, func(s channel.Seat) bool { return s.Gone })
	before := t.concerns(ch.Channel)
	if t.Floor.Apply(ch); moved || asked() {
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
		for id := range t.Floor.Channels {
			for _, name := range t.concerns(id) {
				t.asksOf(name, id)
			}
		}
	}
	return t.asks[agent]
}

func (t *Team) concerns(id channel.ChannelID) []channel.AgentID {
	if c := t.Floor.Channels[id]; c != nil {
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

// ChannelTodo is what is to be done in a channel now, for whoever is in it.
func (t *Team) ChannelTodo(id string, at time.Time) []channel.Todo {
	return t.Floor.Todo(channel.ChannelID(id), t.turnNow(at))
}

func (t *Team) turnNow(at time.Time) channel.Now {
	return channel.Now{At: at, Held: t.Hold.On || t.Stopping}
}

// TalkTodo is what is to be told to one agent now, over all its channels: what stops it first,
// then what the lead is to do for the team, in its own session, then what people want of it, then its turns, the one that it was given first before the others.
func (t *Team) TalkTodo(agent string, at time.Time) []channel.Todo {
	var todo []channel.Todo
	if a := t.Agents[agent]; a != nil && a.Session.Leads() {
		todo = t.leadTodo(agent)
	}
	for _, id := range t.asking(channel.AgentID(agent)) {
		todo = append(todo, t.Floor.TodoOf(id, channel.AgentID(agent), t.turnNow(at))...)
	}
	slices.SortStableFunc(todo, func(a, b channel.Todo) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), t.givenAt(a).Compare(t.givenAt(b)))
	})
	return todo
}

func urgency(todo channel.Todo) int {
	switch todo.Do {
	case channel.StopWork:
		return 0
	case channel.TellTurn:
		return 2
	default:
		return 1
	}
}

func (t *Team) givenAt(todo channel.Todo) time.Time {
	if todo.Do != channel.TellTurn {
		return time.Time{}
	}
	return t.Floor.Channels[todo.Token.Channel].Head.Lease.Since
}

// toTell is the first errand that tells an agent something.
func (t *Team) toTell(agent string, at time.Time) (channel.Todo, bool) {
	for _, todo := range t.TalkTodo(agent, at) {
		if todo.Do != channel.StopWork {
			return todo, true
		}
	}
	return channel.Todo{}, false
}

// Events that come from Next alone.
type (
	talkDue  struct{} // an agent has to be told something, and has no session for it
	talkOver struct{} // its session for channels is to go
)

// nextOfTalk gives what follows for an agent's part in channels.
func (t *Team) nextOfTalk(a *Agent, at time.Time) any {
	is := t.Floor.Agents[channel.AgentID(a.Name)]
	if is == nil {
		return nil
	}
	switch limit := t.talkLimit(a, at); {
	case limit != "" && is.Limit == "":
		return channel.LimitHit{Agent: channel.AgentID(a.Name), Limit: limit}
	case limit == "" && is.Limit != "":
		return channel.LimitLifted{Agent: channel.AgentID(a.Name)}
	}
	foreign := a.Settings.Policy.Foreign // it comes for what it is to be told
	if foreign && !a.Session.Talks() {
		return nil
	}
	_, some := t.toTell(a.Name, at)
	some = some && !foreign
	may, _ := t.mayWork(a, at)
	switch s := a.Session; {
	case some && may && !s.Talks() && !isIn(a.Line, ForChannels):
		return talkDue{}
	case s.Talks() && !s.Leads() && s.Phase == Running && s.Ending == "" && !s.Answers() && t.goes(a, some, at):
		return talkOver{}
	}
	return nil
}

// mayTalk says whether a claim for channels stands, or why not. While the team is held it keeps
// its place in the line.
func (t *Team) mayTalk(a *Agent, at time.Time) (ok bool, why string) {
	if ok, why = t.mayWork(a, at); !ok && !t.Hold.On && !t.Stopping {
		return false, why
	}
	if _, some := t.toTell(a.Name, at); !some {
		return false, talkOverWords
	}
	return !a.Settings.Policy.Foreign, foreignWords
}

// foreignWords is why nobody starts a session for an agent that runs its own loop.
const foreignWords = "it comes by itself for what it is to be told in a channel"

// stillToTell says whether what a session is to be started with is still to be told.
func (t *Team) stillToTell(a *Agent, at time.Time) (ok bool, why string) {
	if a.Settings.Policy.Foreign {
		return false, foreignWords
	}
	for _, todo := range t.TalkTodo(a.Name, at) {
		if todo.Key == a.Session.Talk.Key {
			return true, ""
		}
	}
	return false, "what it was to be told is over"
}

// goes says whether a session that has nothing to answer is to go.
// A hold is no reason: what it said before is worth keeping for what it is told after.
func (t *Team) goes(a *Agent, some bool, at time.Time) bool {
	is := t.Floor.Agents[channel.AgentID(a.Name)]
	if t.Stopping || a.Removed || a.Settings.Policy.Foreign || is.Limit != "" || !is.Online() {
		return true
	}
	rest := t.talkDeadline(a)
	return !some && (len(a.Line) > 0 || len(t.Circle(a.Name)) == 0 || !rest.IsZero() && !at.Before(rest))
}

// talkDeadline is when a session for channels has had nothing to answer for too long.
func (t *Team) talkDeadline(a *Agent) time.Time {
	s := a.Session
	if !s.Talks() || s.Leads() || s.Phase != Running || s.Ending != "" || s.Talk == nil || s.Talk.Over.IsZero() {
		return time.Time{}
	}
	return s.Talk.Over.Add(talkRest)
}

// talkTimer does what is due of an agent's part in channels.
func (d *draft) talkTimer(a *Agent) error {
	at, is := d.ev.At, d.team.Floor.Agents[channel.AgentID(a.Name)]
	if limit, over := d.team.sessionDeadline(a); a.Session.Talks() && !over.IsZero() && !at.Before(over) {
		if err := d.endSession(a, limitWords+"session "+limit.String(), false); err != nil || is == nil {
			return err
		}
		return d.turns(channel.LimitHit{Agent: channel.AgentID(a.Name), Limit: "session " + limit.String()}) // lifted by Next, since it is of one answer
	}
	if rest := d.team.talkDeadline(a); !rest.IsZero() && !at.Before(rest) {
		return d.endSession(a, talkOverWords, false)
	}
	if is != nil && is.Limit != "" && d.team.talkLimit(a, at) == "" {
		return d.turns(channel.LimitLifted{Agent: channel.AgentID(a.Name)})
	}
	return nil
}

// talkLimit is what keeps an agent from its turns: a limit of the day, or its provider.
func (t *Team) talkLimit(a *Agent, at time.Time) string {
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
	if is := t.Floor.Agents[channel.AgentID(a.Name)]; is == nil || is.Limit == "" || a.Waits() {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, cmp.Or(a.Usage.Day, t.Usage.Day))
	if err != nil {
		return at
	}
	return day.Add(24 * time.Hour)
}

// talk has an agent told what it is to be told, in a session that is opened for that, or stands
// in line for one (J1).
func (d *draft) talk(a *Agent) error {
	todo, some := d.team.toTell(a.Name, d.ev.At)
	switch {
	case !some:
		return nil
	case d.team.open(a) && len(a.Line) == 0 && !d.turnNow().Held:
		return d.openTalk(a, todo)
	}
	return d.claim(a, Claim{For: ForChannels, Kind: control.Talk, At: d.ev.At})
}

func (d *draft) openTalk(a *Agent, todo channel.Todo) error {
	talk := TalkOf(todo)
	return d.openSession(a, Session{Kind: control.Talk, For: ForChannels, Talk: &talk})
}

// talkSeen takes in that the process of a session for channels lives: so it has what it was
// started with.
func (d *draft) talkSeen(a *Agent, s *Session, input int64, adopted bool) error {
	if s.Leads() {
		if err := d.leadSeen(a, s, adopted); err != nil {
			return err
		}
	}
	if s.Talk == nil || s.Talk.Told {
		return nil
	}
	talk := *s.Talk
	talk.Told, talk.Begun, talk.Input = true, d.ev.At, input
	d.setTalkOf(a, talk)
	return d.errandTold(talk)
}

// talkTold takes in that a running session has one more thing. What goes into the middle of an
// answer is part of what it answers.
func (d *draft) talkTold(a *Agent, what TalkTold) error {
	s, err := d.ours(a, told, what.Session)
	if err != nil {
		return err
	}
	if _, err := d.look(a, told); err != nil {
		return err
	}
	if s.Talk == nil || what.Input <= s.Talk.Input {
		return nil
	}
	talk := TalkOf(what.Errand)
	talk.Told, talk.Begun, talk.Input = true, d.ev.At, what.Input
	if s.Talk.Over.IsZero() && s.Talk.Token == talk.Token && talk.Re == 0 {
		talk.Begun = s.Talk.Begun
	}
	d.setTalkOf(a, talk)
	return d.errandTold(talk)
}

func (d *draft) setTalkOf(a *Agent, talk Talk) {
	rule, err := d.look(a, told)
	if err != nil {
		panic("team: a session that runs can be told something: " + err.Error())
	}
	d.add(a.entity(), "session", rule.ID, string(a.phase()), string(rule.To), string(told), Body{Talk: &talk})
	a.setTalk(talk)
}

func (a *Agent) setTalk(talk Talk) {
	s := *a.Session
	s.Talk = &talk
	a.Session = &s
}

// talkEnded tells the floor how a session for channels ended in the middle of an answer. One that
// was stopped, or asked to go, has not crashed.
func (d *draft) talkEnded(a *Agent, s *Session) error {
	if s.Leads() {
		if err := d.leadOver(s); err != nil {
			return err
		}
	}
	if !s.Answers() || s.Outcome == control.Withdrawn || OfLead(s.Talk.Token) {
		return nil
	}
	talk, is := s.Talk, d.team.Floor.Agents[s.Talk.Token.Agent]
	if is == nil || !is.Connected {
		return nil
	}
	if s.Outcome == control.RateLimited { // X9; what it was told it is told again, when it may go on
		return d.turns(channel.LimitHit{Agent: talk.Token.Agent, Limit: d.team.talkLimit(a, d.ev.At)})
	}
	if s.Outcome == control.OK || s.Outcome == control.Cancelled || d.stopping(a.Name) {
		if !talk.Told {
			return nil // nobody has told it anything: it is told in the next session
		}
		return d.turns(channel.Said{Token: talk.Token, Re: talk.Re, Ended: true})
	}
	return d.turns(channel.AgentGone{Agent: talk.Token.Agent, How: channel.Crashed, Why: s.ID + ": " + s.Why})
}

// stopping says whether an agent's work in a channel was to be stopped.
func (d *draft) stopping(agent string) bool {
	for _, id := range d.team.Circle(agent) {
		if s := d.team.Floor.Channels[channel.ChannelID(id)].Seats[channel.AgentID(agent)]; s != nil && s.Stop != 0 {
			return true
		}
	}
	return false
}
