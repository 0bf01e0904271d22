package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
)

// TestPlanOfTalks checks that the plan of a start names what happens to sessions for channels and
// why one starts, and that the start does the same.
func TestPlanOfTalks(t *testing.T) {
	t.Parallel()
	plays := map[string]struct {
		down   func(b *bubble)
		plan   string
		starts int
	}{
		"it lives": {func(*bubble) {}, "adopt ada-1: it outlived the daemon, as process 1005", 1},
		"it ended well": {
			func(b *bubble) { b.host.session("ada-1").exit(0) },
			"record how ada-1 ended: it ended while no daemon ran; then leave at rest: ", 1,
		},
		"it is gone": {
			func(b *bubble) { b.host.session("ada-1").finish(session.Exit{Lost: true, Why: "killed"}) },
			"count ada-1 as lost: it ended while no daemon ran, and how is not known; then ", 1,
		},
	}
	for name, play := range plays {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "ada", func(t *testing.T, b *bubble) {
				b.inOneChannel("ada")
				l := newPromptLedger()
				b.host.play = func(s *fakeSession) {
					text, _, _ := s.next(time.Hour)
					l.tell("ada", text)
					<-s.asked
				}
				b.start()
				b.retrySay("please review", "")
				b.settle()
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				play.down(b)
				b.start()
				if got := b.logged.String(); !strings.Contains(got, play.plan) {
					t.Errorf("the plan lacks %q", play.plan)
				}
				if n := b.host.startsOf("ada"); n != play.starts {
					t.Errorf("ada was started %d times, want %d", n, play.starts)
				}
			})
		})
	}
}

// TestPlanOfATalkThatNeverBegan checks that a session that was opened and never started receives
// its pending prompt.
func TestPlanOfATalkThatNeverBegan(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada")
		b.host.play = func(s *fakeSession) { <-s.asked }
		b.start()
		b.host.starts.set(func(string) error {
			b.crashPoint.die()
			return errors.New("the machine is going")
		})
		_, _ = b.engine.Channels.Say(t.Context(), human, "reviews", "please review", "")
		b.settle()
		b.host.starts.set(nil)
		b.discardEngine()
		b.start()
		if got := b.logged.String(); !strings.Contains(got, "start ada-1 (turn): it has turn 1 in #reviews, and is to be told") {
			t.Error("the plan does not say why ada-1 is started")
		}
		if b.host.session("ada-1") == nil {
			t.Error("ada-1 was never started")
		}
	})
}
