package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// TestRandomLeads plays random days of a lead with random orders and crashes. No prompt is
// delivered twice and no message stored twice. The journal and the engine agree, members are alive
// only by the open session, and no placeholder exceeds its limit. To repeat a run: -run
// 'TestRandomLeads/seed=7$'.
func TestRandomLeads(t *testing.T) {
	t.Parallel()
	dir, seeds := t.TempDir(), uint64(80)
	switch {
	case testsize.Long():
		seeds = 3000
	case testsize.Race, !testsize.CI():
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomLead(t, dir, rand.New(rand.NewPCG(seed, 6))) })
		})
	}
}

func randomLead(t *testing.T, dir string, rnd *rand.Rand) {
	b := newBubble(t, dir, "julian")
	defer b.end()
	b.led("julian")
	if rnd.IntN(2) == 0 {
		b.inOneChannel("julian")
	}
	l := newScriptedLead()
	b.host.play = func(s *fakeSession) {
		if s.kind == "session" {
			s.lasts(5 * time.Second)
			s.say("stop ok")
			return
		}
		l.leads(s)
	}
	for range 50 {
		if b.engine == nil || b.crashPoint.isDead() {
			b.discardEngine()
			b.open(rnd.IntN(2)*(1+rnd.IntN(40)), rnd.IntN(2) == 0)
			b.run()
			b.settle()
			continue
		}
		switch rnd.IntN(12) {
		case 0, 1:
			_, _ = b.engine.Crew.Summon(t.Context(), human)
		case 2, 3:
			_, _ = b.engine.Crew.Wake(t.Context(), human, nil)
		case 4:
			_, _ = b.engine.Crew.Wake(t.Context(), human, []string{crewNames[rnd.IntN(3)]})
		case 5:
			if rnd.IntN(3) == 0 {
				_, _ = b.engine.Crew.Sleep(t.Context(), human)
			}
		case 6:
			_, _ = b.engine.Agents.Hold(t.Context(), human, rnd.IntN(3) == 0, "")
		case 7:
			if ids := b.host.running(); len(ids) > 0 && rnd.IntN(3) == 0 {
				b.host.session(ids[0]).finish(session.Exit{Lost: rnd.IntN(2) == 0, Why: "killed"})
			}
		case 8:
			b.crashPoint.die()
		case 9:
			if len(b.conf.Channels) > 0 {
				_, _ = b.engine.Channels.Say(t.Context(), human, "reviews", "how is the team?", "")
			} else {
				_, _ = b.engine.Agents.Command(t.Context(), human, "julian", "run_once", "")
			}
		default:
			b.after(time.Duration(rnd.IntN(8000)) * time.Millisecond)
		}
		b.settle()
		b.checkCrew()
	}
	b.restartIfDead()
	for range 2 {
		_, _ = b.engine.Agents.Hold(t.Context(), human, false, "")
		b.after(6 * time.Minute)
		b.restartIfDead()
	}
	b.checkCrew()
	if lead := &b.replayed().Crew.Lead; lead.InProgress() || len(lead.Actions) > 0 {
		t.Errorf("in the end the lead is %+v", lead)
	}
	if err := b.engineTeamIsReplayed(); err != nil {
		t.Error(err)
	}
	l.checkDeliveredOnce(b)
}

// checkCrew checks what must always hold for a crew.
func (b *bubble) checkCrew() {
	b.t.Helper()
	all := b.replayed()
	members, at := &all.Crew, time.Now()
	for _, doc := range members.Docs {
		if doc.Status == crew.Alive && (doc.LastSession != members.Lead.UUID || members.Lead.UUID == "") {
			b.t.Errorf("%s is alive by session %q, but %q is open", doc.Name, doc.LastSession, members.Lead.UUID)
		}
		if b.engine != nil && !b.crashPoint.isDead() && doc.Status == crew.Hatching && at.Sub(doc.CreatedAt) > 5*time.Minute+time.Second {
			b.t.Errorf("%s has been a placeholder since %v", doc.ID, at.Sub(doc.CreatedAt))
		}
	}
}

// checkDeliveredOnce checks that no prompt was written into a session twice, and that every line of
// the lead is stored once, in a channel or outside.
func (l *scriptedLead) checkDeliveredOnce(b *bubble) {
	b.t.Helper()
	for _, id := range b.host.order {
		counts := map[string]int{}
		for _, label := range b.host.session(id).named {
			if counts[label]++; counts[label] == 2 {
				b.t.Errorf("%s received %s twice", id, label)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	said, kept := map[string]int{}, map[string]int{}
	for _, line := range l.said["julian"] {
		said[strings.TrimSuffix(line, " TURN_COMPLETE")]++
	}
	for _, line := range append(b.keptWords(), b.kept()["julian"]...) {
		kept[line]++
	}
	for line, n := range said {
		if kept[line] != n {
			b.t.Errorf("%q was said %d times, but is stored %d times", line, n, kept[line])
		}
	}
	if len(kept) > len(said) {
		b.t.Errorf("said %v, stored %v", said, kept)
	}
}
