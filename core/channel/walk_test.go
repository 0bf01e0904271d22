package channel

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// can is the set of additional inputs of a walk. Always possible are: agents connect and
// disconnect, are assigned, speak, complete and time out; people speak; messages, acknowledgements
// and timers arrive too late.
type can int

const (
	slow        can = 1 << iota // an action takes time; otherwise it is done at once
	waits                       // agents wait, and people end their waits
	passes                      // agents pass
	skips                       // people skip a turn
	removes                     // people remove agents
	grants                      // people grant turns
	disables                    // people disable agents and enable them
	limits                      // agents reach a limit, which is lifted later
	holds                       // the team is held and released
	crashes                     // agents crash; no row distinguishes that from a regular disconnection
	quietly                     // agents complete without text, or end an answer without completing the turn
	speaksFirst                 // agents speak before they complete
	all         can = 1<<iota - 1
)

// scene is a team and the inputs that its walk uses.
type scene struct {
	agents, channels int
	modes            []Mode // modes of people's messages
	open             int    // number of people's messages that may be open; at this number they stop
	can              can
	lead             bool // the first agent is the lead of the channel
	deaf, detect     bool
	rounds           int
	size             string // the smallest FAIRLEAD_LONG that walks it: empty, ci or long (package testsize)
}

var every = []Mode{ByQueue, Interrupt, Inject, Parallel}

// scenes are the walks. The long ones cover four agents in one channel and three agents in two
// channels, as far as a machine can visit all states. A smaller scene covers what a large scene
// omits. Channels affect each other only through their agents (apart checks that at every step), so
// scenes with two channels omit most inputs of a single channel.
var scenes = []scene{
	{agents: 1, channels: 1, modes: every, open: 1, can: all, rounds: 1},
	{
		agents: 2, channels: 1, modes: []Mode{Interrupt}, open: 1, can: waits | grants | removes | speaksFirst, rounds: 1, lead: true,
		size: "ci",
	},
	{agents: 2, channels: 1, modes: []Mode{Interrupt}, open: 1, can: grants | removes, rounds: 1, lead: true},
	{agents: 2, channels: 1, modes: []Mode{Parallel}, open: 1, can: slow | skips | speaksFirst, rounds: 1},
	{agents: 2, channels: 1, modes: []Mode{Inject}, open: 1, can: waits | passes | speaksFirst, rounds: 1},
	{agents: 3, channels: 1, modes: []Mode{Inject}, open: 1, can: waits | passes | speaksFirst, rounds: 1, size: "ci"},
	{agents: 4, channels: 1, modes: []Mode{ByQueue}, open: 1, can: speaksFirst, rounds: 0, size: "ci"},
	{agents: 2, channels: 2, modes: []Mode{ByQueue}, open: 1, can: speaksFirst, rounds: 0, size: "ci"},

	{agents: 4, channels: 1, modes: []Mode{ByQueue}, open: 1, can: waits | passes | skips | removes | speaksFirst, rounds: 1, size: "long"},
	{agents: 4, channels: 1, modes: []Mode{Inject}, open: 1, can: waits | passes | skips | removes | speaksFirst, rounds: 1, size: "long"},
	{
		agents: 4, channels: 1, modes: []Mode{Interrupt}, open: 1, can: waits | passes | skips | removes | speaksFirst, rounds: 1,
		size: "long",
	},
	{agents: 4, channels: 1, modes: []Mode{Inject}, open: 1, can: slow | speaksFirst, rounds: 1, size: "long"},
	{agents: 4, channels: 1, modes: []Mode{Parallel}, open: 1, can: passes | speaksFirst, rounds: 0, size: "long"},
	{agents: 3, channels: 1, modes: every, open: 1, can: waits | passes | skips | removes | speaksFirst, rounds: 1, size: "long"},
	{
		agents: 2, channels: 1, modes: []Mode{Interrupt, Inject}, open: 2, can: waits | grants | speaksFirst, rounds: 1, lead: true,
		size: "long",
	},
	{agents: 3, channels: 2, modes: []Mode{ByQueue}, open: 1, rounds: 1, size: "long"},
}

func (s scene) String() string {
	name := fmt.Sprintf("agents=%d,channels=%d,modes=%s,open=%d,rounds=%d", s.agents, s.channels, strings.Join(names(s.modes), "+"), s.open,
		s.rounds)
	for i, word := range []string{
		"slow", "waits", "passes", "skips", "removes", "grants", "disables", "limits", "holds", "crashes",
		"quietly", "chats",
	} {
		if s.can&(1<<i) != 0 {
			name += "," + word
		}
	}
	for i, is := range []bool{s.lead, s.deaf, s.detect} {
		if is {
			name += []string{",lead", ",deaf", ",detect"}[i]
		}
	}
	return name
}

func names(modes []Mode) []string {
	list := make([]string, 0, len(modes))
	for _, mode := range modes {
		list = append(list, string(mode))
	}
	return list
}

// print is two hashes of a state with seeds of this run. The probability that two of ten million
// states have the same print is below 1e-24.
type print [2]uint64

// walk is a breadth-first search of all states of a scene.
type walk struct {
	scene
	*form
	t     *testing.T
	seen  map[print]struct{}
	seeds [2]maphash.Seed
	todo  []string
	steps int
	held  bool // in the current state
}

// TestEveryState checks the invariants of a channel (invariants_test.go) in every state that it can
// reach. At most one agent has the turn, and it has a deadline. No participant is overtaken or
// forgotten. No channel is parked while an agent could answer. Late inputs change nothing, and no
// channel affects another.
func TestEveryState(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.String(), func(t *testing.T) {
			if s.size == "long" && !testsize.Long() || s.size == "ci" && !testsize.CI() {
				t.Skip("only with a larger FAIRLEAD_LONG")
			}
			if testsize.Race && (s.agents*s.channels > 2 || s.can == all) {
				t.Skip("not with the race detector, because the code is not concurrent (.ci/run days)")
			}
			began := time.Now()
			w := newWalk(t, s)
			w.visit(w.start())
			for len(w.todo) > 0 {
				key := w.todo[len(w.todo)-1]
				w.todo = w.todo[:len(w.todo)-1]
				w.from(key)
			}
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			t.Logf("%d states, %d steps, %.1f s, %d MiB", len(w.seen), w.steps, time.Since(began).Seconds(), mem.Sys>>20)
		})
	}
}

func newWalk(t *testing.T, s scene) *walk {
	set := DefaultSettings()
	set.RoundsMax, set.AutoDetectEnd = s.rounds, s.detect
	if s.lead {
		set.Lead = "a0"
	}
	return &walk{
		scene: s, form: newForm(s.agents, s.channels, set, AgentSettings{NoInputMidAnswer: s.deaf, NoEnd: s.deaf}), t: t,
		seen: map[print]struct{}{}, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

// start returns a team in which no agent is connected.
func (w *walk) start() *Channels {
	cs := &Channels{}
	for _, name := range w.form.agents {
		w.must(cs, AgentConfigured{name, w.own})
	}
	for _, id := range w.form.channels {
		w.must(cs, ChannelConfigured{id, w.settings})
	}
	return cs
}

func (w *walk) must(cs *Channels, in Input) {
	changes, err := decide(w.t, cs, in, w.now())
	if err != nil || len(changes) == 0 {
		w.t.Fatalf("%T %+v is refused: %v", in, in, err)
	}
	for _, ch := range changes {
		cs.Apply(ch)
	}
}

func (w *walk) now() Now { return Now{At: machinetest.Noon, Held: w.held} }

func (w *walk) keyOf(cs *Channels) string {
	if w.held {
		return "h" + w.key(cs)
	}
	return "r" + w.key(cs)
}

func (w *walk) visit(cs *Channels) {
	key := w.keyOf(cs)
	is := print{maphash.String(w.seeds[0], key), maphash.String(w.seeds[1], key)}
	if _, seen := w.seen[is]; !seen {
		w.seen[is] = struct{}{}
		w.todo = append(w.todo, key)
	}
}

// from applies all possible inputs to one state.
func (w *walk) from(key string) {
	w.held = key[0] == 'h'
	cs := w.decode(key[1:])
	if again := w.keyOf(cs); again != key {
		w.t.Fatalf("the canonical form of a canonical state differs from it:\n%x\n%x\n%s", key, again, snapshotText(w.t, cs))
	}
	was := before(cs)
	for _, in := range w.inputs(cs) {
		if next := w.step(cs, was, in); next != nil {
			w.visit(next)
		}
	}
	if w.can&holds != 0 {
		w.held = !w.held
		next := clone(cs)
		if !w.held {
			next = w.step(cs, was, Released{})
		}
		if next == nil {
			next = cs
		}
		w.visit(next)
	}
}

// step applies one input to one state and checks the result. It returns nil if nothing changed.
func (w *walk) step(cs *Channels, was map[ChannelID]past, in Input) *Channels {
	now := w.now()
	if timer, ok := in.(TimerFired); ok {
		now.At = timer.About.At
	}
	changes, err := decide(w.t, cs, in, now)
	if err != nil || len(changes) == 0 {
		return nil
	}
	w.steps++
	next := clone(cs)
	if !everywhere(in) {
		next = touched(cs, changes) // unchanged channels are shared and not checked again
	}
	for _, ch := range changes {
		next.Apply(ch)
	}
	if w.can&slow == 0 {
		w.tellAll(cs, next, now)
	}
	for _, id := range w.form.channels {
		if next.ByID[id] == cs.ByID[id] {
			continue
		}
		if err := sound(next, id, next.ByID[id], now); err != nil {
			w.t.Fatalf("after %T %+v: #%s: %v\nfrom %s\nto %s", in, in, id, err, snapshotText(w.t, cs), snapshotText(w.t, next))
		}
	}
	if err := step(was, next, in, changes); err != nil {
		w.t.Fatalf("%T %+v: %v\nfrom %s\nto %s", in, in, err, snapshotText(w.t, cs), snapshotText(w.t, next))
	}
	if err := inOrder(cs, changes); err != nil {
		w.t.Fatalf("after %T %+v: %v\nfrom %s", in, in, err, snapshotText(w.t, cs))
	}
	return next
}

// tellAll does every action of the channels that changed, until none is pending.
func (w *walk) tellAll(was, cs *Channels, now Now) {
	for _, id := range w.form.channels {
		for range 20 {
			actions := cs.Actions(id, now)
			if len(actions) == 0 || cs.ByID[id] == was.ByID[id] {
				break
			}
			w.must(cs, ActionConfirmed{Token: actions[0].Token, Do: actions[0].Do, N: actions[0].N})
		}
	}
}

// inputs returns all inputs that are possible in a state, except holds.
func (w *walk) inputs(cs *Channels) []Input {
	var ins []Input
	for _, name := range w.form.agents {
		a := cs.Agents[name]
		if a.Connected {
			ins = append(ins, AgentGone{name, Disconnected, ""})
			if w.can&crashes != 0 {
				ins = append(ins, AgentGone{name, Crashed, ""}, AgentBeatsMissed{Agent: name, Last: machinetest.Noon.Add(-time.Hour)})
			}
		} else {
			ins = append(ins, AgentConnected{name})
		}
		if w.can&disables != 0 {
			ins = append(ins, DisableAsked{name}, EnableAsked{name})
		}
		if w.can&limits != 0 {
			ins = append(ins, LimitHit{name, "x"}, LimitLifted{name})
		}
	}
	for _, id := range w.form.channels {
		ins = w.people(ins, cs, id)
		ins = w.answers(ins, cs, id)
		ins = w.timers(ins, cs, id)
	}
	return ins
}

// people adds the inputs of people in a channel.
func (w *walk) people(ins []Input, cs *Channels, id ChannelID) []Input {
	c := cs.ByID[id]
	if len(c.Open) < w.open {
		for _, mode := range w.modes {
			ins = append(ins, HumanSpoke{Channel: id, By: "ada", Mode: mode, Bytes: 1})
		}
	}
	for _, name := range w.form.agents {
		p := c.Participants[name]
		if p == nil || p.Gone || p.State == "" {
			ins = append(ins, AssignAsked{id, name})
		}
		if p == nil || p.Gone {
			continue
		}
		if w.can&removes != 0 {
			ins = append(ins, RemoveAsked{id, name})
		}
		if w.can&grants != 0 && cs.Agents[name].Online() && c.Head.Holder != name {
			ins = append(ins, GrantAsked{id, name, true})
		}
	}
	if c.Head.Holder != "" && w.can&skips != 0 {
		ins = append(ins, SkipAsked{Channel: id}, SkipAsked{Channel: id, Turn: c.Head.Turn - 1})
	}
	if c.Head.Holder != "" && c.Participants[c.Head.Holder].State == Waiting && w.can&waits != 0 {
		ins = append(ins, OverrideAsked{id, true}, OverrideAsked{id, false})
	}
	return ins
}

// answers adds the inputs of agents in a channel: with their turn, without it, and after it.
func (w *walk) answers(ins []Input, cs *Channels, id ChannelID) []Input {
	c := cs.ByID[id]
	h := &c.Head
	for _, t := range cs.Actions(id, w.now()) {
		ins = append(ins, ActionConfirmed{Token: t.Token, Do: t.Do, N: t.N})
	}
	for _, name := range w.form.agents {
		if p := c.Participants[name]; p != nil {
			for _, a := range p.Parallel {
				ins = append(ins, Said{Token: Token{Channel: id, Agent: name}, Bytes: 1, Ended: true, Re: a.N})
				if w.can&quietly != 0 {
					ins = append(ins, Said{Token: Token{Channel: id, Agent: name}, Bytes: 1, Re: a.N},
						Said{Token: Token{Channel: id, Agent: name}, Ended: true, Re: a.N})
				}
			}
		}
	}
	if h.Aside.Message != 0 {
		ins = append(ins, Said{Token: Token{Channel: id, Agent: h.Aside.Agent}, Bytes: 1, Ended: true, Re: h.Aside.Message})
	}
	if h.Holder == "" {
		return ins
	}
	token, old := Token{id, h.Holder, h.Turn}, Token{id, h.Holder, h.Turn - 1}
	ins = append(ins, Said{Token: token, Bytes: 1, Complete: true})
	if w.can&speaksFirst != 0 {
		ins = append(ins, Said{Token: token, Bytes: 1})
	}
	ins = append(ins, Said{Token: old, Bytes: 1, Complete: true}, ActionConfirmed{Token: old, Do: TellTurn, N: old.Turn},
		ActionForgotten{Token: token, Do: TellTurn, N: token.Turn})
	if w.can&quietly != 0 {
		ins = append(ins, Said{Token: token, Complete: true}, Said{Token: token, Ended: true}, Worked{token}, Worked{old})
	}
	if w.can&passes != 0 {
		ins = append(ins, PassAsked{token}, PassAsked{old})
	}
	if w.can&waits != 0 {
		ins = append(ins, WaitAskedFor{Token: token}, WaitOver{token}, WaitAskedFor{Token: old}, WaitOver{old})
	}
	return ins
}

// timers adds the running timers, and each of them as a late one.
func (w *walk) timers(ins []Input, cs *Channels, id ChannelID) []Input {
	cs.ByID[id].deadlines(func(what TimerKind, n uint64, at time.Time) {
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

// touched returns a state that shares the channels which the changes do not affect.
func touched(cs *Channels, changes []change.Change) *Channels {
	n := &Channels{Agents: maps.Clone(cs.Agents), ByID: maps.Clone(cs.ByID)}
	for i := range changes {
		if id := Of(&changes[i]); id != "" && n.ByID[id] == cs.ByID[id] {
			n.ByID[id] = cs.ByID[id].clone()
		}
	}
	return n
}

// clone copies a state. Slices of participants and heads are shared, because they are never
// modified.
func clone(cs *Channels) *Channels {
	n := &Channels{Agents: maps.Clone(cs.Agents), ByID: make(map[ChannelID]*Channel, len(cs.ByID))}
	for id, c := range cs.ByID {
		n.ByID[id] = c.clone()
	}
	return n
}

func (c *Channel) clone() *Channel {
	return &Channel{Settings: c.Settings, Head: c.Head, Participants: maps.Clone(c.Participants), Open: slices.Clone(c.Open)}
}

// TestCanonicalFormIsEquivalent applies random inputs to random teams, including inputs that the scenes
// omit, and checks the invariants at every step. Sometimes it also checks that the same steps lead
// from a state and from its canonical form to the same canonical states. To repeat a run: -run
// 'CanonicalFormIsEquivalent/seed=7$'
func TestCanonicalFormIsEquivalent(t *testing.T) {
	seeds := testsize.Pick[uint64](50, 200, 5000)
	if testsize.Race {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 77))
			w := newWalk(t, someScene(rnd))
			cs := w.start()
			for i := range 300 {
				ins := w.inputs(cs)
				if next := w.step(cs, before(cs), ins[rnd.IntN(len(ins))]); next != nil {
					cs = next
				}
				if w.can&holds != 0 && rnd.IntN(30) == 0 {
					if w.held = !w.held; !w.held {
						w.release(cs)
					}
				}
				if i%25 == 0 {
					w.alike(cs)
				}
			}
		})
	}
}

func someScene(rnd *rand.Rand) scene {
	s := scene{
		agents: 1 + rnd.IntN(4), channels: 1 + rnd.IntN(2), modes: every, open: 1 + rnd.IntN(4), can: all, rounds: rnd.IntN(3),
		lead: rnd.IntN(2) == 0, deaf: rnd.IntN(2) == 0, detect: rnd.IntN(2) == 0,
	}
	if rnd.IntN(3) == 0 {
		s.can &^= slow
	}
	if rnd.IntN(2) == 0 {
		s.can &^= disables | limits | holds | crashes
	}
	if rnd.IntN(2) == 0 {
		s.can &^= removes | skips
	}
	return s
}

func (w *walk) alike(cs *Channels) {
	lean := w.decode(w.key(cs))
	a, b := w.follow(cs), w.follow(lean)
	if !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
		w.t.Errorf("a state and its canonical form behave differently:\n%s\n%s", snapshotText(w.t, cs), snapshotText(w.t, lean))
		for key, in := range a {
			if _, ok := b[key]; !ok {
				w.t.Errorf("only the state: %T %+v: %x", in, in, key)
			}
		}
		for key, in := range b {
			if _, ok := a[key]; !ok {
				w.t.Errorf("only its form: %T %+v: %x", in, in, key)
			}
		}
		w.t.FailNow()
	}
}

func (w *walk) release(cs *Channels) {
	changes, err := decide(w.t, cs, Released{}, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, ch := range changes {
		cs.Apply(ch)
	}
}

// follow returns the canonical forms that one step can lead to.
func (w *walk) follow(cs *Channels) map[string]Input {
	next := map[string]Input{}
	was := before(cs)
	for _, in := range append(w.inputs(cs), Released{}) {
		if is := w.step(cs, was, in); is != nil {
			next[w.key(is)] = in
		}
	}
	return next
}
