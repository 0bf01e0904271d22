package app

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// inOneChannel puts the bubble's agents into one channel.
func (b *bubble) inOneChannel(agents ...string) {
	b.driver.talks = true
	b.conf.TurnConfig = config.TurnConfig{
		DefaultTimeoutSeconds: 60, HumanInterruptMode: config.Inject, AnnounceTimeouts: true, AnnounceDisconnects: true,
		AutoDetectSilenceSeconds: 10,
	}
	for i := range b.conf.Agents {
		b.conf.Agents[i].TurnTimeout = time.Minute
	}
	b.conf.Channels = []config.Channel{{
		Name: "reviews", Agents: agents, HumanInterruptMode: config.Inject, MaxRounds: 2, WaitTimeout: 5 * time.Minute,
	}}
}

// promptLedger records what agents received and what they said, independent of the journal.
type promptLedger struct {
	mu        sync.Mutex
	delivered map[string][]string
	said      map[string][]string
}

func newPromptLedger() *promptLedger {
	return &promptLedger{delivered: map[string][]string{}, said: map[string][]string{}}
}

func (l *promptLedger) tell(agent, prompt string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delivered[agent] = append(l.delivered[agent], prompt)
	return len(l.delivered[agent])
}

func (l *promptLedger) count(agent string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.delivered[agent])
}

func (l *promptLedger) say(s *fakeSession, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.say("%s", text) {
		return
	}
	if words := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(text, "TURN_COMPLETE"), "TURN_WAIT")); words != "" &&
		words != "TURN_PASS" {
		l.said[agentIn(s.id)] = append(l.said[agentIn(s.id)], words)
	}
}

// talks runs an agent in a session for channels. It answers each prompt, slowly enough for people
// to interrupt, and waits once.
func (l *promptLedger) talks(s *fakeSession) {
	agent := agentIn(s.id)
	text, cancelled, ok := s.next(time.Hour)
	for ok {
		if cancelled { // the cancelled answer has already ended
			s.say("listening %d", s.read())
			text, cancelled, ok = s.next(time.Hour)
			continue
		}
		n := l.tell(agent, text)
		l.say(s, "%s says %d", agent, n)
		switch {
		case strings.Contains(text, "a person interrupted"):
		case agent == "ada" && n == 2:
			l.say(s, "%s builds %d TURN_WAIT", agent, n)
			s.lasts(10 * time.Second)
			l.say(s, "%s has built %d TURN_COMPLETE", agent, n)
		default:
			more, cancel, some := s.next(5 * time.Second)
			switch {
			case some && cancel: // it stops during an answer
			case some:
				l.tell(agent, more)
				l.say(s, "%s has heard %d TURN_COMPLETE", agent, n)
			default:
				l.say(s, "%s is done %d TURN_COMPLETE", agent, n)
			}
		}
		s.say("listening %d", s.read())
		text, cancelled, ok = s.next(time.Hour)
	}
	s.say("stop ok")
}

// read returns how much of its input it has read.
func (s *fakeSession) read() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.input - int64(len(s.in))
}

// retrySay posts a person's message until it is known to be accepted.
func (b *bubble) retrySay(text, mode string) {
	b.t.Helper()
	for range 3 {
		b.restartIfDead()
		if slices.ContainsFunc(b.history(), func(ch journal.Change) bool { return strings.Contains(string(ch.Data), `"text":"`+text) }) {
			return
		}
		if _, err := b.engine.Channels.Say(b.t.Context(), human, "reviews", text, mode); err == nil {
			return
		}
	}
	b.t.Errorf("%q was never accepted", text)
}

// talkScenario plays a conversation, independent of crashes of the supervisor.
func talkScenario(b *bubble, l *promptLedger) {
	b.host.play = l.talks
	pass := func(d time.Duration) {
		for range 4 {
			b.after(d / 4)
			b.restartIfDead()
		}
	}
	pass(2 * time.Second)
	b.retrySay("please review", "")
	pass(8 * time.Second)
	b.retrySay("mind the tests", "inject")
	pass(30 * time.Second)
	b.retrySay("what now?", "queue")
	pass(2 * time.Second)
	b.retrySay("stop this", "interrupt")
	pass(60 * time.Second)
	b.retrySay("what do all say?", "parallel")
	pass(3 * time.Minute)
	b.restartIfDead()
}

var turnTold = regexp.MustCompile(`^Channel reviews, turn (\d+): (it is your turn|your turn goes on|a person said)`)

// once checks that no prompt was delivered twice, and that the journal has every message once, in
// order.
func (l *promptLedger) once(b *bubble) {
	t := b.t
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for agent, prompts := range l.delivered {
		seen := map[string]bool{}
		for _, prompt := range prompts {
			m := turnNumber.FindString(prompt)
			if m != "" && seen[m] {
				t.Errorf("%s received the same prompt twice: %s", agent, m)
			}
			seen[m] = true
		}
	}
	kept := b.kept()
	for agent, said := range l.said {
		if !slices.Equal(said, kept[agent]) {
			t.Errorf("%s said %q, but the journal has %q", agent, said, kept[agent])
		}
	}
}

var turnNumber = regexp.MustCompile(`^Channel \w+, turn \d+: it is your turn`)

// kept lists what agents said according to the journal.
func (b *bubble) kept() map[string][]string {
	b.t.Helper()
	kept := map[string][]string{}
	for _, rec := range b.history() {
		var data struct {
			Turn *struct {
				Body channel.Body `json:"body"`
				Text string       `json:"text"`
			} `json:"turn"`
		}
		if err := json.Unmarshal(rec.Data, &data); err != nil {
			b.t.Fatal(err)
		}
		if data.Turn == nil || data.Turn.Body.Post == nil || data.Turn.Body.Post.Kind == channel.OfHuman {
			continue
		}
		by := data.Turn.Body.Post.By
		kept[by] = append(kept[by], strings.Split(data.Turn.Text, "\n")...)
	}
	return kept
}

// check verifies that everything was delivered once and every message is stored once.
func (l *promptLedger) check(b *bubble) {
	t := b.t
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for agent, prompts := range l.delivered {
		seen := map[string]int{}
		for i, prompt := range prompts {
			key := prompt
			if m := turnTold.FindStringSubmatch(prompt); m != nil && m[2] == "it is your turn" {
				key = m[0]
			}
			if before, again := seen[key]; again {
				t.Errorf("%s received the same prompt twice, as %d and as %d:\n%s", agent, before, i, prompt)
			}
			seen[key] = i
		}
		for _, text := range []string{"please review", "mind the tests", "what now?", "stop this", "what do all say?"} {
			n := 0
			for _, prompt := range prompts {
				n += strings.Count(prompt, "> "+text)
			}
			if n > 1 {
				t.Errorf("%s received %q %d times", agent, text, n)
			}
		}
	}
	kept := b.kept()
	for agent, said := range l.said {
		if !slices.Equal(said, kept[agent]) {
			t.Errorf("%s said %q, but the journal has %q", agent, said, kept[agent])
		}
	}
}

// TestCrashKeepsTheTurn checks that a channel is unchanged after a crash: during a turn, a wait, an
// interruption, or with undelivered messages (SPEC, Turn). A late timer from before the crash has
// no effect.
func TestCrashKeepsTheTurn(t *testing.T) {
	t.Parallel()
	lives := map[string]func(b *bubble, l *promptLedger, s *fakeSession){
		"turn": func(_ *bubble, l *promptLedger, s *fakeSession) { l.say(s, "I begin") },
		"wait": func(_ *bubble, l *promptLedger, s *fakeSession) { l.say(s, "a build TURN_WAIT") },
		"ask":  func(_ *bubble, _ *promptLedger, s *fakeSession) { s.say("asks May I push?") },
		"stop": func(_ *bubble, l *promptLedger, s *fakeSession) {
			l.say(s, "I begin")
			s.next(time.Hour) // the order to stop
			s.say("listening %d", s.read())
		},
	}
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
				b.inOneChannel("ada", "bob")
				l := newPromptLedger()
				b.host.play = func(s *fakeSession) {
					text, _, _ := s.next(time.Hour)
					l.tell(agentIn(s.id), text)
					life(b, l, s)
					<-s.asked
				}
				b.start()
				b.retrySay("please review", "")
				b.after(3 * time.Second)
				if name == "stop" {
					b.retrySay("stop this", "interrupt")
					b.after(3 * time.Second)
				}
				b.retrySay("mind the tests", "queue")
				b.settle()
				was, _ := json.Marshal(b.replayed().Channels.ByID)
				view, err := b.engine.Channels.Channel(t.Context(), "reviews")
				if err != nil || view.Holder != "ada" || view.Deadline == nil {
					t.Fatalf("the channel is %+v, %v", view, err)
				}
				b.crashPoint.die()
				b.restartIfDead()
				b.after(time.Second)
				if is, _ := json.Marshal(b.replayed().Channels.ByID); string(is) != string(was) {
					t.Errorf("after the crash the channels are\n%s\nbefore it they were\n%s", is, was)
				}
				if n := l.count("ada"); n != 1 && name != "stop" {
					t.Errorf("ada received %d prompts", n)
				}
				b.after(time.Until(*view.Deadline) + time.Millisecond)
				if got := b.rows("channel/reviews"); !strings.Contains(got,
					map[string]string{"turn": " T9 ", "wait": " T13 ", "ask": " T13 ", "stop": " T9 "}[name]) {
					t.Errorf("the deadline from before the crash had no effect: %s", got)
				}
			})
		})
	}
}

// TestTalkCrashAtEveryStep crashes the supervisor at every act of a conversation, with the act done
// or not. Every turn and message is delivered exactly once, every message is stored exactly once,
// and the conversation ends.
func TestTalkCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(t *testing.T, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "ada", "bob")
			defer b.end()
			b.inOneChannel("ada", "bob")
			l := newPromptLedger()
			b.open(c.last, c.undone)
			first := b.crashPoint
			b.run()
			talkScenario(b, l)
			l.check(b)
			if err := b.engineTeamIsReplayed(); err != nil {
				t.Error(err)
			}
			if v, err := b.engine.Channels.Channel(t.Context(), "reviews"); err != nil || v.Holder != "" || len(v.Open) != 0 || v.Turn < 6 {
				t.Errorf("in the end the channel is %+v, %v", v, err)
			}
			if t.Failed() {
				page, _ := b.engine.Channels.ChannelEntries(t.Context(), "reviews", view.EntryQuery{Limit: 500, Moves: true})
				for _, one := range page.Entries {
					t.Log(one.At.Format("04:05.0"), one.Kind, one.By, one.Text, one.Row, one.Agent, one.From, one.To, one.Turn)
				}
			}
			acts = first.count()
		})
		return acts
	}
	acts := play(t, cut{})
	if acts < 40 {
		t.Fatalf("only %d acts; the scenario must do more", acts)
	}
	t.Logf("%d acts", acts)
	everyCut(t, acts, func(t *testing.T, c cut) { play(t, c) })
}
