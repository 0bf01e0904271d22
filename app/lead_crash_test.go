package app

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/crew"
)

// retryOrder repeats an order for the crew until it is known to be accepted.
func (b *bubble) retryOrder(trigger string, order func() error) {
	b.t.Helper()
	for range 3 {
		b.restartIfDead()
		for _, ch := range b.history() {
			if ch.Entity == "crew/lead" && ch.Trigger == trigger {
				return
			}
		}
		if order() == nil {
			return
		}
	}
	b.t.Errorf("%s was never accepted", trigger)
}

// leadScenario plays a crew that is summoned, loses its lead, is woken, and is put to sleep,
// independent of crashes.
func leadScenario(b *bubble, l *scriptedLead) {
	b.host.play = l.leads
	pass := func(d time.Duration) {
		for range 4 {
			b.after(d / 4)
			b.restartIfDead()
		}
	}
	b.restartIfDead()
	b.retryOrder(string(crew.SummonBegins), func() error {
		_, err := b.engine.Crew.Summon(b.t.Context(), human)
		return err
	})
	pass(12 * time.Second)
	if got := b.crew(); !strings.Contains(got, "Lyra alive, Kael alive, Mira alive") {
		b.t.Errorf("after the summon the crew is %q", got)
	}
	b.restartIfDead()
	if s := b.host.session("julian-1"); s != nil {
		s.exit(0)
	}
	b.settle()
	pass(2 * time.Second)
	if got := b.crew(); strings.Contains(got, "alive") || strings.Contains(got, "hatching") {
		b.t.Errorf("without its lead the crew is %q", got)
	}
	b.retryOrder(string(crew.WakeUnheard), func() error {
		_, err := b.engine.Crew.Wake(b.t.Context(), human, nil)
		return err
	})
	pass(40 * time.Second)
	b.restartIfDead()
	if got := b.crew(); got != "none, Lyra alive, Kael alive, Mira alive" {
		b.t.Errorf("after the wake the crew is %q", got)
	}
}

// checkCrewOnce checks that no prompt was delivered twice, no agent was started twice, and every
// document has the registered content.
func (l *scriptedLead) checkCrewOnce(b *bubble) {
	t := b.t
	t.Helper()
	b.checkWordsOnce(l)
	if n := b.host.startsOf("julian"); n != 2 {
		t.Errorf("%d lead sessions", n)
	}
	counts := map[string]int{}
	for _, id := range []string{"julian-1", "julian-2"} {
		s := b.host.session(id)
		if s == nil {
			continue
		}
		for _, label := range s.named {
			if counts[label]++; counts[label] > 1 {
				t.Errorf("%s was delivered twice", label)
			}
		}
		for _, text := range l.delivered[id] {
			word, _, _ := strings.Cut(text, "\n")
			counts[word]++
		}
	}
	for _, word := range []string{"[SUMMON AGENTS]", "[WAKE AGENTS]"} {
		if counts[word] != 1 {
			t.Errorf("%s was delivered %d times", word, counts[word])
		}
	}
	members := &b.replayed().Crew
	if len(members.Docs) != 3 {
		t.Errorf("%d documents", len(members.Docs))
	}
	for _, doc := range members.Docs {
		if doc.Status != crew.Alive || doc.Name != crewNames[doc.Seat] ||
			doc.Soul != fmt.Sprintf("I am %s, and say TURN_COMPLETE.", doc.Name) || doc.LastSession != members.Lead.UUID {
			t.Errorf("a document has %+v, the lead is %+v", doc, members.Lead)
		}
	}
	if lead := &members.Lead; lead.InProgress() || len(lead.Actions) > 0 || !lead.Heard() {
		t.Errorf("in the end the lead is %+v", lead)
	}
}

// TestLeadCrashAtEveryStep crashes the engine at every act of a summon and a wake, before or after
// the act was done. Each prompt is delivered once, every member is registered once, every message
// is stored once, and every sleeping member is awake in the end.
func TestLeadCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(t *testing.T, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "julian")
			defer b.end()
			b.led("julian")
			l := newScriptedLead()
			b.open(c.last, c.undone)
			first := b.crashPoint
			b.run()
			leadScenario(b, l)
			l.checkCrewOnce(b)
			acts = first.count()
		})
		return acts
	}
	acts := play(t, cut{})
	if acts < 20 {
		t.Fatalf("only %d acts; the scenario must do more", acts)
	}
	t.Logf("%d acts", acts)
	for last := 1; last <= acts; last++ {
		for _, undone := range []bool{false, true} {
			t.Run(fmt.Sprintf("act=%d,undone=%v", last, undone), func(t *testing.T) { play(t, cut{last, undone}) })
		}
	}
}
