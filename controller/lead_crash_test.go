package controller

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/machine/crew"
)

// insistOn gives an order of the team until it is known to be taken, as a person would.
func (b *bubble) insistOn(trigger string, order func() error) {
	b.t.Helper()
	for range 3 {
		b.alive()
		for _, ch := range b.history() {
			if ch.Entity == "presence/lead" && ch.Trigger == trigger {
				return
			}
		}
		if order() == nil {
			return
		}
	}
	b.t.Errorf("%s was never taken", trigger)
}

// leadScenario is a team that is summoned, loses its lead, is woken, and is put to sleep, whatever
// happens to the engine meanwhile.
func leadScenario(b *bubble, l *leader) {
	b.host.play = l.leads
	pass := func(d time.Duration) {
		for range 4 {
			b.after(d / 4)
			b.alive()
		}
	}
	b.alive()
	b.insistOn(string(crew.SummonBegins), func() error {
		_, err := b.engine.Summon(b.t.Context(), human)
		return err
	})
	pass(12 * time.Second)
	if got := b.crew(); !strings.Contains(got, "Lyra alive, Kael alive, Mira alive") {
		b.t.Errorf("after the summon the team is %q", got)
	}
	b.alive()
	if s := b.host.session("julian-1"); s != nil {
		s.exit(0)
	}
	b.settle()
	pass(2 * time.Second)
	if got := b.crew(); strings.Contains(got, "alive") || strings.Contains(got, "hatching") {
		b.t.Errorf("without its lead the team is %q", got)
	}
	b.insistOn(string(crew.WakeUnheard), func() error {
		_, err := b.engine.Wake(b.t.Context(), human, nil)
		return err
	})
	pass(40 * time.Second)
	b.alive()
	if got := b.crew(); got != "none, Lyra alive, Kael alive, Mira alive" {
		b.t.Errorf("after the wake the team is %q", got)
	}
}

// crewOnce checks that no agent was told anything or started twice, and that every document holds
// what was said.
func (l *leader) crewOnce(b *bubble) {
	t := b.t
	t.Helper()
	b.heardOnce(l)
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
				t.Errorf("%s was told twice", label)
			}
		}
		for _, text := range l.told[id] {
			word, _, _ := strings.Cut(text, "\n")
			counts[word]++
		}
	}
	for _, word := range []string{"[SUMMON AGENTS]", "[WAKE AGENTS]"} {
		if counts[word] != 1 {
			t.Errorf("%s was told %d times", word, counts[word])
		}
	}
	members := &b.replayed().Crew
	if len(members.Docs) != 3 {
		t.Errorf("%d documents", len(members.Docs))
	}
	for _, doc := range members.Docs {
		if doc.Status != crew.Alive || doc.Name != crewNames[doc.Seat] || doc.Soul != fmt.Sprintf("I am %s, and say TURN_COMPLETE.", doc.Name) || doc.LastSession != members.Lead.UUID {
			t.Errorf("a document says %+v, and the lead is %+v", doc, members.Lead)
		}
	}
	if lead := &members.Lead; lead.InProgress() || len(lead.Actions) > 0 || !lead.Heard() {
		t.Errorf("in the end the lead is %+v", lead)
	}
}

// The engine crashes at every single action of a summon and a wake, before or after it was done:
// each is told once, every member is registered once, every message is kept once, and every member
// that was asleep is awake in the end.
func TestLeadCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(t *testing.T, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "julian")
			defer b.end()
			b.led("julian")
			l := newLeader()
			b.open(c.last, c.undone)
			first := b.fate
			b.run()
			leadScenario(b, l)
			l.crewOnce(b)
			acts = first.count()
		})
		return acts
	}
	acts := play(t, cut{})
	if acts < 20 {
		t.Fatalf("only %d acts: the scenario does nothing", acts)
	}
	t.Logf("%d acts", acts)
	for last := 1; last <= acts; last++ {
		for _, undone := range []bool{false, true} {
			t.Run(fmt.Sprintf("act=%d,undone=%v", last, undone), func(t *testing.T) { play(t, cut{last, undone}) })
		}
	}
}
