package turn

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// walk is every state that a floor can come to, one step after the other. States that differ
// in numbers and times alone are one: what counts is who stands where, who has which message,
// who has something to answer, and which timers run.
type walk struct {
	t        *testing.T
	agents   []AgentID
	channels []ChannelID
	modes    []Mode // of what a person says, who says no more while a message waits
	hands    bool   // people grant turns, too
	still    bool   // nobody is removed, and nobody waits
	brief    bool   // and whoever is told something is told at once, and answers or runs out of time
	seen     map[string]bool
	todo     []*Floor
	steps    int
}

// TestEveryState proves what holds of a channel in every state that it can come to.
func TestEveryState(t *testing.T) {
	every := []Mode{Inject, ByQueue, Interrupt, Parallel}
	long := os.Getenv("FAIRLEAD_LONG") != ""
	for _, c := range []struct {
		agents, channels int
		modes            []Mode
		hands, long      bool
		still, brief     bool
		lead             AgentID
	}{
		{agents: 1, channels: 1, modes: every, hands: true},
		{agents: 2, channels: 1, modes: []Mode{Interrupt}},
		{agents: 2, channels: 1, modes: []Mode{Interrupt}, lead: "a0"},
		{agents: 2, channels: 1, modes: []Mode{Parallel}},
		{agents: 3, channels: 1, modes: []Mode{Inject}},
		{agents: 4, channels: 1, modes: []Mode{ByQueue}, brief: true},
		{agents: 4, channels: 1, modes: []Mode{ByQueue}, still: true, long: true},
		{agents: 2, channels: 2, modes: []Mode{ByQueue}, brief: true},
		{agents: 3, channels: 2, modes: []Mode{ByQueue}, brief: true, long: true},
		{agents: 3, channels: 2, modes: []Mode{ByQueue}, still: true, long: true},
		{agents: 2, channels: 1, modes: every, hands: true, long: true},
		{agents: 4, channels: 1, modes: []Mode{Inject}, long: true},
	} {
		name := fmt.Sprintf("agents=%d,channels=%d,modes=%v,hands=%t,still=%t,brief=%t,lead=%s", c.agents, c.channels, c.modes, c.hands, c.still, c.brief, c.lead)
		t.Run(name, func(t *testing.T) {
			if c.long && !long {
				t.Skip("FAIRLEAD_LONG=1 walks it")
			}
			if raced && c.agents*c.channels > 2 {
				t.Skip("walked without the race detector, which has nothing to find here")
			}
			w := &walk{t: t, modes: c.modes, hands: c.hands, still: c.still || c.brief, brief: c.brief, seen: map[string]bool{}}
			w.start(c.agents, c.channels, c.lead)
			for len(w.todo) > 0 {
				f := w.todo[len(w.todo)-1]
				w.todo = w.todo[:len(w.todo)-1]
				for _, in := range w.inputs(f) {
					w.step(f, in)
				}
			}
			t.Logf("%d states, %d steps", len(w.seen), w.steps)
		})
	}
}

func (w *walk) start(agents, channels int, lead AgentID) {
	f := &Floor{}
	apply := func(in Input) {
		changes, err := decide(w.t, f, in, Now{At: noon})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, ch := range changes {
			f.Apply(ch)
		}
	}
	for i := range agents {
		w.agents = append(w.agents, AgentID(fmt.Sprint("a", i)))
		apply(AgentConfigured{Agent: w.agents[i]})
	}
	for i := range channels {
		id := ChannelID(fmt.Sprint("c", i))
		w.channels = append(w.channels, id)
		set := DefaultSettings()
		set.RoundsMax, set.Lead = 1, lead
		apply(ChannelConfigured{Channel: id, Settings: set})
	}
	w.visit(f)
}

func (w *walk) visit(f *Floor) {
	if key := w.key(f); !w.seen[key] {
		w.seen[key] = true
		w.todo = append(w.todo, f)
	}
}

// step does one input in one state, and looks at what became of it.
func (w *walk) step(f *Floor, in Input) {
	now := Now{At: noon}
	if timer, ok := in.(TimerFired); ok {
		now.At = timer.About.At
	}
	changes, err := decide(w.t, f, in, now)
	if err != nil || len(changes) == 0 {
		return
	}
	w.steps++
	next := clone(f)
	for _, ch := range changes {
		next.Apply(ch)
	}
	if !w.hands {
		w.stopAll(next)
	}
	rebase(next, now.At.Sub(noon))
	for id, c := range next.Channels {
		if err := holds(next, id, c, Now{At: noon}); err != nil {
			w.t.Fatalf("after %T %+v: #%s: %v\nfrom %s\nto %s", in, in, id, err, snapshotText(w.t, f), snapshotText(w.t, next))
		}
	}
	if err := step(heads(f), next, in, changes); err != nil {
		w.t.Fatalf("%T %+v: %v", in, in, err)
	}
	if err := inOrder(f, changes); err != nil {
		w.t.Fatalf("after %T %+v: %v\nfrom %s", in, in, err, snapshotText(w.t, f))
	}
	w.visit(next)
}

// stopAll has whoever is to be stopped stop at once, which halves the states: what waits for it
// is a removed agent's seat, and nothing else.
func (w *walk) stopAll(f *Floor) {
	for _, id := range w.channels {
		for _, t := range f.Todo(id, Now{At: noon}) {
			if t.Do != StopWork && t.Do != TellGoOn && !w.brief {
				continue
			}
			changes, err := decide(w.t, f, Told{Token: t.Token, Do: t.Do, N: t.N}, Now{At: noon})
			if err != nil || len(changes) == 0 {
				w.t.Fatalf("%s comes to nothing: %v", t.Key, err)
			}
			for _, ch := range changes {
				f.Apply(ch)
			}
		}
	}
}

// inOrder: nobody is overtaken. The turn goes past those only in front of whom nothing lies that
// they could answer: so whoever is queued has it within as many turns as the queue is long.
func inOrder(was *Floor, changes []Change) error {
	f := clone(was)
	for _, ch := range changes {
		if ch.Trigger == Granted && !ch.Body.Head.Lease.ByHand {
			c := f.Channels[ch.Channel]
			for _, name := range c.Queue() {
				if name == ch.Agent {
					break
				}
				s := c.Seats[name]
				spent := s.TookFor == c.Head.Human && s.Took >= c.Settings.RoundsMax
				for _, m := range c.Open {
					if m.State == Kept && m.Ends.IsZero() && m.N > s.Rest && !spent && f.Agents[name].Limit == "" {
						return fmt.Errorf("%s is given the turn in #%s, %s was before it and has message %d to answer", ch.Agent, ch.Channel, name, m.N)
					}
				}
			}
		}
		f.Apply(ch)
	}
	return nil
}

// inputs are all that can happen in a state.
func (w *walk) inputs(f *Floor) []Input {
	var ins []Input
	for _, name := range w.agents {
		if f.Agents[name].Connected {
			ins = append(ins, AgentGone{name, Disconnected, ""})
		} else {
			ins = append(ins, AgentConnected{name})
		}
	}
	for _, id := range w.channels {
		ins = append(ins, w.inputsOf(f, id)...)
	}
	return ins
}

func (w *walk) inputsOf(f *Floor, id ChannelID) []Input {
	c := f.Channels[id]
	h := &c.Head
	var ins []Input
	if len(c.Open) == 0 {
		for _, mode := range w.modes {
			ins = append(ins, HumanSpoke{Channel: id, By: "ada", Mode: mode, Bytes: 1})
		}
	}
	for _, name := range w.agents {
		if s := c.Seats[name]; (s == nil || s.Gone || s.State == "") && (len(w.agents) < 3 || f.Agents[name].Connected) {
			ins = append(ins, AssignAsked{id, name})
		}
		if s := c.Seats[name]; s != nil && !s.Gone && !w.still {
			ins = append(ins, RemoveAsked{id, name})
		}
		if w.hands && f.StateOf(name, id) == Queued {
			ins = append(ins, GrantAsked{id, name, true})
		}
		if s := c.Seats[name]; s != nil && len(s.Apart) > 0 {
			ins = append(ins, Said{Token: Token{Channel: id, Agent: name}, Bytes: 1, Ended: true, Re: s.Apart[0].N})
		}
	}
	for _, t := range f.Todo(id, Now{At: noon}) {
		ins = append(ins, Told{Token: t.Token, Do: t.Do, N: t.N})
	}
	if h.Aside.Message != 0 {
		ins = append(ins, Said{Token: Token{Channel: id, Agent: h.Aside.Agent}, Bytes: 1, Ended: true, Re: h.Aside.Message})
	}
	if h.Holder == "" {
		return append(ins, w.timers(c, id)...)
	}
	token, old := Token{id, h.Holder, h.Turn}, Token{id, h.Holder, h.Turn - 1}
	ins = append(ins, Said{Token: old, Bytes: 1, Complete: true}, Said{Token: token, Bytes: 1, Complete: true}, SkipAsked{Channel: id})
	if w.brief {
		return append(append(ins[:len(ins)-3:len(ins)-3], Said{Token: token, Bytes: 1, Complete: true}), w.timers(c, id)[:1]...)
	}
	if c.Seats[h.Holder].State == Waiting {
		ins = append(ins, WaitOver{token}, OverrideAsked{id, true}, OverrideAsked{id, false})
	} else {
		ins = append(ins, Said{Token: token, Complete: true}, PassAsked{token})
		if !w.still {
			ins = append(ins, WaitAskedFor{Token: token})
		}
	}
	return append(ins, w.timers(c, id)...)
}

// timers are those that run, and each of them as it would come too late.
func (w *walk) timers(c *Channel, id ChannelID) []Input {
	var ins []Input
	c.deadlines(func(what Clock, n uint64, at time.Time) {
		if !at.IsZero() {
			about := Deadline{Channel: id, What: what, N: n, At: at}
			late, wrong := about, about
			late.N--
			wrong.At = at.Add(-time.Second)
			ins = append(ins, TimerFired{about}, TimerFired{late}, TimerFired{wrong})
		}
	})
	return ins
}

// rebase moves all times back, so that a state is as if it had come about at noon.
func rebase(f *Floor, by time.Duration) {
	if by == 0 {
		return
	}
	back := func(at *time.Time) {
		if !at.IsZero() {
			*at = later(at.Add(-by), noon.Add(time.Nanosecond))
		}
	}
	for _, c := range f.Channels {
		for _, at := range []*time.Time{&c.Head.Lease.Ends, &c.Head.Lease.WaitTo, &c.Head.Lease.Silence, &c.Head.Lease.Since, &c.Head.Aside.Ends} {
			back(at)
		}
		for i := range c.Open {
			back(&c.Open[i].Ends)
		}
	}
}

// clone is a floor of its own. Slices in seats and heads are never written to.
func clone(f *Floor) *Floor {
	n := &Floor{Agents: maps.Clone(f.Agents), Channels: make(map[ChannelID]*Channel, len(f.Channels))}
	for id, c := range f.Channels {
		is := &Channel{Settings: c.Settings, Head: c.Head, Seats: maps.Clone(c.Seats), Open: slices.Clone(c.Open), queue: slices.Clone(c.queue), busy: maps.Clone(c.busy)}
		n.Channels[id] = is
	}
	return n
}

// key says what a state is like, whatever its numbers: agents that are alike are one another's
// equal, so that they are put in an order by what they are like.
func (w *walk) key(f *Floor) string {
	var out strings.Builder
	people := make([]string, 0, len(w.agents))
	for _, name := range w.agents {
		a := f.Agents[name]
		var one strings.Builder
		fmt.Fprint(&one, bits(a.Connected, a.Disabled, a.Crashed, a.Limit != ""))
		for _, id := range w.channels {
			seatKey(&one, f.Channels[id], name)
		}
		people = append(people, one.String())
	}
	slices.Sort(people)
	for _, id := range w.channels {
		headKey(&out, f.Channels[id])
	}
	return out.String() + strings.Join(people, "|")
}

func seatKey(out *strings.Builder, c *Channel, name AgentID) {
	s := c.Seats[name]
	h := &c.Head
	fmt.Fprint(out, "/", bits(h.Holder == name, h.Rests == name, h.Aside.Agent == name && h.Aside.Message != 0, h.Said.By == name, c.Settings.Lead == name))
	if s == nil {
		return
	}
	if s.State == "" && h.Rests != name { // what it has heard and answered is settled anew when it comes back
		fmt.Fprint(out, "-", bits(s.Owed, s.Stop != 0, s.Gone, s.TookFor == h.Human && s.Took > 0, len(s.Ahead) > 0))
		apartKey(out, c, s)
		return
	}
	took := 0
	if s.TookFor == h.Human && c.Settings.RoundsMax > 0 {
		took = min(s.Took, c.Settings.RoundsMax)
	}
	fmt.Fprint(out, s.State, slices.Index(c.Queue(), name), ",", took, bits(s.Owed, s.Stop != 0, s.Gone, h.Said.Last > s.Rest, h.Said.Else > s.Rest))
	for _, m := range c.Open {
		fmt.Fprint(out, bits(m.N > s.Rest, m.N > s.Heard, slices.Contains(s.Ahead, m.N)))
	}
	apartKey(out, c, s)
}

func apartKey(out *strings.Builder, c *Channel, s *Seat) {
	for _, a := range s.Apart {
		i, ok := find(c.Open, a.N)
		fmt.Fprint(out, "a", i, bits(ok, a.Told, a.N > s.Heard))
	}
}

func headKey(out *strings.Builder, c *Channel) {
	h := &c.Head
	l := &h.Lease
	i, ok := find(c.Open, h.Aside.Message)
	parked := h.Parked
	if parked == Passed {
		parked = Quiet // another word for people; what happens next is the same
	}
	fmt.Fprint(out, "#", parked, bits(l.Told, l.Stopped, l.Left > 0, !l.Ends.IsZero(), !l.WaitTo.IsZero(), !l.Silence.IsZero()))
	fmt.Fprint(out, i, bits(ok, h.Aside.Message != 0, h.Aside.Told, h.Said.Last > l.Upto, h.Said.Else > l.Upto))
	for _, m := range c.Open {
		fmt.Fprint(out, "m", m.Mode, m.State, bits(!m.Ends.IsZero(), m.N <= l.Upto, slices.Contains(l.Ahead, m.N)))
	}
}

func bits(all ...bool) string {
	b := make([]byte, len(all))
	for i, is := range all {
		b[i] = '0'
		if is {
			b[i] = '1'
		}
	}
	return string(b)
}
