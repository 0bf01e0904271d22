package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/machine/control"
)

// SPEC, corrections, "presence": a lead whose program has lost its conversation begins a new one in the same
// wake and is told again. That is no rate limit.
func TestLeadLosesItsConversation(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.driver.resumes = true
		l := newLeader()
		b.host.play = func(s *fakeSession) {
			if s.resume != "" {
				s.say("stop not_resumed")
				s.exit(1)
				return
			}
			s.say("conversation talk-%s m1", s.id)
			l.leads(s)
			s.exit(0)
		}
		b.start()
		b.summons()
		b.after(time.Minute)
		if _, err := b.engine.Sleep(t.Context(), human); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		b.wakes()
		b.after(time.Minute)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		if got := b.resumedBy("julian-2"); got != "talk-julian-1" {
			t.Errorf("the second session resumed %q", got)
		}
		a := b.replayed().Agents["julian"]
		if last := a.Past[len(a.Past)-1]; last.ID != "julian-2" || last.Outcome != control.Anew || !strings.Contains(last.Why, "no longer knows the conversation talk-julian-1") {
			t.Errorf("%s ended as %s: %s", last.ID, last.Outcome, last.Why)
		}
		if a.Limited != nil || b.resumedBy("julian-3") != "" || !strings.Contains(b.notices(), "no longer knows the conversation") {
			t.Errorf("limited %+v, %v, notices %s", a.Limited, b.host.order, b.notices())
		}
	})
}
