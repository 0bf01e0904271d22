package app

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
)

// inForeignTurn runs a test with two foreign agents in a channel, of which ada has turn 1 and a person's message.
func inForeignTurn(t *testing.T, test func(b *bubble, says func(view.Speech))) {
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada", "bob")
		b.foreign("ada", "bob")
		b.conf.TurnConfig.AutoDetectTurnEnd = true
		b.start()
		for _, name := range []string{"ada", "bob"} {
			if _, err := b.engine.Channels.AgentReady(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		b.retrySay("please review", "")
		if _, err := b.engine.Channels.AgentConfirm(t.Context(), "ada", b.pendingAction("ada").Key); err != nil {
			t.Fatal(err)
		}
		test(b, func(s view.Speech) {
			t.Helper()
			if s.Channel = "reviews"; s.Turn == 0 {
				s.Turn = 1
			}
			if _, err := b.engine.Channels.AgentSaid(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// answered returns the state of the person's message and the agent that has the turn.
func (b *bubble) answered() (state, holder string) {
	b.t.Helper()
	v, err := b.engine.Channels.Channel(b.t.Context(), "reviews")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range v.Open {
		state = m.State
	}
	return state, v.Holder
}

// SPEC T7: over HTTP, too, the end of a turn without text passes it on and answers no message; with text in the turn
// the message is answered.
func TestForeignTurnWithoutText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		says  []view.Speech
		state string
	}{
		{"the word alone", []view.Speech{{Text: "TURN_COMPLETE"}}, "delivered"},
		{"white space before the word", []view.Speech{{Text: "\n\u3000 TURN_COMPLETE\u00a0"}}, "delivered"},
		{"complete, no text", []view.Speech{{Complete: true}}, "delivered"},
		{"text and the word", []view.Speech{{Text: "完成TURN_COMPLETE"}}, ""},
		{"text, then the word", []view.Speech{{Text: "it is good"}, {Text: "TURN_COMPLETE"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inForeignTurn(t, func(b *bubble, says func(view.Speech)) {
				for _, s := range c.says {
					s.Agent = "ada"
					says(s)
				}
				if state, holder := b.answered(); state != c.state || holder != "bob" {
					t.Errorf("the message is %q and %q has the turn, want %q and bob", state, holder, c.state)
				}
				says(view.Speech{Agent: "bob", Turn: 2, Text: "I have it. TURN_COMPLETE"})
				if state, _ := b.answered(); state != "" {
					b.t.Errorf("after an answer the message is %q", state)
				}
			})
		})
	}
}

// SPEC, autoDetectTurnEnd: nothing reports the end of what a foreign agent says, so its silence ends the turn. Each text
// begins it again. An agent that says nothing keeps its turn until the time limit.
func TestForeignSilenceEndsTheTurn(t *testing.T) {
	t.Parallel()
	has := func(b *bubble, want string) {
		b.t.Helper()
		if _, holder := b.answered(); holder != want {
			b.t.Errorf("%q has the turn, want %q", holder, want)
		}
	}
	inForeignTurn(t, func(b *bubble, says func(view.Speech)) {
		b.after(11 * time.Second)
		has(b, "ada")
		says(view.Speech{Agent: "ada", Text: "one"})
		b.after(9 * time.Second)
		says(view.Speech{Agent: "ada", Text: "two"})
		for _, name := range []string{"ada", "bob"} {
			if err := b.engine.Channels.AgentBeat(b.t.Context(), name); err != nil {
				b.t.Fatal(err)
			}
		}
		b.after(9 * time.Second)
		has(b, "ada")
		b.after(2 * time.Second)
		has(b, "bob")
		if state, _ := b.answered(); state != "" {
			b.t.Errorf("the message is %q", state)
		}
	})
}
