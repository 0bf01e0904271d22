package listen

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

// answer has what a listener makes of the output of an agent that has the turn.
type answer struct {
	text                    string
	complete, passed, ended int // how often
	last                    string
}

func (a *answer) take(t *channelListener) {
	for _, e := range t.events {
		switch is := e.What.(type) {
		case channel.Said:
			a.text += e.Text + "\n"
			a.last = "said"
			if is.Complete {
				a.complete, a.last = a.complete+1, "complete"
			}
			if is.Ended {
				a.ended++
			}
		case channel.PassAsked:
			a.passed, a.last = a.passed+1, "passed"
		}
	}
	t.fresh()
}

// FuzzAnswerInPieces reports what an agent says after any of its lines, as a slow program or a busy machine may have
// it. The outcome depends on the text alone: a word at its end counts, all others are text.
func FuzzAnswerInPieces(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed, uint8(seed%12))
	}
	f.Fuzz(func(t *testing.T, seed uint64, lines uint8) {
		random := rand.New(rand.NewPCG(seed, uint64(lines)))
		v := channels.NewSessionWriter()
		v.Set(team.Delivery{Key: "k", Token: channel.Token{Channel: "reviews", Agent: "ada", Turn: 1}, Confirmed: true})
		l := &channelListener{v: v, agent: "ada", session: "ada-1", ends: driver.Capabilities{Answers: true}}
		var got answer
		var said []string
		for range lines {
			words := []string{"Hear me.", "TURN_COMPLETE", "TURN_PASS", "I know TURN_COMPLETE", "TURN_PASS it is"}
			line := words[random.IntN(len(words))]
			said = append(said, line)
			l.note(HeldFact{Fact: driver.Fact{Kind: driver.Said, Text: line}}, &team.SessionReported{})
			if random.IntN(2) == 0 { // as reportTalk does
				l.flush(false)
				got.take(l)
			}
		}
		l.note(HeldFact{Fact: driver.Fact{Kind: driver.Listening}}, &team.SessionReported{})
		got.take(l)

		want := answer{last: "said", ended: 1}
		if n := len(said); n > 0 {
			switch last := said[n-1]; {
			case strings.HasSuffix(last, "TURN_COMPLETE"):
				want.complete, want.last = 1, "complete"
				said[n-1] = strings.TrimSuffix(last, "TURN_COMPLETE")
			case last == "TURN_PASS":
				want.passed, want.last, want.ended = 1, "passed", 0
				said = said[:n-1]
			}
		}
		words := func(text string) []string { return slices.Collect(strings.FieldsSeq(text)) }
		if !slices.Equal(words(got.text), words(strings.Join(said, "\n"))) {
			t.Errorf("the text is %q and not %q", got.text, said)
		}
		if got.complete != want.complete || got.passed != want.passed || got.last != want.last || got.ended != want.ended {
			t.Errorf("of %q: completed %d, passed %d, ended %d times, %s last; expected %d, %d, %d, %s", said, got.complete, got.passed, got.ended, got.last,
				want.complete, want.passed, want.ended, want.last)
		}
	})
}
