package channel

import (
	"slices"
	"strconv"
	"time"
)

// Errand is a kind of thing that a channel asks of the world.
type Errand string

const (
	StopWork    Errand = "stop_work"    // what the agent is saying is not wanted any more; before all others
	TellAside   Errand = "tell_aside"   // a person interrupted: the agent is to answer, without a turn
	TellTurn    Errand = "tell_turn"    // it has the turn, and this is what was said since its last one
	TellGoOn    Errand = "tell_go_on"   // its turn goes on
	TellMessage Errand = "tell_message" // a person's message in the middle of its turn, or one to all
)

// Todo is one errand. The same state gives the same key, before a crash and after it: whoever
// does errands keeps the key of the last one that it did to each agent, and does none twice.
// Told says that it was done.
type Todo struct {
	Key   string
	Do    Errand
	Token Token  // to be handed back with Told; its Turn is 0 where there is none
	N     uint64 // the same; of TellAside and TellMessage it is the message
	Given Given  // of TellTurn
}

// Given is what an agent is told with its turn: messages by number. Its own are left out by
// whoever has the texts, and whoever has them cuts them to a size.
type Given struct {
	From, To uint64   // these, the newest
	Also     []uint64 // and these before them: people's that nobody has answered
	But      []uint64 // without these, which it has
	LeftOut  uint64   // so many older ones are not given; say so
}

// givenMax is how many messages an agent is given with its turn: what was said while it was
// away for a week would fill any model.
const givenMax = 200

// Todo reads off a channel what is to be done now, in the order in which it is to be done: what
// stops somebody comes before what anybody is told. It takes as long as the list is.
func (f *Floor) Todo(id ChannelID, now Now) []Todo {
	c := f.Channels[id]
	if c == nil {
		return nil
	}
	return c.todo(f, id, sorted(c.busy), now)
}

// TodoOf is what Todo has for one agent.
func (f *Floor) TodoOf(id ChannelID, agent AgentID, now Now) []Todo {
	c := f.Channels[id]
	switch {
	case c == nil:
		return nil
	case c.busy[agent]:
		return slices.DeleteFunc(c.todo(f, id, []AgentID{agent}, now), func(t Todo) bool { return t.Token.Agent != agent })
	case c.Head.Holder == agent, c.Head.Aside.Agent == agent:
		return slices.DeleteFunc(c.todo(f, id, nil, now), func(t Todo) bool { return t.Token.Agent != agent })
	default:
		return nil
	}
}

// Concerns adds those whom Todo can name as the channel is: nobody else has anything to do in it.
func (c *Channel) Concerns(names []AgentID) []AgentID {
	for _, name := range [...]AgentID{c.Head.Holder, c.Head.Aside.Agent} {
		if name != "" && !c.busy[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for name := range c.busy {
		names = append(names, name)
	}
	return names
}

func (c *Channel) todo(f *Floor, id ChannelID, busy []AgentID, now Now) []Todo {
	var stop, apart []Todo
	for _, name := range busy {
		s := c.Seats[name]
		token := Token{Channel: id, Agent: name}
		if s.Stop != 0 && f.Agents[name] != nil && f.Agents[name].Connected {
			stop = append(stop, tell(StopWork, token, s.Stop))
		}
		for _, a := range s.Apart {
			if !a.Told && !now.Held && len(s.Ahead) < aheadMax {
				apart = append(apart, tell(TellMessage, token, a.N))
			}
		}
	}
	todo := append(stop, c.todoAside(f, id)...)
	todo = append(todo, c.todoHolder(f, id)...)
	return append(todo, apart...)
}

func tell(do Errand, token Token, n uint64) Todo {
	key := string(do) + "/" + string(token.Channel) + "/" + string(token.Agent) + "/" + strconv.FormatUint(n, 10)
	return Todo{Key: key, Do: do, Token: token, N: n}
}

func (c *Channel) todoAside(f *Floor, id ChannelID) []Todo {
	a := c.Head.Aside
	if a.Message == 0 || a.Told || !f.Agents[a.Agent].Online() {
		return nil
	}
	// It names no turn, not even to the holder: who knows a turn's number was told that turn.
	return []Todo{tell(TellAside, Token{Channel: id, Agent: a.Agent}, a.Message)}
}

func (c *Channel) todoHolder(f *Floor, id ChannelID) []Todo {
	h := &c.Head
	s := c.Seats[h.Holder]
	if s == nil || s.State != Active || h.Aside.Agent == h.Holder {
		return nil
	}
	token := Token{Channel: id, Agent: h.Holder, Turn: h.Turn}
	if !h.Lease.Told {
		todo := tell(TellTurn, token, h.Turn)
		todo.Given = c.given(s)
		return []Todo{todo}
	}
	var todo []Todo
	if h.Lease.GoOn != 0 {
		todo = append(todo, tell(TellGoOn, token, h.Lease.GoOn))
	}
	if f.Agents[h.Holder].Deaf {
		return todo // at the end of its turn, then
	}
	for i := range c.Open {
		if m := &c.Open[i]; c.intoTurn(s, m) && len(todo)+len(h.Lease.Ahead) < aheadMax {
			todo = append(todo, tell(TellMessage, token, m.N))
		}
	}
	return todo
}

// intoTurn says whether a message is to be handed to the holder in the middle of its turn.
func (c *Channel) intoTurn(s *Seat, m *Message) bool {
	l := &c.Head.Lease
	return (m.Mode == Inject || m.Mode == Interrupt) && m.N > l.Upto && m.N != c.Head.Aside.Message &&
		!slices.Contains(l.Ahead, m.N) && !slices.Contains(s.Ahead, m.N)
}

// given is what was said since the seat's last turn.
func (c *Channel) given(s *Seat) Given {
	g := Given{From: s.Heard + 1, To: c.Head.Lease.Upto}
	if g.To >= g.From && g.To-g.From >= givenMax {
		g.LeftOut = g.To - g.From + 1 - givenMax
		g.From = g.To - givenMax + 1
	}
	for _, m := range c.Open {
		if m.N > s.Heard && m.N < g.From && !slices.Contains(s.Ahead, m.N) && !slices.Contains(c.Head.Lease.Ahead, m.N) {
			g.Also = append(g.Also, m.N)
			g.LeftOut--
		}
	}
	g.But = slices.Concat(s.Ahead, c.Head.Lease.Ahead)
	for _, a := range s.Apart {
		if !a.Told { // it comes by itself
			g.But = append(g.But, a.N)
		}
	}
	return g
}

// Clock is a kind of deadline.
type Clock string

const (
	TurnTime    Clock = "turn"
	WaitTime    Clock = "wait"
	SilenceTime Clock = "silence"
	AsideTime   Clock = "aside"   // of a lead that answers a person
	LapseTime   Clock = "message" // of a message to all
)

// Deadline names what it is about, so that a late timer ends nobody else's turn. Its zero
// value is none.
type Deadline struct {
	Channel ChannelID
	What    Clock
	N       uint64 // the turn, or of AsideTime and LapseTime the message
	At      time.Time
}

// Deadline is the next moment at which a channel changes by itself.
func (f *Floor) Deadline(id ChannelID) Deadline {
	var next Deadline
	if c := f.Channels[id]; c != nil {
		c.deadlines(func(what Clock, n uint64, at time.Time) {
			if !at.IsZero() && (next.At.IsZero() || at.Before(next.At)) {
				next = Deadline{Channel: id, What: what, N: n, At: at}
			}
		})
	}
	return next
}

func (c *Channel) deadlines(each func(Clock, uint64, time.Time)) {
	h := &c.Head
	if h.Holder != "" {
		each(TurnTime, h.Turn, h.Lease.Ends)
		each(SilenceTime, h.Turn, h.Lease.Silence)
		each(WaitTime, h.Turn, h.Lease.WaitTo)
	}
	each(AsideTime, h.Aside.Message, h.Aside.Ends)
	for i := range c.Open {
		each(LapseTime, c.Open[i].N, c.Open[i].Ends)
	}
}

// timer does what is due, and nothing that was overtaken.
func (c *circle) timer(about Deadline) error {
	stands := false
	now := Channel{Head: c.head, Open: c.open}
	now.deadlines(func(what Clock, n uint64, at time.Time) {
		stands = stands || !at.IsZero() && what == about.What && n == about.N && at.Equal(about.At)
	})
	if !stands || c.now.At.Before(about.At) {
		return nil
	}
	switch about.What {
	case TurnTime:
		if c.head.Lease.Ending != "" { // it had said that it is done
			return c.ends(c.head.Holder)
		}
		return c.take(c.head.Holder, TimedOut, "")
	case SilenceTime:
		return c.finish(c.head.Holder, Fell, FellAlone)
	case WaitTime:
		return c.take(c.head.Holder, WaitTimedOut, "")
	case AsideTime:
		c.leadLost(c.head.Aside.Agent)
	case LapseTime:
		c.lapse(about.N)
	}
	return nil
}

// lapse ends a message to all. One that nobody was told is kept: it goes to whoever is there
// now, or, where nobody is, to the turn of the first who comes.
func (c *circle) lapse(n uint64) {
	i, _ := find(c.open, n)
	if c.open[i].State == Kept {
		ends := time.Time{}
		if c.toAll(n) {
			ends = c.lapsesAt()
		}
		c.progress(n, NobodyCared, func(m *Message) { m.Ends = ends })
		c.emit(rowAside, "", "", "", Event(NobodyCared))
		return
	}
	for _, name := range sorted(c.base.busy) {
		if c.apart(name, n) >= 0 {
			s := c.seat(name)
			s.Apart = without(s.Apart, n)
		}
	}
	c.progress(n, NobodyCared, func(m *Message) { m.Ends = time.Time{} })
	c.emit(rowAside, "", "", "", Event(NobodyCared))
}

// told notes that an errand was done; one that is not asked for any more changes nothing.
func (c *circle) told(in Told) {
	h := &c.head
	holds := h.Holder == in.Agent && h.Turn == in.Turn && in.Agent != ""
	switch {
	case in.Do == StopWork && c.look(in.Agent) != nil && c.look(in.Agent).Stop == in.N && in.N != 0:
		s := c.seat(in.Agent)
		if s.Stop = 0; s.Gone {
			c.leave(in.Agent)
		}
	case in.Do == TellTurn && holds && !h.Lease.Told:
		c.tellTurn()
		if !h.Lease.Ends.IsZero() {
			h.Lease.Ends = c.after(c.timeout(in.Agent)) // its time counts from when it knows
		}
	case in.Do == TellGoOn && holds && h.Lease.GoOn == in.N && in.N != 0:
		h.Lease.GoOn = 0
	case in.Do == TellAside && h.Aside.Message == in.N && h.Aside.Agent == in.Agent && !h.Aside.Told && in.N != 0:
		c.tellAside()
	case in.Do == TellMessage && holds && c.inject(in):
	case in.Do == TellMessage && in.Turn == 0 && c.apart(in.Agent, in.N) >= 0 && !c.look(in.Agent).Apart[c.apart(in.Agent, in.N)].Told:
		c.tellApart(in.Agent, in.N)
	default:
		return
	}
	c.emit(rowTold, in.Agent, "", "", Event(in.Do))
}

// inject notes that the holder has a message that came in the middle of its turn.
func (c *circle) inject(in Told) bool {
	i, ok := find(c.open, in.N)
	now := Channel{Head: c.head}
	if !ok || !now.intoTurn(c.look(in.Agent), &c.open[i]) {
		return false
	}
	c.ahead(in.N)
	c.handed(in.N, c.head.Turn)
	return true
}
