package controller

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/listen"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// A whole summon, the end of the lead's session, and a whole wake; and nothing is sent to who is
// already here.
func TestSummonAndWake(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
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
		if told := l.told["julian-1"]; len(told) != 1 || !strings.HasPrefix(told[0], "[SUMMON AGENTS]\n") {
			t.Errorf("the lead was told %q", told)
		}
		if view := b.view("julian"); view.Session == nil || view.Session.Kind != "lead" || view.Presence != "lead" {
			t.Errorf("the lead is shown as %+v", view)
		}
		if _, err := b.engine.Summon(t.Context(), human); !isRefusal(err) {
			t.Errorf("a second summon: %v", err)
		}
		b.wakes() // no member is asleep
		b.after(time.Minute)
		if n := l.count("julian-1"); n != 1 {
			t.Errorf("it was told %d things", n)
		}

		b.host.session("julian-1").exit(0)
		b.settle()
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		b.wakes("Kael")
		b.settle()
		b.isCrew("WAKING…, Lyra unknown, Kael unknown, Mira unknown")
		b.after(20 * time.Second)
		b.isCrew("WAKE, Lyra sleeping, Kael alive, Mira sleeping")
		told := l.told["julian-2"]
		if len(told) != 2 || !strings.HasPrefix(told[0], "Who of your team") || !strings.HasPrefix(told[1], "[WAKE AGENTS]\n") {
			t.Fatalf("the lead was told %q", told)
		}
		for want, in := range map[string]bool{"I am Kael, and say ": true, "[Kael]: I am Kael.": true, "Lyra": false, "Mira": false} {
			if strings.Contains(told[1], want) != in {
				t.Errorf("%q in what it was told: %v; it was\n%s", want, !in, told[1])
			}
		}
		b.wakes()
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		if last := l.told["julian-2"][2]; strings.Contains(last, "Kael") || !strings.Contains(last, "Lyra") || !strings.Contains(last, "Mira") {
			t.Errorf("the lead was told of those who were awake:\n%s", last)
		}
		if _, err := b.engine.Sleep(t.Context(), human); err != nil {
			t.Error(err)
		}
		b.after(time.Minute)
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		b.heardOnce(l)
		if n := len(b.host.running()); n != 0 {
			t.Errorf("%d sessions run", n)
		}
	})
}

// A lead that says nothing has 30 seconds; one that works without a word, or speaks, has longer.
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
				l := newLeader()
				l.ill = play.ill
				b.host.play = l.leads
				b.start()
				b.summons()
				b.after(play.over - 6*time.Second)
				b.isCrew("WAKING…, ? hatching, ? hatching, ? hatching")
				if view, _ := b.engine.Crew(t.Context(), false); view.InProgress != "summoning" {
					t.Errorf("before its time, it is %q", view.InProgress)
				}
				b.after(12 * time.Second)
				if view, _ := b.engine.Crew(t.Context(), false); view.InProgress != "" {
					t.Errorf("after its time, it is %q", view.InProgress)
				}
				if got := b.notices(); !strings.Contains(got, "silent: ") {
					t.Errorf("people were told %q", got)
				}
				b.after(5 * time.Minute)
				b.isCrew("SUMMON")
			})
		})
	}
}

// repeats says something for 40 seconds, and is silent then.
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

// A lead that ends in the middle of a summon or a wake ends it, and people are told.
func TestLeadEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(1500 * time.Millisecond)
		b.host.session("julian-1").exit(3)
		b.settle()
		b.isCrew("WAKE, Lyra sleeping, ? hatching, ? hatching")
		if got := b.notices(); !strings.Contains(got, "lead: julian ended in the middle of summoning") {
			t.Errorf("people were told %q", got)
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
		b.heardOnce(l)
	})
}

// A lead that survives a daemon is asked for the status of its members as soon as it listens, unless
// it reports it before. What it was told already it is not told again.
func TestAdoptedLead(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"told": 0, "first": 1500 * time.Millisecond, "last": 3500 * time.Millisecond, "over": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "julian", func(t *testing.T, b *bubble) {
				b.led("julian")
				l := newLeader()
				b.host.play = l.leads
				b.start()
				b.summons()
				b.settle()
				if at > 0 {
					b.after(at)
				}
				b.fate.die()
				b.alive()
				b.settle()
				if got := b.crew(); at == 20*time.Second && got != "WAKE, Lyra unknown, Kael unknown, Mira unknown" {
					t.Errorf("after the restart the team is %q", got)
				}
				b.after(20 * time.Second)
				b.isCrew("none, Lyra alive, Kael alive, Mira alive")
				told := l.told["julian-1"]
				if !strings.HasPrefix(told[0], "[SUMMON") || at < 20*time.Second && len(told) != 1 { // it reported before it listened, and need not be asked
					t.Errorf("it was told %d things: %.40q", len(told), told)
				}
				if at == 20*time.Second && (len(told) != 2 || !strings.HasPrefix(told[1], "Who of your team")) {
					t.Errorf("it was told %d things: %.40q", len(told), told)
				}
				b.heardOnce(l)
			})
		})
	}
}

// put writes bytes as they are: agents do not write whole lines.
func (s *fakeSession) put(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, text...)
	close(s.grew)
	s.grew = make(chan struct{})
}

// What a lead says is cut at every byte by the death of the daemon: every marker counts once, and
// every word is kept once.
func TestMarkerCutByACrash(t *testing.T) {
	t.Parallel()
	stream := "Now.\n" + registering(0) + "\n[Lyra]: Here.\nAnd [AGENT_STATUS] {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}\nDone.\n"
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
			b.fate.die()
			b.alive()
			b.after(2 * time.Second)
			s.put(stream[at:])
			b.after(2 * time.Second)
			if got := b.crew(); !strings.Contains(got, "Lyra alive") && at < strings.Index(stream, "Done") {
				t.Errorf("cut at %d: the team is %s", at, got)
			}
			all := " " + b.rows("") + " "
			if reg, rep := strings.Count(all, " P2 "), strings.Count(all, " L5 "); reg != 1 || rep != 1 {
				t.Errorf("cut at %d: registered %d times, reported %d times", at, reg, rep)
			}
			got := strings.Join(b.keptWords(), "|")
			if want := "Now.|[Lyra]: Here.|And |Done."; strings.ReplaceAll(got, "And|", "And |") != want {
				t.Errorf("cut at %d (%q): kept %q, not %q", at, stream[max(0, at-10):at], got, want)
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

// A marker from any agent but the lead is seen by people, three times a session, and changes nothing.
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
			t.Errorf("of coder people saw %d:\n%s", n, got)
		}
		if n := strings.Count(got, "refused: a report has"); n != 9 {
			t.Errorf("of julian people saw %d:\n%s", n, got)
		}
		if err := b.engineTeamIsReplayed(); err != nil {
			t.Error(err)
		}
	})
}

// What cannot be read is said, and the stream goes on; too many markers at once are not read.
func TestBrokenMarkers(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
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

// A marker that begins behind much else is heard; one of more lines than any document has is
// broken, and what comes after it is heard.
func TestMarkersOfManyLines(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
		l.ill = func(s *fakeSession, _ string) bool {
			s.put(strings.Repeat("x\n", 3*listen.HeldMax/2) + registering(0) + "\n[AGENT_STATUS] {" + strings.Repeat("\n", listen.HeldMax+10) + "}\n" + registering(1) + "\n")
			s.lasts(time.Hour)
			return true
		}
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(2 * time.Second)
		b.isCrew("WAKING…, Lyra alive, Kael alive, ? hatching")
		if got := b.notices(); strings.Count(got, "fault: ") != 1 {
			t.Errorf("people were told %q", got)
		}
	})
}

// The lead takes part in its channels in its lead session, and what is said there is a post; a
// marker in it counts, and is not shown.
func TestLeadInAChannel(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.circle("julian")
		b.led("julian")
		l := newLeader()
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
		b.insistSaying("who is there?", "")
		b.after(20 * time.Second)
		b.isCrew("WAKE, Lyra alive, Kael alive, Mira sleeping")
		if n := b.host.startsOf("julian"); n != 1 {
			t.Errorf("%d sessions", n)
		}
		page, err := b.engine.ChannelEntries(t.Context(), "reviews", view.EntryQuery{Limit: 50})
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
		s.say("Kael has gone, too.") // reported unasked, outside any channel
		s.say(`[AGENT_STATUS] {"agents":[]}`)
		b.after(2 * time.Second)
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		if kept := b.keptWords(); kept[len(kept)-1] != "Kael has gone, too." {
			t.Errorf("kept %q", kept)
		}
		b.after(time.Hour) // it stays
		if ids := b.host.running(); len(ids) != 1 {
			t.Errorf("running: %v", ids)
		}
		view, err := b.engine.Why(t.Context(), "julian")
		if err != nil || !strings.Contains(view.Verdict, "leads the team") {
			t.Errorf("why says %q, %v", view.Verdict, err)
		}
	})
}

// A lead whose output cannot be read is refused with a reason.
func TestDeafLead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.driver.talks = false
		b.start()
		if _, err := b.engine.Summon(t.Context(), human); !isRefusal(err) || !strings.Contains(err.Error(), "told nothing while it runs") {
			t.Errorf("summon: %v", err)
		}
		if _, err := b.engine.Wake(t.Context(), human, nil); !isRefusal(err) {
			t.Errorf("wake: %v", err)
		}
		if n := b.host.startsOf("julian"); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

// The lead waits in line behind itself (J1), and people see behind whom.
func TestLeadWaitsInLine(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
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
		view, err := b.engine.Why(t.Context(), "julian")
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(view.Evidence); !strings.Contains(string(text), "its lead session waits: ") || !strings.Contains(string(text), "julian-1") {
			t.Errorf("why says %s", text)
		}
		b.after(time.Minute)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
	})
}

// A start says what it will do with a lead session, and that one is started.
func TestPlanOfALead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
		b.host.play = l.leads
		b.start()
		b.host.starts.set(func(string) error {
			b.fate.die()
			return errors.New("the machine is going")
		})
		_, _ = b.engine.Summon(t.Context(), human)
		b.settle()
		b.host.starts.set(nil)
		b.alive()
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
		if got := b.logged.String(); !strings.Contains(got, "start julian-1 (lead): it leads the team, and is to summon it") {
			t.Errorf("the plan was %s", got)
		}
	})
}

// A daemon that is asked to stop lets the lead go, and its team sleeps.
func TestStopWithALead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(20 * time.Second)
		if err := b.engine.Stop(t.Context(), human, false); err != nil {
			t.Fatal(err)
		}
		b.after(15 * time.Second)
		select {
		case <-b.engine.Stopped():
		default:
			t.Error("the stop is not complete")
		}
		b.isCrew("WAKE, Lyra sleeping, Kael sleeping, Mira sleeping")
		if _, err := b.engine.Wake(t.Context(), human, nil); !isRefusal(err) {
			t.Errorf("a wake while it stops: %v", err)
		}
	})
}

// While the team is held the lead is told nothing new; it is told when the team is released.
func TestHeldLead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		l := newLeader()
		b.host.play = l.leads
		b.start()
		b.summons()
		b.after(20 * time.Second)
		b.host.session("julian-1").exit(0)
		b.settle()
		b.wakes()
		b.after(500 * time.Millisecond)
		hold := func(on bool) {
			if _, err := b.engine.Hold(t.Context(), human, on, ""); err != nil {
				t.Fatal(err)
			}
		}
		hold(true)
		if _, err := b.engine.Wake(t.Context(), human, nil); !isRefusal(err) {
			t.Errorf("a wake while it is held: %v", err)
		}
		b.after(20 * time.Second)
		if n := l.count("julian-2"); n != 1 {
			t.Errorf("while it is held it was told %d things", n)
		}
		hold(false)
		b.after(20 * time.Second)
		b.isCrew("none, Lyra alive, Kael alive, Mira alive")
	})
}

// A lead that asks for permission is shown to people, and its limit ends its session.
func TestLimitedLead(t *testing.T) {
	t.Parallel()
	inBubble(t, "julian", func(t *testing.T, b *bubble) {
		b.led("julian")
		b.agent("julian").Limits.Session = time.Minute
		l := newLeader()
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
			t.Errorf("people were told %q", got)
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
