package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/work/listen"
)

// TestReportsWithoutEnd checks that of many separate reports a second one is recorded every second
// after a while, and that the last one takes effect.
func TestReportsWithoutEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		l.ill = func(s *fakeSession, _ string) bool {
			s.say("%s", registering(0))
			for range 1000 { // 50 seconds
				s.say("[AGENT_STATUS] {\"agents\":[]}")
				s.lasts(50 * time.Millisecond)
			}
			s.say("[AGENT_STATUS] {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}")
			s.lasts(time.Hour)
			return true
		}
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(55 * time.Second)
		reports := 0
		for _, rec := range b.history() {
			if rec.Entity == "crew/lead" && strings.HasPrefix(rec.Trigger, "reported") {
				reports++
			}
		}
		if most := listen.TallyMax + 60; reports < listen.TallyMax/2 || reports > most {
			t.Errorf("%d reports are in the journal, want at most %d", reports, most)
		}
		if view, err := b.engine.Crew.Document(t.Context(), "Lyra"); err != nil || view.Status != "alive" {
			t.Errorf("Lyra is %+v: %v", view, err)
		}
	})
}

// TestLeadThatTalksForDays checks that output of a lead above the limit of one answer is read again
// later, without a new prompt: its session continues, and its crew lives in it.
func TestLeadThatTalksForDays(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		first := true
		l.ill = func(s *fakeSession, text string) bool {
			l.does(s, text)
			s.say("listening %d", s.read())
			if first {
				first = false
				s.lasts(time.Second)
				for range 1100 {
					s.say("%s", strings.Repeat("x", 1<<10))
				}
				s.say("nobody hears this")
				s.lasts(2 * time.Hour)
				s.say("the next day")
			}
			return true
		}
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(3 * time.Hour)
		words := strings.Join(b.keptWords(), "\n")
		if strings.Contains(words, "nobody hears this") || !strings.Contains(words, "is not shown here") ||
			!strings.Contains(words, "the next day") {
			t.Errorf("%d bytes are stored, ending with %.200q", len(words), words[max(0, len(words)-200):])
		}
	})
}
