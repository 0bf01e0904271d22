package channel

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// busy returns a channel with this number of agents after this number of turns.
func busy(b testing.TB, agents, turns int) *Channels {
	cs := crowd(b, agents, "c")
	for range turns {
		handOff(b, cs, "c")
	}
	return cs
}

// crowd returns this number of agents. All of them participate in every channel, and in each
// channel one agent has the turn.
func crowd(b testing.TB, agents int, channels ...ChannelID) *Channels {
	cs := &Channels{}
	apply := func(in Input) {
		changes, err := cs.Decide(in, Now{At: machinetest.Noon})
		if err != nil {
			b.Fatal(err)
		}
		for _, ch := range changes {
			cs.Apply(ch)
		}
	}
	set := DefaultSettings()
	set.RoundsMax = 0
	for i := range agents {
		name := AgentID(fmt.Sprint("agent", i))
		apply(AgentConfigured{Agent: name})
		apply(AgentConnected{name})
	}
	for _, id := range channels {
		apply(ChannelConfigured{Channel: id, Settings: set})
		for i := range agents {
			apply(AssignAsked{Channel: id, Agent: AgentID(fmt.Sprint("agent", i))})
		}
		apply(HumanSpoke{Channel: id, By: "ada", Bytes: 1})
	}
	return cs
}

// handOff ends the current turn with an answer, begins the next one, and acknowledges its prompt.
func handOff(b testing.TB, cs *Channels, id ChannelID) {
	h := &cs.ByID[id].Head
	step := func(in Input) {
		list, err := cs.Decide(in, Now{At: machinetest.Noon})
		if err != nil {
			b.Fatal(err)
		}
		for _, ch := range list {
			cs.Apply(ch)
		}
	}
	step(Said{Token: Token{id, h.Holder, h.Turn}, Bytes: 1000, Complete: true})
	actions := cs.Actions(id, Now{At: machinetest.Noon})
	step(ActionConfirmed{Token: actions[0].Token, Do: actions[0].Do, N: actions[0].N})
}

// BenchmarkHandOff decides and applies one hand-off: complete a turn, grant the next one,
// acknowledge its prompt. The old channel has had a hundred thousand messages. The ratios within
// one run show the cost of age and of size.
func BenchmarkHandOff(b *testing.B) {
	for _, c := range []struct{ agents, age int }{{3, 0}, {3, 100_000}, {8, 0}, {100, 0}} {
		b.Run(fmt.Sprintf("agents=%d/age=%d", c.agents, c.age), func(b *testing.B) {
			cs := busy(b, c.agents, c.age)
			b.ReportAllocs()
			for b.Loop() {
				handOff(b, cs, "c")
			}
		})
	}
}

// TestHandOffIsSmall checks that a hand-off writes little, regardless of the number of agents and
// the age of the channel.
func TestHandOffIsSmall(t *testing.T) {
	for _, c := range []struct{ agents, age int }{{3, 10}, {100, 10}, {3, 20_000}} {
		cs := busy(t, c.agents, c.age)
		h := &cs.ByID["c"].Head
		list, err := cs.Decide(Said{Token: Token{"c", h.Holder, h.Turn}, Bytes: messageBytesMax, Complete: true}, Now{At: machinetest.Noon})
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, ch := range list {
			body, err := json.Marshal(change.As[Set](ch.Body).Body)
			if err != nil {
				t.Fatal(err)
			}
			size += len(body)
		}
		if len(list) != 2 || size > 1200 {
			t.Errorf("%d agents, %d turns: %d changes of %d bytes together", c.agents, c.age, len(list), size)
		}
		state, err := json.Marshal(cs)
		if err != nil || len(state) > 3000+400*c.agents {
			t.Errorf("%d agents, %d turns: the value has %d bytes: %v", c.agents, c.age, len(state), err)
		}
	}
}

// TestFullChannel checks that a full channel refuses a message with its limit, and that an
// interruption does not wait behind messages.
func TestFullChannel(t *testing.T) {
	cs := busy(t, 2, 0)
	say := func(mode Mode) error {
		changes, err := decide(t, cs, HumanSpoke{Channel: "c", By: "ada", Mode: mode, Bytes: 1}, Now{At: machinetest.Noon})
		for _, ch := range changes {
			cs.Apply(ch)
		}
		return err
	}
	for len(cs.ByID["c"].Open) < openMax {
		if err := say(ByQueue); err != nil {
			t.Fatal(err)
		}
	}
	if err := say(ByQueue); err == nil ||
		err.Error() != "#c: cannot take spoken while unsaid: 256 messages wait for an answer, which is the limit; wait, or skip the current turn [M1]" {
		t.Errorf("the refusal of a full channel: %v", err)
	}
	for range openInterruptsMax {
		if err := say(Interrupt); err != nil {
			t.Errorf("an interruption waits behind messages: %v", err)
		}
	}
	if err := say(Interrupt); err == nil {
		t.Error("interruptions have no limit")
	}
	if actions := cs.Actions("c", Now{At: machinetest.Noon}); actions[0].Do != StopWork || actions[1].Do != TellAside {
		t.Errorf("the cancellation is not the first action: %+v", actions[:2])
	}
}

// An agent receives a bounded number of messages: the newest, the unanswered ones of people, and the
// number of those left out.
func TestGivenIsBounded(t *testing.T) {
	cs := busy(t, 3, 1000)
	ask := func(in Input) {
		changes, err := decide(t, cs, in, Now{At: machinetest.Noon})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			cs.Apply(ch)
		}
	}
	ask(HumanSpoke{Channel: "c", By: "ada", Mode: ByQueue, Bytes: 1})
	asked := cs.ByID["c"].Head.Seq
	for range 300 { // all other agents speak during its turn, and its turns always time out
		h := &cs.ByID["c"].Head
		ask(Said{Token: Token{"c", h.Holder, h.Turn}, Bytes: 1})
	}
	ask(AgentConfigured{Agent: "new"})
	ask(AgentConnected{"new"})
	ask(AssignAsked{"c", "new"})
	ask(GrantAsked{"c", "new", true})
	actions := cs.Actions("c", Now{At: machinetest.Noon})
	g := actions[len(actions)-1].Given
	want := Given{From: asked + 101, To: asked + 300, Also: []uint64{asked}, LeftOut: asked + 100 - 1}
	if g.From != want.From || g.To != want.To || len(g.Also) != 1 || g.Also[0] != asked || g.LeftOut != want.LeftOut || len(g.But) != 0 {
		t.Errorf("given: %+v, want %+v", g, want)
	}
}
