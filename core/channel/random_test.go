package channel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/google/go-cmp/cmp"
)

// world records what happens besides the machine: what was said and what each agent received. It
// uses no table.
type world struct {
	t        testing.TB
	state    *Channels
	replayed *Channels // the state decoded from the journal
	now      Now
	agents   []AgentID
	channels []ChannelID

	life   map[AgentID]int               // number of times that it went offline
	given  map[string]int                // channel/agent/life/message → how often it was received
	author map[ChannelID]map[uint64]bool // messages of people
	done   map[ChannelID]map[uint64]MessageState
	spoke  map[string]uint64 // channel/agent → its last message in a turn
	before map[string]int    // channel/agent with a message to answer → at most this many turns of other agents before its own
	late   []Deadline        // deadlines that no longer apply
	inputs int
}

func newWorld(t testing.TB, rnd *rand.Rand) *world {
	w := &world{
		t: t, state: &Channels{}, replayed: &Channels{}, now: Now{At: machinetest.Noon}, life: map[AgentID]int{}, given: map[string]int{},
		author: map[ChannelID]map[uint64]bool{}, done: map[ChannelID]map[uint64]MessageState{}, before: map[string]int{},
		spoke: map[string]uint64{},
	}
	for i := range 1 + rnd.IntN(5) {
		w.agents = append(w.agents, AgentID(fmt.Sprint("a", i)))
		w.decide(AgentConfigured{
			Agent: w.agents[i],
			Settings: AgentSettings{
				NoInputMidAnswer: rnd.IntN(4) == 0, NoEnd: rnd.IntN(2) == 0,
				Timeout: time.Duration(rnd.IntN(2)) * 20 * time.Second,
			},
		})
	}
	for i := range 1 + rnd.IntN(3) {
		id := ChannelID(fmt.Sprint("c", i))
		w.channels = append(w.channels, id)
		w.author[id], w.done[id] = map[uint64]bool{}, map[uint64]MessageState{}
		set := DefaultSettings()
		set.RoundsMax = rnd.IntN(4)
		set.AutoDetectEnd = rnd.IntN(2) == 0
		if rnd.IntN(2) == 0 {
			set.Lead = w.agents[rnd.IntN(len(w.agents))]
		}
		w.decide(ChannelConfigured{Channel: id, Settings: set})
	}
	for _, name := range w.agents {
		w.decide(AgentConnected{name})
		for _, id := range w.channels {
			if rnd.IntN(3) > 0 {
				w.decide(AssignAsked{Channel: id, Agent: name})
			}
		}
	}
	return w
}

// TestRandomOrders applies random inputs to a thousand teams and checks the invariants after each
// one. To repeat a run: -run 'RandomOrders/seed=7$'
func TestRandomOrders(t *testing.T) {
	seeds := testsize.Pick[uint64](60, 400, 4000)
	if testsize.Race {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t, rnd)
			for range 200 {
				w.happen(rnd.Uint64())
			}
			w.settle()
		})
	}
}

// FuzzOrders applies inputs that the fuzzer chooses.
func FuzzOrders(f *testing.F) {
	f.Add([]byte{0, 4, 0, 0, 5, 1, 12, 0, 13, 0, 14, 0})
	f.Add([]byte{1, 4, 3, 0, 1, 0, 3, 7, 12, 9, 14, 2, 15, 3, 16, 4})
	f.Add([]byte{3, 0, 2, 0, 12, 0, 0, 1, 14, 0, 12, 7, 12, 9, 20, 1, 21, 1})
	f.Fuzz(func(t *testing.T, orders []byte) {
		if len(orders) == 0 || len(orders) > 1000 {
			return
		}
		rnd := rand.New(rand.NewPCG(uint64(orders[0]), 1))
		w := newWorld(t, rnd)
		for i := 1; i+1 < len(orders); i += 2 {
			w.happen(uint64(orders[i]) | uint64(orders[i+1])<<8 | rnd.Uint64()<<16)
		}
		w.settle()
	})
}

func from[T any](list []T, n uint64) T { return list[n%uint64(len(list))] }

// happen applies one random input. The low byte chooses its kind, the rest its details.
func (w *world) happen(n uint64) {
	w.now.At = w.now.At.Add(time.Duration(n>>8%3000) * time.Millisecond)
	how := n >> 8
	id, name := from(w.channels, how), from(w.agents, how>>4)
	c := w.state.ByID[id]
	token := Token{Channel: id, Agent: c.Head.Holder, Turn: c.Head.Turn}
	if how>>20%5 == 0 {
		token = Token{Channel: id, Agent: name, Turn: c.Head.Turn - how>>24%3}
	}
	modes := []Mode{"", ByQueue, Interrupt, Inject, Parallel}
	switch what := n & 0xff % 32; what {
	case 0, 1, 2, 3:
		w.decide(HumanSpoke{Channel: id, By: "ada", Mode: from(modes, how>>8), Bytes: 5})
	case 4, 5, 6, 7, 8, 9, 10, 11:
		w.doAction(id, how>>8)
	case 12, 13, 14, 15:
		w.decide(Said{Token: token, Bytes: int(how >> 8 % 2), Complete: true, Ended: true})
	case 16, 17:
		w.say(c, token, how)
	case 18:
		w.decide(from([]Input{PassAsked{token}, Worked{token}, FinishAsked{Token: token}, FinishAsked{Token: token, Pass: true}}, how>>12))
	case 19:
		w.decide(WaitAskedFor{Token: token, Why: "it"})
	case 20:
		w.decide(WaitOver{token})
	case 21, 22:
		w.timer(id, how)
	case 23:
		w.decide(AssignAsked{Channel: id, Agent: name})
	case 24:
		w.decide(from([]Input{RemoveAsked{id, name}, SkipAsked{Channel: id}, OverrideAsked{id, true}, OverrideAsked{id, false}}, how>>8))
	case 25:
		w.decide(GrantAsked{Channel: id, Agent: name, Now: how>>8%2 == 0})
	case 26, 27:
		w.decide(AgentConnected{name})
	case 28:
		w.decide(from([]Input{
			AgentGone{name, Disconnected, ""},
			AgentGone{name, Crashed, "x"},
			AgentBeatsMissed{name, w.now.At.Add(-time.Hour)},
		}, how>>8))
	case 29:
		w.decide(from([]Input{
			DisableAsked{name},
			EnableAsked{name},
			EnableAsked{name},
			LimitHit{name, "x"},
			LimitLifted{name},
			LimitLifted{name},
		}, how>>8))
	case 30:
		w.now.Held = how>>8%3 == 0
		w.decide(Released{})
	case 31:
		w.restart()
	}
}

func (w *world) say(c *Channel, token Token, how uint64) {
	in := Said{Token: token, Bytes: int(how >> 8 % 2), Ended: how>>9%2 == 0}
	if a := c.Head.Aside; a.Message != 0 && how>>10%2 == 0 {
		in.Agent, in.Re, in.Turn = a.Agent, a.Message, 0
	} else if p := c.Participants[token.Agent]; p != nil && len(p.Parallel) > 0 {
		in.Re = p.Parallel[0].N
	}
	w.decide(in)
}

// action does the first action of a channel, or any other one, or acknowledges an action that was
// never pending.
func (w *world) doAction(id ChannelID, how uint64) {
	actions := w.state.Actions(id, w.now)
	if len(actions) == 0 || how%16 == 0 {
		w.decide(ActionConfirmed{
			Token: Token{id, from(w.agents, how>>4), how >> 8 % 9},
			Do:    from([]ActionKind{StopWork, TellAside, TellTurn, TellGoOn, TellMessage}, how>>12), N: how >> 16 % 9,
		})
		return
	}
	action := actions[how>>4%uint64(min(2, len(actions)))]
	w.do(action)
	if how>>20%8 == 0 {
		w.loses(action)
	}
}

// loses makes an agent lose the conversation in which it received an action. The action must become
// pending again.
func (w *world) loses(t Action) {
	if len(w.decide(ActionForgotten{Token: t.Token, Do: t.Do, N: t.N})) == 0 {
		return
	}
	delete(w.given, fmt.Sprintf("%s/%s/%d/%d", t.Token.Channel, t.Token.Agent, w.life[t.Token.Agent], t.N))
	if t.Token.Turn != 0 {
		w.again(t.Token.Channel, t.Token.Agent)
	}
	if !slices.ContainsFunc(w.state.Actions(t.Token.Channel, w.now), func(a Action) bool { return a.Token == t.Token }) && !w.now.Held {
		w.t.Fatalf("%s was delivered in a lost conversation, but is not pending again", t.Key)
	}
}

// again forgets which messages an agent received, after it lost them.
func (w *world) again(channel ChannelID, agent AgentID) {
	p := w.state.ByID[channel].Participants[agent]
	for n := p.Heard + 1; n <= w.state.ByID[channel].Head.Seq; n++ {
		if !slices.Contains(p.Ahead, n) {
			delete(w.given, fmt.Sprintf("%s/%s/%d/%d", channel, agent, w.life[agent], n))
		}
	}
}

// do delivers the text of an action and acknowledges it. It checks that no message is delivered
// twice.
func (w *world) do(t Action) {
	var what []uint64
	switch t.Do {
	case TellAside, TellMessage:
		what = []uint64{t.N}
	case TellTurn:
		what = t.Given.Also
		for n := t.Given.From; n <= t.Given.To; n++ {
			if !slices.Contains(t.Given.But, n) {
				what = append(what, n)
			}
		}
	case StopWork, TellGoOn:
	}
	if os.Getenv("TRACE") != "" {
		fmt.Printf("do %+v\n", t)
	}
	for _, n := range what {
		if !w.author[t.Token.Channel][n] {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d/%d", t.Token.Channel, t.Token.Agent, w.life[t.Token.Agent], n)
		if w.given[key]++; w.given[key] > 1 {
			w.t.Fatalf("%s receives message %d twice", t.Token.Agent, n)
		}
	}
	if changes := w.decide(ActionConfirmed{Token: t.Token, Do: t.Do, N: t.N}); len(changes) == 0 {
		w.t.Fatalf("the action %s was done but is still pending", t.Key)
	}
	for _, again := range w.state.Actions(t.Token.Channel, w.now) {
		if again.Key == t.Key {
			w.t.Fatalf("%s was done but is pending again", t.Key)
		}
	}
}

func (w *world) timer(id ChannelID, how uint64) {
	if len(w.late) > 0 && how>>8%3 == 0 {
		d := from(w.late, how>>12)
		w.now.At = later(w.now.At, d.At)
		w.decide(TimerFired{About: d})
		return
	}
	d := w.state.Deadline(id)
	if d.At.IsZero() {
		return
	}
	w.late = append(w.late, d)
	w.now.At = later(w.now.At, d.At)
	if changes := w.decide(TimerFired{About: d}); len(changes) == 0 {
		w.t.Fatalf("%+v has passed without an effect", d)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// restart simulates a crash of Fairlead: only a snapshot is left.
func (w *world) restart() {
	back := snapshot(w.t, w.state)
	same(w.t, "the snapshot", w.state, back)
	w.state = back
}

func same(t testing.TB, what string, a, b *Channels) {
	t.Helper()
	if diff := cmp.Diff(a, b, cmp.Comparer(func(a, b *Channel) bool {
		return cmp.Equal(a.Settings, b.Settings) && cmp.Equal(a.Head, b.Head) && cmp.Equal(a.Participants, b.Participants) &&
			slices.EqualFunc(a.Open, b.Open, func(a, b Message) bool { return a == b }) &&
			slices.Equal(a.Queue(), b.Queue()) && slices.Equal(a.busy(), b.busy())
	})); diff != "" {
		t.Fatalf("%s differs:\n%s", what, diff)
	}
}

func (w *world) decide(in Input) []change.Change {
	seen := ""
	if w.inputs++; w.inputs%8 == 0 { // not after each input, because it takes most of the time
		seen = snapshotText(w.t, w.state)
	}
	changes, err := decide(w.t, w.state, in, w.now)
	if seen != "" && seen != snapshotText(w.t, w.state) {
		w.t.Fatalf("Decide of %T changed the state", in)
	}
	if err != nil {
		return nil
	}
	if os.Getenv("TRACE") != "" {
		fmt.Printf("%T %+v\n", in, in)
		for _, ch := range changes {
			fmt.Printf("      %s %s %s->%s %s %s %+v\n", ch.Entity, change.As[Set](ch.Body).Agent, ch.From, ch.To, ch.Row, ch.Trigger,
				change.As[Set](ch.Body).Body.Messages)
		}
	}
	was := before(w.state)
	for _, ch := range changes {
		w.replayed.Apply(journaled(w.t, ch))
		w.state.Apply(ch)
		w.note(&ch)
	}
	if gone, ok := in.(AgentGone); ok {
		w.life[gone.Agent]++
	}
	switch in := in.(type) {
	case AgentBeatsMissed:
		w.life[in.Agent]++
	case DisableAsked:
		w.life[in.Agent]++
	}
	for _, ch := range changes { // an agent that leaves and returns receives unanswered messages again
		agent := change.As[Set](ch.Body).Agent
		if event := Event(ch.Trigger); event == Assigned || event == Removed {
			w.life[agent]++
		}
		if ch.Trigger == string(TimedOut) { // an agent whose turn timed out receives them again, too
			w.again(Of(&ch), agent)
		}
	}
	w.check(was, in, changes)
	return changes
}

// note records what happened to people's messages.
func (w *world) note(ch *change.Change) {
	id, body := Of(ch), &change.As[Set](ch.Body).Body
	if p := body.Post; p != nil && p.Kind == OfHuman {
		w.author[id][p.N] = true
	} else if p != nil && p.Kind == OfTurn {
		w.spoke[string(id)+"/"+p.By] = p.N
	}
	for _, m := range body.Messages {
		switch was := w.done[id][m.N]; {
		case was == Answered && m.State != Answered, was == Lapsed:
			w.t.Fatalf("message %d was %s and is now %s", m.N, was, m.State)
		case was == "" && m.State != Kept:
			w.t.Fatalf("message %d begins as %s", m.N, m.State)
		case m.State == Answered && was != Delivered && was != Answered:
			w.t.Fatalf("message %d is answered, but no agent received it", m.N)
		}
		w.done[id][m.N] = m.State
	}
}

// settle ends a run: all agents are online and do what they are asked, and a person speaks once
// more. No message may stay unanswered.
func (w *world) settle() {
	same(w.t, "the journal", w.state, w.replayed)
	w.now.Held = false
	w.decide(Released{})
	for _, name := range w.agents {
		w.decide(EnableAsked{name})
		w.decide(LimitLifted{name})
		w.decide(AgentConnected{name})
		for _, id := range w.channels {
			w.decide(AssignAsked{Channel: id, Agent: name})
		}
	}
	for _, id := range w.channels {
		w.decide(HumanSpoke{Channel: id, By: "ada", Mode: ByQueue, Bytes: 1})
	}
	for _, id := range w.channels {
		for i := range 2000 {
			if !w.well(id, i < 30) {
				break
			}
		}
		c := w.state.ByID[id]
		if c.Head.Holder != "" || c.Head.Aside.Message != 0 {
			w.t.Fatalf("#%s does not become idle: %+v", id, c.Head)
		}
		for n := range w.author[id] {
			if state := w.done[id][n]; state != Answered && state != Lapsed {
				w.t.Fatalf("#%s: message %d is %s in the end: %+v", id, n, state, c.Open)
			}
		}
	}
}

// well does the next pending action of a channel; it returns false if there is none.
func (w *world) well(id ChannelID, talk bool) bool {
	c := w.state.ByID[id]
	h := &c.Head
	actions := w.state.Actions(id, w.now)
	switch {
	case len(actions) > 0:
		w.do(actions[0])
	case h.Aside.Message != 0:
		w.decide(Said{Token: Token{Channel: id, Agent: h.Aside.Agent}, Bytes: 1, Ended: true, Re: h.Aside.Message})
	case h.Holder != "" && c.Participants[h.Holder].State == Waiting:
		w.decide(OverrideAsked{Channel: id, GoOn: true})
	case h.Holder != "":
		in := Said{Token: Token{id, h.Holder, h.Turn}, Complete: true}
		waits := func(m Message) bool { return m.State == Delivered && m.Ends.IsZero() }
		if talk && h.Turn%2 == 1 || slices.ContainsFunc(c.Open, waits) { // a turn without text answers no message
			in.Bytes = 1
		}
		w.decide(in)
	case !w.state.Deadline(id).At.IsZero():
		d := w.state.Deadline(id)
		w.now.At = later(w.now.At, d.At)
		w.decide(TimerFired{About: d})
	default:
		return false
	}
	return true
}
