package listen

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/turns"
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
		v := turns.NewSessionWriter()
		v.Set(team.Delivery{Key: "k", Token: channel.Token{Channel: "reviews", Agent: "ada", Turn: 1}, Confirmed: true})
		l := &channelListener{v: v, agent: "ada", session: "ada-1", ends: driver.Capabilities{Answers: true}}
		var got answer
		var said []string
		for range lines {
			words := []string{
				"Hear me.", "TURN_COMPLETE", "TURN_PASS", "I know TURN_COMPLETE", "TURN_PASS it is", "完成TURN_COMPLETE",
				"Done.TURN_COMPLETE", "(TURN_COMPLETE)",
			}
			line := words[random.IntN(len(words))]
			said = append(said, line)
			l.note(HeldFact{Fact: driver.Fact{Kind: driver.Said, Text: line}}, &team.SessionReported{})
			if random.IntN(2) == 0 { // as reportAnswer does
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
		letters := func(text string) string { return strings.Join(strings.Fields(text), "") } // a post may end before a word
		if letters(got.text) != letters(strings.Join(said, "")) {
			t.Errorf("the text is %q and not %q", got.text, said)
		}
		if got.complete != want.complete || got.passed != want.passed || got.last != want.last || got.ended != want.ended {
			t.Errorf("of %q: completed %d, passed %d, ended %d times, %s last; expected %d, %d, %d, %s", said, got.complete, got.passed,
				got.ended, got.last,
				want.complete, want.passed, want.ended, want.last)
		}
	})
}

// TestWordInParts cuts a line at every character. A report between the parts waits for a word that has begun, and the word
// counts as in one part.
func TestWordInParts(t *testing.T) {
	for text, counts := range map[string]bool{
		"Done TURN_COMPLETE": true, "完成TURN_COMPLETE": true, "Done.TURN_COMPLETE": true, "done:\u00a0TURN_COMPLETE": true,
		"MY_TURN_COMPLETE": false, "doneTURN_COMPLETE": false, "(TURN_COMPLETE)": false,
	} {
		for cut := range text {
			v := turns.NewSessionWriter()
			v.Set(team.Delivery{Key: "k", Token: channel.Token{Channel: "reviews", Agent: "ada", Turn: 1}, Confirmed: true})
			l := &channelListener{v: v, agent: "ada", session: "ada-1", ends: driver.Capabilities{Answers: true}}
			var got answer
			l.note(HeldFact{Fact: driver.Fact{Kind: driver.Said, Text: text[:cut], Part: true}}, &team.SessionReported{})
			if !l.midWord() {
				l.flush(false)
				got.take(l)
			}
			l.note(HeldFact{Fact: driver.Fact{Kind: driver.Said, Text: text[cut:]}}, &team.SessionReported{})
			l.note(HeldFact{Fact: driver.Fact{Kind: driver.Listening}}, &team.SessionReported{})
			got.take(l)
			if (got.complete == 1) != counts {
				t.Errorf("%q, cut at %d: completed %d times", text, cut, got.complete)
			}
		}
	}
}
