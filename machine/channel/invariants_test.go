package channel

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func snapshotText(t testing.TB, cs *Channels) string {
	t.Helper()
	b, err := json.Marshal(cs)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// past is the state of a channel before an input, for comparison with its state afterwards.
type past struct {
	head   Head
	queue  []AgentID
	circle []AgentID // who the turn comes to: it has a place, has the turn, or rests alone after it
}

func before(cs *Channels) map[ChannelID]past {
	all := make(map[ChannelID]past, len(cs.ByID))
	for id, c := range cs.ByID {
		p := past{head: c.Head, queue: c.Queue()}
		for name := range c.Participants {
			if inside(c, name) {
				p.circle = append(p.circle, name)
			}
		}
		all[id] = p
	}
	return all
}

func inside(c *Channel, name AgentID) bool {
	p := c.Participants[name]
	return p != nil && (p.State == Queued || p.State == Active || p.State == Waiting || c.Head.Rests == name)
}

// check is what must hold after every input. It is written by hand, from the specification,
// and asks neither the table nor the machine's own judgement.
func (w *world) check(was map[ChannelID]past, in Input, changes []Change) {
	w.t.Helper()
	for id, c := range w.floor.ByID {
		if err := sound(w.floor, id, c, w.now); err != nil {
			w.t.Fatalf("after %T %+v: #%s: %v", in, in, id, err)
		}
	}
	if err := step(was, w.floor, in, changes); err != nil {
		w.t.Fatalf("%T %+v: %v", in, in, err)
	}
	w.words()
	w.fair(changes)
}

// words: two numbers of a channel are enough to know which agents another agent's message asks for a
// turn, however many agents spoke.
func (w *world) words() {
	for id, c := range w.floor.ByID {
		for name, p := range c.Participants {
			if !inside(c, name) {
				continue
			}
			newest := uint64(0)
			for _, other := range w.agents {
				if other != name {
					newest = max(newest, w.spoke[string(id)+"/"+string(other)])
				}
			}
			if asks := newest > p.Rest; asks != (call(c, name) > p.Rest) {
				w.t.Fatalf("#%s: the others' last words are message %d, and %s has answered %d: %+v", id, newest, name, p.Rest, c.Head.Said)
			}
		}
	}
}

// call is what another agent said last.
func call(c *Channel, name AgentID) uint64 {
	if c.Head.Said.By == name {
		return c.Head.Said.Else
	}
	return c.Head.Said.Last
}

// sound is what every channel is like at every moment.
func sound(cs *Channels, id ChannelID, c *Channel, now Now) error {
	var speaking []AgentID
	for name, p := range c.Participants {
		if p.State == Active || p.State == Waiting {
			speaking = append(speaking, name)
		}
		if p.State != "" && !cs.Agents[name].Online() {
			return fmt.Errorf("%s is %s and not online", name, p.State)
		}
		if p.State == Queued && !slices.Contains(c.Queue(), name) {
			return fmt.Errorf("%s is queued and not in the queue", name)
		}
		if p.Gone && p.Stop == 0 {
			return fmt.Errorf("%s is gone and its seat is not", name)
		}
		if !p.Gone && !slices.Contains(cs.Agents[name].Channels, id) {
			return fmt.Errorf("%s does not know that it is a member", name)
		}
	}
	switch {
	case len(speaking) > 1:
		return fmt.Errorf("%d agents hold the turn: %v", len(speaking), speaking)
	case len(speaking) == 1 && speaking[0] != c.Head.Holder, len(speaking) == 0 && c.Head.Holder != "":
		return fmt.Errorf("%q holds the turn, and %v speak", c.Head.Holder, speaking)
	case len(c.Open) > openMax+openInterruptsMax:
		return fmt.Errorf("%d messages are open", len(c.Open))
	}
	for _, s := range c.Queue() {
		if c.Participants[s] == nil || c.Participants[s].State != Queued {
			return fmt.Errorf("%s is in the queue and not queued", s)
		}
	}
	for i := range c.Open {
		if !had(c, &c.Open[i]) {
			return fmt.Errorf("message %d is delivered, and nobody has it: %+v", c.Open[i].N, c.Open[i])
		}
	}
	return goesOn(cs, id, c, now)
}

// had: every message that counts as delivered was received by an agent that can answer it.
func had(c *Channel, m *Message) bool {
	h := &c.Head
	if m.State != Delivered || !m.Ends.IsZero() || h.Aside.Message == m.N && h.Aside.Told {
		return true
	}
	for name, p := range c.Participants {
		in := p.State == Queued || p.State == Active || p.State == Waiting || h.Rests == name
		lease := h.Holder == name && (h.Lease.Told && m.N <= h.Lease.Upto || slices.Contains(h.Lease.Ahead, m.N))
		if in && (lease || m.N <= p.Heard || slices.Contains(p.Ahead, m.N)) {
			return true
		}
	}
	return false
}

// goesOn: whatever is under way has a next event; nothing waits without a reason.
func goesOn(cs *Channels, id ChannelID, c *Channel, now Now) error {
	h := &c.Head
	if h.Holder != "" || h.Aside.Message != 0 {
		if len(cs.Actions(id, now)) == 0 && cs.Deadline(id).At.IsZero() {
			return fmt.Errorf("a turn or an aside is under way, and nothing can end it: %+v", *h)
		}
		return runs(cs, c)
	}
	if h.Parked == "" {
		return fmt.Errorf("nobody has the turn, and nobody says why")
	}
	if now.Held {
		return nil
	}
	for name := range c.Participants {
		if !inside(c, name) {
			continue
		}
		if n := asked(cs, c, name); n != 0 {
			return fmt.Errorf("message %d waits, %s is free, and the channel is parked (%s)", n, name, h.Parked)
		}
	}
	return nil
}

// runs: an agent that has the turn has a deadline, and so has an agent that answers a person. It is
// the deadline of the turn while the agent speaks, of the wait while it waits, and of the answer
// where it was interrupted.
func runs(cs *Channels, c *Channel) error {
	h := &c.Head
	limited := func(name AgentID) bool { return cs.Agents[name].Timeout > 0 || c.Settings.DefaultTimeout > 0 }
	switch p := c.Participants[h.Holder]; {
	case p == nil:
	case p.State == Active && h.Lease.Ends.IsZero() && limited(h.Holder):
		return fmt.Errorf("%s is ACTIVE, and no timer runs: %+v", h.Holder, *h)
	case p.State == Waiting && h.Lease.WaitTo.IsZero() && (!h.Lease.Stopped || h.Aside.Message == 0):
		return fmt.Errorf("%s is WAITING, and no timer runs: %+v", h.Holder, *h)
	}
	if h.Aside.Message != 0 && h.Aside.Agent != h.Holder && h.Aside.Ends.IsZero() && limited(h.Aside.Agent) {
		return fmt.Errorf("%s answers a person, and no timer runs: %+v", h.Aside.Agent, *h)
	}
	return nil
}

// asked is a message that a participant must answer and may answer: a person's message that no agent
// has received, or the last message of another agent, if the participant had no turn for it. 0:
// there is none.
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

// step is what one input may do.
func step(was map[ChannelID]past, is *Channels, in Input, changes []Change) error {
	for id, c := range is.ByID {
		old, known := was[id]
		if !known {
			continue
		}
		if c.Head.Turn < old.head.Turn || c.Head.Seq < old.head.Seq {
			return fmt.Errorf("#%s: a number went back", id)
		}
		for _, err := range []error{moved(old.head, c, id, in, changes), kept(old, c, id, in), apart(id, in, changes), lined(old.queue, c)} {
			if err != nil {
				return fmt.Errorf("#%s: %w", id, err)
			}
		}
	}
	return nil
}

// moved: a timer and an agent's word move only the turn whose number they name.
func moved(old Head, c *Channel, id ChannelID, in Input, changes []Change) error {
	var token Token
	switch in := in.(type) {
	case Said:
		if in.Re != 0 {
			return nil
		}
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
		return fmt.Errorf("turn %d of %s moves turn %d of %s", token.Turn, token.Agent, old.Turn, old.Holder)
	}
	for _, ch := range changes {
		if ch.From != "" && ch.Channel == id {
			return fmt.Errorf("%s %s -> %s, by what is late", ch.Agent, ch.From, ch.To)
		}
	}
	return nil
}

// kept: a participant stays in the rotation unless it was removed or left.
func kept(was past, c *Channel, id ChannelID, in Input) error {
	for _, name := range was.circle {
		if inside(c, name) {
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
		return fmt.Errorf("%s was in the circle, and nobody took it out", name)
	}
	return nil
}

// apart: what happens in one channel changes nothing in another one.
func apart(id ChannelID, in Input, changes []Change) error {
	if everywhere(in) {
		return nil
	}
	where := ChannelID("")
	switch in := in.(type) {
	case AgentConfigured:
	case ChannelConfigured:
		where = in.Channel
	default:
		where, _ = about(in)
	}
	for _, ch := range changes {
		if ch.Channel != where {
			return fmt.Errorf("what happens in #%s changes #%s", where, ch.Channel)
		}
	}
	return nil
}

// everywhere says whether an input is about all channels.
func everywhere(in Input) bool {
	switch in.(type) {
	case AgentConnected, AgentGone, AgentBeatsMissed, DisableAsked, EnableAsked, LimitHit, LimitLifted, Released:
		return true
	}
	return false
}

// lined: queued participants stay before new ones, and behind those that were queued earlier.
func lined(was []AgentID, c *Channel) error {
	at := 0
	is := c.Queue()
	for _, name := range was {
		i := slices.Index(is, name)
		switch {
		case i < 0:
		case i != at:
			return fmt.Errorf("the queue was %v, and is %v", was, is)
		default:
			at++
		}
	}
	return nil
}

// inOrder: no participant is overtaken. The turn skips only participants that have nothing to
// answer. Since places are kept (lined), a queued participant with something to answer gets the turn
// after at most as many turns as there are participants before it.
func inOrder(was *Channels, changes []Change) error {
	if !slices.ContainsFunc(changes, func(ch Change) bool { return ch.Trigger == Granted }) {
		return nil
	}
	cs := clone(was)
	for _, ch := range changes {
		if ch.Trigger == Granted && !ch.Body.Head.Lease.ByHand {
			c := cs.ByID[ch.Channel]
			for _, name := range c.Queue() {
				if name == ch.Agent {
					break
				}
				if n := asked(cs, c, name); n != 0 {
					return fmt.Errorf("%s is given the turn in #%s, %s was before it and has message %d to answer", ch.Agent, ch.Channel, name, n)
				}
			}
		}
		cs.Apply(ch)
	}
	return nil
}

// fair: who has something to answer gets the turn after those before him at the latest. What
// people grant does not count.
func (w *world) fair(changes []Change) {
	for _, ch := range changes {
		if ch.Trigger != Granted || ch.Body.Head.Lease.ByHand {
			continue
		}
		for _, name := range w.floor.ByID[ch.Channel].Queue() {
			key := string(ch.Channel) + "/" + string(name)
			if before, waits := w.before[key]; waits && name != ch.Agent {
				if w.before[key] = before - 1; before == 0 && asked(w.floor, w.floor.ByID[ch.Channel], name) != 0 {
					w.t.Fatalf("%s in #%s is next, and %s has the turn", name, ch.Channel, ch.Agent)
				}
			}
		}
	}
	for id, c := range w.floor.ByID {
		queue := c.Queue()
		for _, name := range w.agents {
			key := string(id) + "/" + string(name)
			at := slices.Index(queue, name)
			if at < 0 || asked(w.floor, c, name) == 0 {
				delete(w.before, key)
			} else if _, waits := w.before[key]; !waits {
				w.before[key] = at
			}
		}
	}
}
