package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
)

// SPEC, corrections, "presence": if the lead's program has lost its conversation, a new one begins
// in the same wake and receives its prompt again. That does not count as a rate limit.
func TestLeadLosesItsConversation(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.driver.resumes = true
		l := newScriptedLead()
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
		if _, err := b.engine.Crew.Sleep(t.Context(), human); err != nil {
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
		if last := a.Past[len(a.Past)-1]; last.ID != "julian-2" || last.Outcome != control.Anew ||
			!strings.Contains(last.Why, "no longer knows the conversation talk-julian-1") {
			t.Errorf("%s ended as %s: %s", last.ID, last.Outcome, last.Why)
		}
		if a.Limited != nil || b.resumedBy("julian-3") != "" || !strings.Contains(b.notices(), "no longer knows the conversation") {
			t.Errorf("limited %+v, %v, notices %s", a.Limited, b.host.order, b.notices())
		}
	})
}

// SPEC, corrections, "presence": the lead's markers count in all of its sessions. Its members fall
// asleep when that session ends. Markers are not shown in a channel.
func TestLeadInOrdinarySessions(t *testing.T) {
	t.Parallel()
	const marks = `[AGENT_REGISTERED] {"name":"Lyra","color":"#c9b1e8","colorName":"lavender","gender":"female","gridPosition":0,"faceVariant":{"eyes":"round","mouth":"smile"},"individuationArtifact":"I am Lyra."}`
	const report = `[AGENT_STATUS] {"agents":[{"name":"Lyra","status":"alive","gridPosition":0}]}`
	for name, begin := range map[string]func(b *bubble){
		"control": func(b *bubble) { b.command("julian", "run_once") },
		"channel": func(b *bubble) { b.retrySay("hello", "") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "julian", func(t *testing.T, b *bubble) {
				b.led("julian")
				b.inOneChannel("julian")
				b.host.play = func(s *fakeSession) {
					s.say("Here I am.")
					s.say(marks)
					s.say(report)
					s.lasts(30 * time.Second)
					s.say("That is all. TURN_COMPLETE")
					s.say("stop ok")
				}
				b.start()
				begin(b)
				b.after(20 * time.Second)
				b.isCrew("none, Lyra alive")
				b.after(time.Minute)
				b.isCrew("WAKE, Lyra sleeping")
				if n := b.notices(); n != "" {
					t.Errorf("notices: %s", n)
				}
				if texts := strings.Join(b.said("reviews"), "\n"); name == "channel" &&
					(!strings.Contains(texts, "Here I am.") || strings.Contains(texts, "AGENT_")) {
					t.Errorf("the channel shows %s", texts)
				}
				if err := b.engineTeamIsReplayed(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
