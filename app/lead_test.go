package app

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/listen"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// TestSummonAndWake plays a whole summon, the end of the lead's session, and a whole wake. Members
// that are awake receive nothing.
func TestSummonAndWake(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		b.host.play = l.leads
		b.start()
		b.isCrew("SUMMON")
		b.summons()
		b.settle()
		b.isCrew("WAKING…, ? hatching, ? hatching, ? hatching")
		b.after(1500 * time.Millisecond)
		b.isCrew("WAKING…, Lyra alive, ? hatching, ? hatching")
		b.after(10 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		if prompts := l.delivered["julian-1"]; len(prompts) != 1 || !strings.HasPrefix(prompts[0], "[SUMMON AGENTS]\n") {
			t.Errorf("the lead received %q", prompts)
		}
		if view := b.view("julian"); view.Session == nil || view.Session.Kind != "lead" || view.Presence != "lead" {
			t.Errorf("the lead is shown as %+v", view)
		}
		if _, err := b.engine.Crew.Summon(t.Context(), human); !isRefusal(err) {
			t.Errorf("a second summon: %v", err)
		}
		b.wakes() // no member is asleep
		b.after(time.Minute)
		if n := l.count("julian-1"); n != 1 {
			t.Errorf("the lead received %d prompts", n)
		}

		b.host.session("julian-1").exit(0)
		b.settle()
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		b.wakes("Kael")
		b.settle()
		b.isCrew("WAKING…, Lyra unknown, Kael unknown, Mira unknown")
		b.after(20 * time.Second)
		b.isCrew("WAKE, Lyra sleeping, Kael alive, Mira sleeping")
		prompts := l.delivered["julian-2"]
		if len(prompts) != 2 || !strings.HasPrefix(prompts[0], "Who of your team") || !strings.HasPrefix(prompts[1], "[WAKE AGENTS]\n") {
			t.Fatalf("the lead received %q", prompts)
		}
		for want, in := range map[string]bool{"I am Kael, and say ": true, "[Kael]: I am Kael.": true, "Lyra": false, "Mira": false} {
			if strings.Contains(prompts[1], want) != in {
				t.Errorf("%q is in the prompt: %v; the prompt is\n%s", want, !in, prompts[1])
			}
		}
		b.wakes()
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		if last := l.delivered["julian-2"][2]; strings.Contains(last, "Kael") || !strings.Contains(last, "Lyra") ||
			!strings.Contains(last, "Mira") {
			t.Errorf("the prompt has members that were awake:\n%s", last)
		}
		if _, err := b.engine.Crew.Sleep(t.Context(), human); err != nil {
			t.Error(err)
		}
		b.after(time.Minute)
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		b.checkWordsOnce(l)
		if n := len(b.host.running()); n != 0 {
			t.Errorf("%d sessions run", n)
		}
	})
}

// TestSilentLead checks that a silent lead has 30 seconds, and that one that works or speaks has
// more.
func TestSilentLead(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]struct {
		ill  func(s *fakeSession, prompt string) bool
		over time.Duration
	}{
		"silent":   {func(s *fakeSession, _ string) bool { s.lasts(time.Hour); return true }, 30 * time.Second},
		"listens":  {func(*fakeSession, string) bool { return true }, 30 * time.Second},
		"deeds":    {repeats("deed"), 70 * time.Second},
		"speaks":   {repeats("and then"), 70 * time.Second},
		"unending": {repeats(`[AGENT_STATUS] {"agents":[`, "\n"), 70 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "julian", func(t *testing.T, b *bubble) {
				b.led("julian")
				l := newScriptedLead()
				l.ill = play.ill
				b.host.play = l.leads
				b.start()
				b.summons()
				b.after(play.over - 6*time.Second)
				b.isCrew("WAKING…, ? hatching, ? hatching, ? hatching")
				if view, _ := b.engine.Crew.Crew(t.Context(), false); view.InProgress != "summoning" {
					t.Errorf("before the timeout the crew is %q", view.InProgress)
				}
				b.after(12 * time.Second)
				if view, _ := b.engine.Crew.Crew(t.Context(), false); view.InProgress != "" {
					t.Errorf("after the timeout the crew is %q", view.InProgress)
				}
				if got := b.notices(); !strings.Contains(got, "silent: ") {
					t.Errorf("notices: %q", got)
				}
				b.after(5 * time.Minute)
				b.isCrew("SUMMON")
			})
		})
	}
}

// repeats says something for 40 seconds, and is then silent.
func repeats(first string, then ...string) func(*fakeSession, string) bool {
	return func(s *fakeSession, _ string) bool {
		for i := range 20 {
			if len(then) == 0 || i == 0 {
				s.say("%s", first)
			} else {
				s.say("%s", then[0])
			}
			s.lasts(2 * time.Second)
		}
		s.lasts(time.Hour)
		return true
	}
}

// TestLeadEndsInTheMiddle checks that the end of the lead's session ends a summon or a wake with a
// notice.
func TestLeadEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(1500 * time.Millisecond)
		b.host.session("julian-1").exit(3)
		b.settle()
		b.isCrew("WAKE, Lyra sleeping, ? hatching, ? hatching")
		if got := b.notices(); !strings.Contains(got, "lead: julian ended in the middle of summoning") {
			t.Errorf("notices: %q", got)
		}
		b.wakes()
		b.after(1500 * time.Millisecond)
		b.host.session("julian-2").exit(3)
		b.settle()
		b.after(10 * time.Second)
		b.isCrew("WAKE, Lyra unknown, ? hatching, ? hatching")
		if n := b.host.startsOf("julian"); n != 2 {
			t.Errorf("%d lead sessions", n)
		}
		b.checkWordsOnce(l)
	})
}

// TestAdoptedLead checks that a lead that outlives a daemon is asked for the status of its members
// as soon as it listens, unless it reports it before. Earlier prompts are not repeated.
func TestAdoptedLead(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{
		"told": 0, "first": 1500 * time.Millisecond, "last": 3500 * time.Millisecond,
		"over": 20 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "julian", func(t *testing.T, b *bubble) {
				b.led("julian")
				l := newScriptedLead()
				b.host.play = l.leads
				b.start()
				b.summons()
				b.settle()
				if at > 0 {
					b.after(at)
				}
				b.crashPoint.die()
				b.restartIfDead()
				b.settle()
				if got := b.crew(); at == 20*time.Second && got != "WAKE, Lyra unknown, Kael unknown, Mira unknown" {
					t.Errorf("after the restart the crew is %q", got)
				}
				b.after(20 * time.Second)
				b.isCrew("none, Lyra alive, Kael alive, Mira alive")
				prompts := l.delivered["julian-1"]
				// it reported before it listened, so it is not asked
				if !strings.HasPrefix(prompts[0], "[SUMMON") || at < 20*time.Second && len(prompts) != 1 {
					t.Errorf("the lead received %d prompts: %.40q", len(prompts), prompts)
				}
				if at == 20*time.Second && (len(prompts) != 2 || !strings.HasPrefix(prompts[1], "Who of your team")) {
					t.Errorf("the lead received %d prompts: %.40q", len(prompts), prompts)
				}
				b.checkWordsOnce(l)
			})
		})
	}
}

// put writes bytes unchanged, because agents may write incomplete lines.
func (s *fakeSession) put(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, text...)
	close(s.grew)
	s.grew = make(chan struct{})
}

// TestMarkerCutByACrash crashes the daemon at every byte of the lead's output. Every marker counts
// once, and every line is stored once.
func TestMarkerCutByACrash(t *testing.T) {
	t.Parallel()
	stream := "Now.\n" + registering(0) +
		"\n[Lyra]: Here.\nAnd [AGENT_STATUS] {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}\nDone.\n"
	step := 1
	if testsize.Race || !testsize.CI() {
		step = 7
	}
	for at := 0; at <= len(stream); at += step {
		inBubble(t, "julian", func(t *testing.T, b *bubble) {
			b.led("julian")
			b.host.play = func(s *fakeSession) { <-s.asked }
			b.start()
			b.summons()
			b.settle()
			s := b.host.session("julian-1")
			s.put(stream[:at])
			b.after(2 * time.Second)
			b.crashPoint.die()
			b.restartIfDead()
			b.after(2 * time.Second)
			s.put(stream[at:])
			b.after(2 * time.Second)
			if got := b.crew(); !strings.Contains(got, "Lyra alive") && at < strings.Index(stream, "Done") {
				t.Errorf("cut at %d: the crew is %s", at, got)
			}
			all := " " + b.rows("") + " "
			if reg, rep := strings.Count(all, " P2 "), strings.Count(all, " L5 "); reg != 1 || rep != 1 {
				t.Errorf("cut at %d: registered %d times, reported %d times", at, reg, rep)
			}
			got := strings.Join(b.keptWords(), "|")
			if want := "Now.|[Lyra]: Here.|And |Done."; strings.ReplaceAll(got, "And|", "And |") != want {
				t.Errorf("cut at %d (%q): stored %q, want %q", at, stream[max(0, at-10):at], got, want)
			}
			if n := b.notices(); n != "" {
				t.Errorf("cut at %d: %s", at, n)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestMarkersOfOthers checks that a marker of an agent that is not the lead changes nothing and
// causes at most three notices in a session.
func TestMarkersOfOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian coder", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.host.play = func(s *fakeSession) {
			for range 9 {
				s.say(`[AGENT_STATUS] {"agents":[{"name":"Lyra","status":"alive","gridPosition":0}]}`)
			}
			s.say("I may say [AGENT_STATUS] in a line")
			s.lasts(10 * time.Second)
			s.say("stop ok")
		}
		b.start()
		b.command("coder", "run_once")
		b.command("julian", "run_once")
		b.after(20 * time.Second)
		b.isCrew("SUMMON")
		got := b.notices()
		if n := strings.Count(got, "ignored: only markers of julian count"); n != 3 {
			t.Errorf("coder caused %d notices:\n%s", n, got)
		}
		if n := strings.Count(got, "refused: a report has"); n != 9 {
			t.Errorf("julian caused %d notices:\n%s", n, got)
		}
		if err := b.engineTeamIsReplayed(); err != nil {
			t.Error(err)
		}
	})
}

// TestBrokenMarkers checks that an invalid marker causes a notice, that reading continues, and that
// too many markers at once are not read.
func TestBrokenMarkers(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		l.ill = func(s *fakeSession, _ string) bool {
			s.say("[AGENT_REGISTERED] {\"name\": 7}")
			s.say("[AGENT_STATUS] nobody")
			s.put(strings.Repeat("[AGENT_STATUS] {\"agents\":{}}\n", 200))
			s.say("[AGENT_REGISTERED] {\"name\":\"Zoe\",\"gridPosition\":4}")
			s.lasts(2 * time.Second)
			return false
		}
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		all := 0
		for _, rec := range b.history() {
			if strings.Contains(string(rec.Data), `"kind":"fault"`) {
				all++
			}
		}
		if all < 3 || all > listen.MarkersMax+3 {
			t.Errorf("%d notices of faults", all)
		}
	})
}

// TestMarkersOfManyLines checks that a marker after other text on its line is read. A marker with
// more lines than any document is invalid, and what follows it is read.
func TestMarkersOfManyLines(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		l.ill = func(s *fakeSession, _ string) bool {
			s.put(strings.Repeat("x\n", 3*listen.HeldMax/2) + registering(0) + "\n[AGENT_STATUS] {" +
				strings.Repeat("\n", listen.HeldMax+10) + "}\n" + registering(1) + "\n")
			s.lasts(time.Hour)
			return true
		}
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(2 * time.Second)
		b.isCrew("WAKING…, Lyra alive, Kael alive, ? hatching")
		if got := b.notices(); strings.Count(got, "fault: ") != 1 {
			t.Errorf("notices: %q", got)
		}
	})
}

// TestLeadInAChannel checks that the lead participates in its channels in its lead session. Text in
// a turn is a post. A marker in it counts and is not shown.
func TestLeadInAChannel(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.inOneChannel("julian")
		b.led("julian")
		l := newScriptedLead()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(20 * time.Second)
		l.ill = func(s *fakeSession, text string) bool {
			if strings.HasPrefix(text, "Channel ") {
				s.say("Mira has gone.")
				s.say(`[AGENT_STATUS] {"agents":[{"name":"Lyra","status":"alive","gridPosition":0},{"name":"Kael","status":"alive","gridPosition":1}]}`)
				s.say("So two are left. TURN_COMPLETE")
				return true
			}
			return false
		}
		b.retrySay("who is there?", "")
		b.after(20 * time.Second)
		b.isCrew("WAKE, Lyra alive, Kael alive, Mira sleeping")
		if n := b.host.startsOf("julian"); n != 1 {
			t.Errorf("%d sessions", n)
		}
		page, err := b.engine.Channels.ChannelEntries(t.Context(), "reviews", view.EntryQuery{Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		var posts []string
		for _, one := range page.Entries {
			if one.By == "julian" {
				posts = append(posts, one.Text)
			}
		}
		if want := []string{"Mira has gone.", "So two are left."}; !slices.Equal(posts, want) {
			t.Errorf("it posted %q", posts)
		}
		s := b.host.session("julian-1")
		s.say("Kael has gone, too.") // reported without a prompt, outside of any channel
		s.say(`[AGENT_STATUS] {"agents":[]}`)
		b.after(2 * time.Second)
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		if kept := b.keptWords(); kept[len(kept)-1] != "Kael has gone, too." {
			t.Errorf("stored %q", kept)
		}
		b.after(time.Hour) // the session stays open
		if ids := b.host.running(); len(ids) != 1 {
			t.Errorf("running: %v", ids)
		}
		view, err := b.engine.Status.Why(t.Context(), "julian")
		if err != nil || !strings.Contains(view.Verdict, "leads the team") {
			t.Errorf("why says %q, %v", view.Verdict, err)
		}
	})
}

// TestLeadWithoutInput checks that an agent whose program reads no input cannot lead, and that the
// refusal says why.
func TestLeadWithoutInput(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.driver.talks = false
		b.start()
		if _, err := b.engine.Crew.Summon(t.Context(), human); !isRefusal(err) || !strings.Contains(err.Error(), "told nothing while it runs") {
			t.Errorf("summon: %v", err)
		}
		if _, err := b.engine.Crew.Wake(t.Context(), human, nil); !isRefusal(err) {
			t.Errorf("wake: %v", err)
		}
		if n := b.host.startsOf("julian"); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

// J1: the lead session waits in the queue behind another session of the same agent, and why names
// it.
func TestLeadWaitsInTheQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		b.host.play = func(s *fakeSession) {
			if s.kind == "lead" {
				l.leads(s)
				return
			}
			s.lasts(40 * time.Second)
			s.say("stop ok")
		}
		b.start()
		b.command("julian", "run_once")
		b.settle()
		b.summons()
		b.settle()
		view, err := b.engine.Status.Why(t.Context(), "julian")
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(view.Evidence); !strings.Contains(string(text), "its lead session waits: ") ||
			!strings.Contains(string(text), "julian-1") {
			t.Errorf("why says %s", text)
		}
		b.after(time.Minute)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
	})
}

// TestPlanOfALead checks that the plan of a start names the lead session, and that the start opens
// it.
func TestPlanOfALead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		b.host.play = l.leads
		b.start()
		b.host.starts.set(func(string) error {
			b.crashPoint.die()
			return errors.New("the machine is going")
		})
		_, _ = b.engine.Crew.Summon(t.Context(), human)
		b.settle()
		b.host.starts.set(nil)
		b.restartIfDead()
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		if got := b.logged.String(); !strings.Contains(got, "start julian-1 (lead): it leads the team, and is to summon it") {
			t.Errorf("the plan was %s", got)
		}
	})
}

// TestStopWithALead checks that a stop of the daemon ends the lead's session, so that its crew
// sleeps.
func TestStopWithALead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(20 * time.Second)
		if err := b.engine.Agents.Stop(t.Context(), human, false); err != nil {
			t.Fatal(err)
		}
		b.after(15 * time.Second)
		select {
		case <-b.engine.Loop.Stopped():
		default:
			t.Error("the stop did not complete")
		}
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		if _, err := b.engine.Crew.Wake(t.Context(), human, nil); !isRefusal(err) {
			t.Errorf("a wake while it stops: %v", err)
		}
	})
}

// TestHeldLead checks that the lead receives no new prompt while the team is held, and receives it
// after the release.
func TestHeldLead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newScriptedLead()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(20 * time.Second)
		b.host.session("julian-1").exit(0)
		b.settle()
		b.wakes()
		b.after(500 * time.Millisecond)
		hold := func(on bool) {
			if _, err := b.engine.Agents.Hold(t.Context(), human, on, ""); err != nil {
				t.Fatal(err)
			}
		}
		hold(true)
		if _, err := b.engine.Crew.Wake(t.Context(), human, nil); !isRefusal(err) {
			t.Errorf("a wake while it is held: %v", err)
		}
		b.after(20 * time.Second)
		if n := l.count("julian-2"); n != 1 {
			t.Errorf("during the hold the lead received %d prompts", n)
		}
		hold(false)
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
	})
}

// TestLimitedLead checks that a permission question of the lead is shown, and that the lead's limit
// ends its session.
func TestLimitedLead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.agent("julian").Limits.Session = time.Minute
		l := newScriptedLead()
		l.ill = func(s *fakeSession, _ string) bool {
			s.say("asks May I start eight agents?")
			s.lasts(time.Hour)
			return true
		}
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(2 * time.Second)
		if got := b.notices(); !strings.Contains(got, "it asks for permission: May I start eight agents?") {
			t.Errorf("notices: %q", got)
		}
		b.after(2 * time.Minute)
		if ids := b.host.running(); len(ids) != 0 {
			t.Errorf("running: %v", ids)
		}
		if err := b.engineTeamIsReplayed(); err != nil {
			t.Error(err)
		}
	})
}
