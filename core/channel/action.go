package channel

import (
	"slices"
	"strconv"
	"time"
)

// ActionKind is a kind of action that a channel requests.
type ActionKind string

const (
	StopWork    ActionKind = "stop_work"    // cancel the agent's current answer; comes before all other actions
	TellAside   ActionKind = "tell_aside"   // a person interrupted: the agent answers without a turn
	TellTurn    ActionKind = "tell_turn"    // it has the turn; with the messages since its last one
	TellGoOn    ActionKind = "tell_go_on"   // its turn continues
	TellMessage ActionKind = "tell_message" // a person's message during its turn, or a message to all agents
)

// Action is one action. The same state always produces the same key, also after a crash: the
// executor keeps the key of the last action for each agent and repeats none. ActionConfirmed reports that an
// action was done.
type Action struct {
	Key   string
	Do    ActionKind
	Token Token  // passed back in ActionConfirmed; Turn is 0 if there is none
	N     uint64 // passed back in ActionConfirmed; for TellAside and TellMessage the number of the message
	Given Given  // of TellTurn
}

// Given lists the messages that an agent receives with its turn, by number. The executor, which has
// the texts, leaves out the agent's own messages and limits their size.
type Given struct {
	From, To uint64   // the newest messages
	Also     []uint64 // unanswered messages of people before those
	But      []uint64 // messages in the range that it already has
	LeftOut  uint64   // number of older messages that are omitted; the prompt must say so
}

// givenMax is how many messages an agent receives with its turn. The messages of a week would not
// fit into any model.
const givenMax = 200

// Actions returns the pending actions of a channel in the order in which they must be done:
// cancellations before prompts. The cost is proportional to the length of the list.
func (cs *Channels) Actions(id ChannelID, now Now) []Action {
	c := cs.ByID[id]
	if c == nil {
		return nil
	}
	return c.actions(cs, id, c.busy(), now)
}

// ActionsOf returns the pending actions for one agent.
func (cs *Channels) ActionsOf(id ChannelID, agent AgentID, now Now) []Action {
	c := cs.ByID[id]
	switch {
	case c == nil:
		return nil
	case c.Participants[agent].busy():
		return slices.DeleteFunc(c.actions(cs, id, []AgentID{agent}, now), func(t Action) bool { return t.Token.Agent != agent })
	case c.Head.Holder == agent, c.Head.Aside.Agent == agent:
		return slices.DeleteFunc(c.actions(cs, id, nil, now), func(t Action) bool { return t.Token.Agent != agent })
	default:
		return nil
	}
}

// Concerns appends the agents for which Actions may return an action.
func (c *Channel) Concerns(names []AgentID) []AgentID {
	for _, name := range [...]AgentID{c.Head.Holder, c.Head.Aside.Agent} {
		if name != "" && !c.Participants[name].busy() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(names, c.busy()...)
}

func (c *Channel) actions(cs *Channels, id ChannelID, busy []AgentID, now Now) []Action {
	var stop, apart []Action
	for _, name := range busy {
		p := c.Participants[name]
		token := Token{Channel: id, Agent: name}
		if p.Stop != 0 && cs.Agents[name] != nil && cs.Agents[name].Connected {
			stop = append(stop, tell(StopWork, token, p.Stop))
		}
		for _, a := range p.Parallel {
			if !a.Delivered && !now.Held && len(p.Ahead) < aheadMax {
				apart = append(apart, tell(TellMessage, token, a.N))
			}
		}
	}
	aside, holder := c.asideActions(cs, id), c.holderActions(cs, id)
	if len(stop)+len(aside)+len(apart) == 0 {
		return holder // most often
	}
	return slices.Concat(stop, aside, holder, apart)
}

func tell(do ActionKind, token Token, n uint64) Action {
	key := string(do) + "/" + string(token.Channel) + "/" + string(token.Agent) + "/" + strconv.FormatUint(n, 10)
	return Action{Key: key, Do: do, Token: token, N: n}
}

func (c *Channel) asideActions(cs *Channels, id ChannelID) []Action {
	a := c.Head.Aside
	if a.Message == 0 || a.Delivered || !cs.Agents[a.Agent].Online() {
		return nil
	}
	// It names no turn, not even for the agent that has it: knowing a turn's number proves that the
	// agent received that turn.
	return []Action{tell(TellAside, Token{Channel: id, Agent: a.Agent}, a.Message)}
}

func (c *Channel) holderActions(cs *Channels, id ChannelID) []Action {
	h := &c.Head
	p := c.Participants[h.Holder]
	if p == nil || p.State != Active || h.Aside.Agent == h.Holder {
		return nil
	}
	token := Token{Channel: id, Agent: h.Holder, Turn: h.Turn}
	if !h.Lease.Delivered {
		action := tell(TellTurn, token, h.Turn)
		action.Given = c.given(p)
		return []Action{action}
	}
	var actions []Action
	if h.Lease.GoOn != 0 {
		actions = append(actions, tell(TellGoOn, token, h.Lease.GoOn))
	}
	if cs.Agents[h.Holder].NoInputMidAnswer {
		return actions // the message is delivered at the end of its turn instead
	}
	for i := range c.Open {
		if m := &c.Open[i]; c.intoTurn(p, m) && len(actions)+len(h.Lease.Ahead) < aheadMax {
			actions = append(actions, tell(TellMessage, token, m.N))
		}
	}
	return actions
}

// intoTurn reports whether a message is delivered during the turn.
func (c *Channel) intoTurn(p *Participant, m *Message) bool {
	l := &c.Head.Lease
	return (m.Mode == Inject || m.Mode == Interrupt) && m.N > l.Upto && m.N != c.Head.Aside.Message &&
		!slices.Contains(l.Ahead, m.N) && !slices.Contains(p.Ahead, m.N)
}

// given returns the messages since the participant's last turn.
func (c *Channel) given(p *Participant) Given {
	g := Given{From: p.Heard + 1, To: c.Head.Lease.Upto}
	if g.To >= g.From && g.To-g.From >= givenMax {
		g.LeftOut = g.To - g.From + 1 - givenMax
		g.From = g.To - givenMax + 1
	}
	for _, m := range c.Open {
		if m.N > p.Heard && m.N < g.From && !slices.Contains(p.Ahead, m.N) && !slices.Contains(c.Head.Lease.Ahead, m.N) {
			g.Also = append(g.Also, m.N)
			g.LeftOut--
		}
	}
	g.But = slices.Concat(p.Ahead, c.Head.Lease.Ahead)
	for _, a := range p.Parallel {
		if !a.Delivered { // its own action delivers it
			g.But = append(g.But, a.N)
		}
	}
	return g
}

// TimerKind is a kind of deadline.
type TimerKind string

const (
	TurnTimer    TimerKind = "turn"
	WaitTimer    TimerKind = "wait"
	SilenceTimer TimerKind = "silence"
	AsideTimer   TimerKind = "aside"   // for a lead's answer to a person
	MessageTimer TimerKind = "message" // for a message to all
)

// Deadline names its subject, so that a late timer cannot end another agent's turn. Its zero value
// is none.
type Deadline struct {
	Channel ChannelID
	What    TimerKind
	N       uint64 // the turn, or for AsideTimer and MessageTimer the message
	At      time.Time
}

// Deadline returns the next time at which a channel changes without an event.
func (cs *Channels) Deadline(id ChannelID) Deadline {
	var next Deadline
	if c := cs.ByID[id]; c != nil {
		c.deadlines(func(what TimerKind, n uint64, at time.Time) {
			if !at.IsZero() && (next.At.IsZero() || at.Before(next.At)) {
				next = Deadline{Channel: id, What: what, N: n, At: at}
			}
		})
	}
	return next
}

func (c *Channel) deadlines(each func(TimerKind, uint64, time.Time)) {
	h := &c.Head
	if h.Holder != "" {
		each(TurnTimer, h.Turn, h.Lease.Ends)
		each(SilenceTimer, h.Turn, h.Lease.Silence)
		each(WaitTimer, h.Turn, h.Lease.WaitTo)
	}
	each(AsideTimer, h.Aside.Message, h.Aside.Ends)
	for i := range c.Open {
		each(MessageTimer, c.Open[i].N, c.Open[i].Ends)
	}
}

// hasPassed reports whether a deadline has passed and its subject has not ended.
func (c *channelDraft) hasPassed(about Deadline) bool {
	stands := false
	now := Channel{Head: c.head, Open: c.open}
	now.deadlines(func(what TimerKind, n uint64, at time.Time) {
		stands = stands || !at.IsZero() && what == about.What && n == about.N && at.Equal(about.At)
	})
	return stands && !c.now.At.Before(about.At)
}

// timer handles a deadline that has passed.
func (c *channelDraft) timer(about Deadline) error {
	switch about.What {
	case TurnTimer:
		if c.head.Lease.Ending != "" { // the agent had already reported that it is done
			return c.ends(c.head.Holder)
		}
		return c.take(c.head.Holder, TimedOut, "")
	case SilenceTimer:
		return c.finish(c.head.Holder, fellSilent)
	case WaitTimer:
		return c.take(c.head.Holder, WaitTimedOut, "")
	case AsideTimer:
		c.leadLost(c.head.Aside.Agent)
	case MessageTimer:
		c.lapse(about.N)
	}
	return nil
}

// lapse ends a message to all. A message that reached no agent is kept: it goes to the agents that
// are online now or, if there are none, to the next turn.
func (c *channelDraft) lapse(n uint64) {
	i, _ := find(c.open, n)
	if c.open[i].State == Kept {
		ends := time.Time{}
		if c.toAll(n) {
			ends = c.lapsesAt()
		}
		c.progress(n, TimeOver, func(m *Message) { m.Ends = ends })
		c.emit(rowAside, "", "", "", Event(TimeOver))
		return
	}
	for _, name := range c.base.busy() {
		if c.parallelIndex(name, n) >= 0 {
			p := c.participant(name)
			p.Parallel = without(p.Parallel, n)
		}
	}
	c.progress(n, TimeOver, func(m *Message) { m.Ends = time.Time{} })
	c.emit(rowAside, "", "", "", Event(TimeOver))
}

// confirm records that an action was done. It ignores actions that are no longer pending.
func (c *channelDraft) confirm(in ActionConfirmed) {
	h := &c.head
	holds := h.Holder == in.Agent && h.Turn == in.Turn && in.Agent != ""
	switch {
	case in.Do == StopWork && c.look(in.Agent) != nil && c.look(in.Agent).Stop == in.N && in.N != 0:
		p := c.participant(in.Agent)
		if p.Stop = 0; p.Gone {
			c.leave(in.Agent)
		}
	case in.Do == TellTurn && holds && !h.Lease.Delivered:
		c.tellTurn()
		if !h.Lease.Ends.IsZero() {
			h.Lease.Ends = c.after(c.timeout(in.Agent)) // the time limit counts from the agent's acknowledgement
		}
	case in.Do == TellGoOn && holds && h.Lease.GoOn == in.N && in.N != 0:
		h.Lease.GoOn = 0
		h.Lease.answers()
	case in.Do == TellAside && h.Aside.Message == in.N && h.Aside.Agent == in.Agent && !h.Aside.Delivered && in.N != 0:
		c.tellAside()
	case in.Do == TellMessage && holds && c.inject(in):
	case in.Do == TellMessage && in.Turn == 0 && c.parallelIndex(in.Agent, in.N) >= 0 &&
		!c.look(in.Agent).Parallel[c.parallelIndex(in.Agent, in.N)].Delivered:
		c.tellParallel(in.Agent, in.N)
	default:
		return
	}
	c.emit(rowConfirmed, in.Agent, "", "", Event(in.Do))
}

// forget makes an action pending again.
func (c *channelDraft) forget(in ActionForgotten) {
	h := &c.head
	not := func(list []uint64) (rest []uint64) {
		for _, n := range list {
			if n != in.N {
				rest = append(rest, n)
			}
		}
		return rest
	}
	parallel := c.parallelIndex(in.Agent, in.N)
	switch {
	case in.Do == TellAside && h.Aside.Message == in.N && h.Aside.Agent == in.Agent && h.Aside.Delivered:
		h.Aside.Delivered = false
		if in.Agent == h.Holder {
			h.Lease.Ahead = not(h.Lease.Ahead)
		} else if c.inRotation(in.Agent) {
			p := c.participant(in.Agent)
			p.Ahead = not(p.Ahead)
		}
	case in.Do == TellMessage && in.Turn == 0 && parallel >= 0 && c.look(in.Agent).Parallel[parallel].Delivered:
		p := c.participant(in.Agent)
		p.Parallel, p.Ahead = slices.Clone(p.Parallel), not(p.Ahead)
		p.Parallel[parallel].Delivered = false
	case in.Agent != "" && h.Holder == in.Agent && h.Turn == in.Turn && h.Lease.Delivered && h.Lease.Ending == "" &&
		h.Aside.Agent != in.Agent:
		l := &h.Lease // the new conversation knows nothing of this turn, so it gets all of it
		l.Delivered, l.GoOn = false, 0
		l.answers()
		for _, m := range c.open {
			if slices.Contains(l.Ahead, m.N) {
				l.Upto = max(l.Upto, m.N)
			}
		}
		l.Ahead = nil
	default:
		return
	}
	c.loseMessages("")
	c.emit(rowForgotten, in.Agent, "", "", ConversationLost)
}

// inject records that the agent with the turn received a message during it.
func (c *channelDraft) inject(in ActionConfirmed) bool {
	i, ok := find(c.open, in.N)
	now := Channel{Head: c.head}
	if !ok || !now.intoTurn(c.look(in.Agent), &c.open[i]) {
		return false
	}
	c.ahead(in.N)
	c.handed(in.N, c.head.Turn)
	c.head.Lease.answers()
	return true
}
