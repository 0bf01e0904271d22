package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// endsAndLate lists the ends of turns in a channel, and the late messages.
func (b *bubble) endsAndLate() string {
	b.t.Helper()
	page, err := b.engine.Channels.ChannelEntries(b.t.Context(), "reviews", view.EntryQuery{Limit: 500, Moves: true})
	if err != nil {
		b.t.Fatal(err)
	}
	var words []string
	for _, one := range page.Entries {
		switch {
		case one.Kind == "late":
			words = append(words, "late")
		case one.Row == "T7" || one.Row == "T8" || one.Row == "T9":
			words = append(words, one.Row+" "+one.Agent)
		case one.Kind == "turn" && one.Text != "":
			words = append(words, strings.ReplaceAll(one.Text, "\n", "|"))
		}
	}
	return strings.Join(words, ", ")
}

// SPEC, corrections, "turn words": TURN_COMPLETE from a command counts if its line is the last one,
// no code fence is open, and nothing follows for 500 ms or the process ends.
func TestTurnWordOfACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(s *fakeSession)
		want string
	}{
		"in the middle": {func(s *fakeSession) {
			s.say("I begin.")
			s.say("TURN_COMPLETE")
			wait.Elapse(300 * time.Millisecond)
			s.say("is what I say at the end.")
			wait.Elapse(3 * time.Second)
			s.say("Good. TURN_COMPLETE")
			wait.Elapse(10 * time.Second)
		}, "I begin.|TURN_COMPLETE|is what I say at the end., Good., T8 ada"},
		"in a code fence": {func(s *fakeSession) {
			s.say("Like this:")
			s.say("```")
			s.say("TURN_COMPLETE")
			wait.Elapse(4 * time.Second)
			s.say("```")
			wait.Elapse(4 * time.Second)
			s.say("TURN_COMPLETE")
			wait.Elapse(10 * time.Second)
		}, "Like this:|```, TURN_COMPLETE|```, T8 ada"},
		"at the end of the process": {func(s *fakeSession) {
			s.say("```")
			s.say("TURN_COMPLETE")
		}, "```, T8 ada"},
		"text after it is late": {func(s *fakeSession) {
			s.say("Good. TURN_COMPLETE")
			wait.Elapse(2 * time.Second)
			s.say("One more thing.")
			wait.Elapse(10 * time.Second)
		}, "Good., T8 ada, late"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "ada", func(t *testing.T, b *bubble) {
				b.inOneChannel("ada")
				b.driver.talks = false
				b.host.play = func(s *fakeSession) { c.play(s); s.exit(0) }
				b.start()
				b.retrySay("please review", "")
				b.after(30 * time.Second)
				if got := b.endsAndLate(); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestTurnWordWithinAnAnswer checks the same for a program that reports the end of each answer: the
// word does not count before that end.
func TestTurnWordWithinAnAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada")
		b.host.play = func(s *fakeSession) {
			s.say("I begin.")
			s.say("TURN_COMPLETE")
			wait.Elapse(5 * time.Second)
			s.say("is the word.")
			wait.Elapse(5 * time.Second)
			s.say("TURN_COMPLETE")
			wait.Elapse(5 * time.Second)
			s.say("listening 0")
			s.lasts(time.Minute)
			s.exit(0)
		}
		b.start()
		b.retrySay("please review", "")
		b.after(12 * time.Second)
		if got := b.endsAndLate(); strings.Contains(got, "T8") {
			t.Errorf("before the end of the answer: %s", got)
		}
		b.after(5 * time.Second)
		if got, want := b.endsAndLate(), "I begin., TURN_COMPLETE|is the word., T8 ada"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestHeldTurnWordSurvivesTheDaemon checks that a word that is held until the answer ends is not
// lost if the daemon crashes in between.
func TestHeldTurnWordSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada")
		b.host.play = func(s *fakeSession) {
			s.say("I have read it.")
			s.say("TURN_COMPLETE")
			s.lasts(20 * time.Second)
			s.say("listening 0")
			s.lasts(time.Minute)
			s.exit(0)
		}
		b.start()
		b.retrySay("please review", "")
		b.after(10 * time.Second)
		b.crashPoint.die()
		b.restartIfDead()
		b.after(15 * time.Second)
		if got, want := b.endsAndLate(), "I have read it., T8 ada"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
