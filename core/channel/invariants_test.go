package channel

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
)

func snapshotText(t testing.TB, cs *Channels) string {
	t.Helper()
	b, err := json.Marshal(cs)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// past is the state of a channel before an input. Checks compare it with the state afterwards.
type past struct {
	head     Head
	queue    []AgentID
	rotation []AgentID // the agents that can get the turn: they are queued, have the turn, or rest alone after it
}

func before(cs *Channels) map[ChannelID]past {
	all := make(map[ChannelID]past, len(cs.ByID))
	for id, c := range cs.ByID {
		p := past{head: c.Head, queue: c.Queue()}
		for name := range c.Participants {
			if canGetTurn(c, name) {
				p.rotation = append(p.rotation, name)
			}
		}
		all[id] = p
	}
	return all
}

func canGetTurn(c *Channel, name AgentID) bool {
	p := c.Participants[name]
	return p != nil && (p.State == Queued || p.State == Active || p.State == Waiting || c.Head.Rests == name)
}

// check checks the invariants after every input. They follow the specification and use neither the
// table nor decisions of the machine.
func (w *world) check(was map[ChannelID]past, in Input, changes []change.Change) {
	w.t.Helper()
	for id, c := range w.state.ByID {
		if err := sound(w.state, id, c, w.now); err != nil {
			w.t.Fatalf("after %T %+v: #%s: %v", in, in, id, err)
		}
	}
	if err := step(was, w.state, in, changes); err != nil {
		w.t.Fatalf("%T %+v: %v", in, in, err)
	}
	w.checkCalls()
	w.fair(changes)
}

// calls checks that the two numbers in Head.Said determine, for every agent, whether another agent
// has spoken since its last turn.
func (w *world) checkCalls() {
	for id, c := range w.state.ByID {
		for name, p := range c.Participants {
			if !canGetTurn(c, name) {
				continue
			}
			newest := uint64(0)
			for _, other := range w.agents {
				if other != name {
					newest = max(newest, w.spoke[string(id)+"/"+string(other)])
				}
			}
			if asks := newest > p.Rest; asks != (call(c, name) > p.Rest) {
				w.t.Fatalf("#%s: the last message of another agent is %d, and %s has answered %d: %+v", id, newest, name, p.Rest,
					c.Head.Said)
			}
		}
	}
}

// call returns the last message of another agent.
func call(c *Channel, name AgentID) uint64 {
	if c.Head.Said.By == name {
		return c.Head.Said.Else
	}
	return c.Head.Said.Last
}

// sound checks the invariants of a single channel.
func sound(cs *Channels, id ChannelID, c *Channel, now Now) error {
	var speaking []AgentID
	for name, p := range c.Participants {
		if p.State == Active || p.State == Waiting {
			speaking = append(speaking, name)
		}
		if p.State != "" && !cs.Agents[name].Online() {
			return fmt.Errorf("%s is %s but not online", name, p.State)
		}
		if p.State == Queued && !slices.Contains(c.Queue(), name) {
			return fmt.Errorf("%s is queued but not in the queue", name)
		}
		if p.Gone && p.Stop == 0 {
			return fmt.Errorf("%s was removed but still has a state", name)
		}
		if !p.Gone && !slices.Contains(cs.Agents[name].Channels, id) {
			return fmt.Errorf("%s is not a participant of its own channel", name)
		}
	}
	switch {
	case len(speaking) > 1:
		return fmt.Errorf("%d agents have the turn: %v", len(speaking), speaking)
	case len(speaking) == 1 && speaking[0] != c.Head.Holder, len(speaking) == 0 && c.Head.Holder != "":
		return fmt.Errorf("%q has the turn, but %v are ACTIVE or WAITING", c.Head.Holder, speaking)
	case len(c.Open) > openMax+openInterruptsMax:
		return fmt.Errorf("%d messages are open", len(c.Open))
	}
	for _, s := range c.Queue() {
		if c.Participants[s] == nil || c.Participants[s].State != Queued {
			return fmt.Errorf("%s is in the queue but not queued", s)
		}
	}
	for i := range c.Open {
		if !had(c, &c.Open[i]) {
			return fmt.Errorf("message %d is delivered, but no agent has it: %+v", c.Open[i].N, c.Open[i])
		}
	}
	return progresses(cs, id, c, now)
}

// had checks that an agent which can answer has received each delivered message.
func had(c *Channel, m *Message) bool {
	h := &c.Head
	if m.State != Delivered || !m.Ends.IsZero() || h.Aside.Message == m.N && h.Aside.Delivered {
		return true
	}
	for name, p := range c.Participants {
		in := p.State == Queued || p.State == Active || p.State == Waiting || h.Rests == name
		lease := h.Holder == name && (h.Lease.Delivered && m.N <= h.Lease.Upto || slices.Contains(h.Lease.Ahead, m.N))
		if in && (lease || m.N <= p.Heard || slices.Contains(p.Ahead, m.N)) {
			return true
		}
	}
	return false
}

// progresses checks that every turn and interruption has an event that can end it, and that nothing
// waits without a reason.
func progresses(cs *Channels, id ChannelID, c *Channel, now Now) error {
	h := &c.Head
	if h.Holder != "" || h.Aside.Message != 0 {
		if len(cs.Actions(id, now)) == 0 && cs.Deadline(id).At.IsZero() {
			return fmt.Errorf("no event can end the turn or the interruption: %+v", *h)
		}
		return timersRun(cs, c)
	}
	if h.Parked == "" {
		return fmt.Errorf("no agent has the turn, without a reason")
	}
	if now.Held {
		return nil
	}
	for name := range c.Participants {
		if !canGetTurn(c, name) {
			continue
		}
		if n := asked(cs, c, name); n != 0 {
			return fmt.Errorf("message %d waits and %s is free, but the channel is parked (%s)", n, name, h.Parked)
		}
	}
	return nil
}

// timersRun checks that each agent that has the turn or answers an interruption has a deadline:
// that of the turn while it speaks, that of the wait while it waits, that of the interruption while
// it answers.
func timersRun(cs *Channels, c *Channel) error {
	h := &c.Head
	limited := func(name AgentID) bool { return cs.Agents[name].Timeout > 0 || c.Settings.DefaultTimeout > 0 }
	switch p := c.Participants[h.Holder]; {
	case p == nil:
	case p.State == Active && h.Lease.Ends.IsZero() && limited(h.Holder):
		return fmt.Errorf("%s is ACTIVE without a timer: %+v", h.Holder, *h)
	case p.State == Waiting && h.Lease.WaitTo.IsZero() && (!h.Lease.Stopped || h.Aside.Message == 0):
		return fmt.Errorf("%s is WAITING without a timer: %+v", h.Holder, *h)
	}
	if h.Aside.Message != 0 && h.Aside.Agent != h.Holder && h.Aside.Ends.IsZero() && limited(h.Aside.Agent) {
		return fmt.Errorf("%s answers a person without a timer: %+v", h.Aside.Agent, *h)
	}
	return nil
}

// asked returns a message that a participant must answer and may answer: a person's message that no
// agent has received, or the last message of another agent since its turn. 0 means none.
func asked(cs *Channels, c *Channel, name AgentID) uint64 {
	p := c.Participants[name]
	if cs.Agents[name].Limit != "" || c.Settings.RoundsMax > 0 && p.TookFor == c.Head.Human && p.Took >= c.Settings.RoundsMax {
		return 0
	}
	for _, m := range c.Open {
		if m.State == Kept && m.Ends.IsZero() && m.N != c.Head.Aside.Message && m.N > p.Rest {
			return m.N
		}
	}
	if n := call(c, name); n > p.Rest {
		return n
	}
	return 0
}

// step checks what a single input may change.
func step(was map[ChannelID]past, is *Channels, in Input, changes []change.Change) error {
	for id, c := range is.ByID {
		old, known := was[id]
		if !known {
			continue
		}
		if c.Head.Turn < old.head.Turn || c.Head.Seq < old.head.Seq {
			return fmt.Errorf("#%s: a number decreased", id)
		}
		for _, err := range []error{
			moved(old.head, c, id, in, changes), kept(old, c, id, in), apart(id, in, changes),
			lined(old.queue, c),
		} {
			if err != nil {
				return fmt.Errorf("#%s: %w", id, err)
			}
		}
	}
	return nil
}

// moved checks that a timer or an agent changes only the turn whose number it names.
func moved(old Head, c *Channel, id ChannelID, in Input, changes []change.Change) error {
	var token Token
	switch in := in.(type) {
	case Said:
		if in.Re != 0 {
			return nil
		}
		token = in.Token
	case Worked:
		token = in.Token
	case PassAsked:
		token = in.Token
	case WaitAskedFor:
		token = in.Token
	case WaitOver:
		token = in.Token
	case TimerFired:
		if in.About.What == AsideTimer || in.About.What == MessageTimer {
			return nil
		}
		token = Token{Channel: in.About.Channel, Agent: old.Holder, Turn: in.About.N}
	default:
		return nil
	}
	if token.Channel == id && token.Turn == old.Turn && token.Agent == old.Holder && token.Agent != "" {
		return nil
	}
	if old.Turn != c.Head.Turn || old.Holder != c.Head.Holder {
		return fmt.Errorf("input for turn %d of %s changes turn %d of %s", token.Turn, token.Agent, old.Turn, old.Holder)
	}
	for _, ch := range changes {
		if ch.From != "" && Of(&ch) == id {
			return fmt.Errorf("late input changes %s from %s to %s", change.As[Set](ch.Body).Agent, ch.From, ch.To)
		}
	}
	return nil
}

// kept checks that a participant leaves the rotation only if it was removed or disconnected.
func kept(was past, c *Channel, id ChannelID, in Input) error {
	for _, name := range was.rotation {
		if canGetTurn(c, name) {
			continue
		}
		switch in := in.(type) {
		case RemoveAsked:
			if in.Channel == id && in.Agent == name {
				continue
			}
		case AgentGone:
			if in.Agent == name {
				continue
			}
		case AgentBeatsMissed:
			if in.Agent == name {
				continue
			}
		case DisableAsked:
			if in.Agent == name {
				continue
			}
		}
		return fmt.Errorf("%s left the rotation without a reason", name)
	}
	return nil
}

// apart checks that input for one channel changes no other channel.
func apart(id ChannelID, in Input, changes []change.Change) error {
	if everywhere(in) {
		return nil
	}
	where := ChannelID(in.Subject().Entity)
	for _, ch := range changes {
		if Of(&ch) != where {
			return fmt.Errorf("input for #%s changes #%s", where, Of(&ch))
		}
	}
	return nil
}

// everywhere reports whether an input concerns all channels.
func everywhere(in Input) bool {
	return in.Subject().Entity == "" && in.Subject().Event != Configured
}

// lined checks that queued participants keep their order and stay before new ones.
func lined(was []AgentID, c *Channel) error {
	at := 0
	is := c.Queue()
	for _, name := range was {
		i := slices.Index(is, name)
		switch {
		case i < 0:
		case i != at:
			return fmt.Errorf("the queue changed from %v to %v", was, is)
		default:
			at++
		}
	}
	return nil
}

// inOrder checks that the turn skips only participants without a message to answer. Because the
// queue keeps its order (lined), a queued participant with a message to answer gets the turn after
// at most as many turns as there are participants before it.
func inOrder(was *Channels, changes []change.Change) error {
	if !slices.ContainsFunc(changes, func(ch change.Change) bool { return ch.Trigger == string(Granted) }) {
		return nil
	}
	cs := clone(was)
	for _, ch := range changes {
		if set := change.As[Set](ch.Body); ch.Trigger == string(Granted) && !set.Body.Head.Lease.ByHand {
			c := cs.ByID[Of(&ch)]
			for _, name := range c.Queue() {
				if name == set.Agent {
					break
				}
				if n := asked(cs, c, name); n != 0 {
					return fmt.Errorf("%s gets the turn in #%s, but %s is before it and has message %d to answer", set.Agent, Of(&ch),
						name, n)
				}
			}
		}
		cs.Apply(ch)
	}
	return nil
}

// fair checks that an agent with a message to answer gets the turn after the agents before it.
// Turns that people grant do not count.
func (w *world) fair(changes []change.Change) {
	for _, ch := range changes {
		set, id := change.As[Set](ch.Body), Of(&ch)
		if ch.Trigger != string(Granted) || set.Body.Head.Lease.ByHand {
			continue
		}
		for _, name := range w.state.ByID[id].Queue() {
			key := string(id) + "/" + string(name)
			if before, waits := w.before[key]; waits && name != set.Agent {
				if w.before[key] = before - 1; before == 0 && asked(w.state, w.state.ByID[id], name) != 0 {
					w.t.Fatalf("%s is next in #%s, but %s has the turn", name, id, set.Agent)
				}
			}
		}
	}
	for id, c := range w.state.ByID {
		queue := c.Queue()
		for _, name := range w.agents {
			key := string(id) + "/" + string(name)
			at := slices.Index(queue, name)
			if at < 0 || asked(w.state, c, name) == 0 {
				delete(w.before, key)
			} else if _, waits := w.before[key]; !waits {
				w.before[key] = at
			}
		}
	}
}
