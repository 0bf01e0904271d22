package app

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// SPEC X9, C17: reported usage ends an agent's session and prevents the next one.
func TestLimitsByReports(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]string{
		"tokens_per_day":   "usage 600 500 0",
		"cost_per_day_usd": "usage 1 1 11.5",
		"one line of two":  "turn 600 500 0",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
				b.agent("coder").Limits.TokensPerDay = 1000
				b.agent("coder").Limits.CostPerDayUSD = 10
				b.host.play = func(s *fakeSession) {
					s.say("hello")
					if agentIn(s.id) == "coder" {
						s.say("%s", say)
					}
					<-s.asked
				}
				b.start()
				b.command("coder", "continuous")
				b.command("pm", "continuous")
				b.after(time.Minute)
				a := b.is("coder", "pause", "pause")
				if name != "one line of two" && !strings.Contains(a.Note, name) {
					t.Errorf("the note does not name the limit: %q", a.Note)
				}
				b.is("pm", "continuous", "continuous")
				if _, err := b.engine.Agents.Command(t.Context(), human, "coder", "run_once", ""); err == nil ||
					!strings.Contains(err.Error(), "C17") {
					t.Errorf("over its daily limit, the agent's status is %v", err)
				}
				b.after(24 * time.Hour)
				b.command("coder", "run_once")
				b.settle()
				if n := b.host.startsOf("coder"); n != 2 {
					t.Errorf("%d starts on two days", n)
				}
			})
		})
	}
}

// SPEC X9: the limit of a session's duration, also across a restart.
func TestSessionLimitOverARestart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.agent("coder").Limits.Session = time.Hour
		b.start()
		b.command("coder", "continuous")
		b.after(40 * time.Minute)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.after(19 * time.Minute)
		b.is("coder", "continuous", "continuous")
		b.after(2 * time.Minute)
		if a := b.is("coder", "pause", "pause"); !strings.Contains(a.Note, "session 1h") {
			t.Errorf("note %q", a.Note)
		}
	})
}

// TestReportsAreCountedOnce checks that usage reported before a restart is not counted again, and
// that usage reported meanwhile is counted.
func TestReportsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"usage", "turn"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.host.play = func(s *fakeSession) { <-s.asked }
				b.start()
				b.command("coder", "run_once")
				b.settle()
				s := b.host.session("coder-1")
				for round := range 3 {
					s.say("%s 10 1 0.5", how)
					s.say("words")
					s.say("%s 20 2 0.5", how)
					b.after(listen.ReportEvery) // recorded in the journal
					s.say("%s 30 3 1", how)
					if err := b.stop(); err != nil { // not recorded yet
						t.Fatal(err)
					}
					s.say("%s 40 4 1", how)
					b.start()
					b.after(time.Second)
					n := int64(round + 1)
					u := b.view("coder").UsageToday
					if u.InputTokens != 100*n || u.OutputTokens != 10*n || u.CostUSD != float64(3*n) {
						t.Errorf("round %d: %+v", round, u)
					}
				}
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				s.say("%s 1 1 1", how)
				s.exit(0) // while no daemon runs
				b.start()
				if u := b.view("coder").UsageToday; u.InputTokens != 301 {
					t.Errorf("the last usage: %+v", u)
				}
				b.is("coder", "pause", "pause")
				b.checkConsistent()
			})
		})
	}
}

// TestNoReportInTheMiddleOfALine checks that the stored offset is never inside a line, regardless
// of the driver's delay. Otherwise the line would be counted twice or not at all.
func TestNoReportInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { <-s.asked }
		b.driver.between.set(func(string) error {
			wait.Elapse(3 * listen.ReportEvery)
			return nil
		})
		b.start()
		b.command("coder", "run_once")
		b.settle()
		s := b.host.session("coder-1")
		s.say("") // a line without facts
		s.say("turn 10 1 0.5")
		b.after(2 * listen.ReportEvery) // in the middle of the line
		if u := b.view("coder").UsageToday; u.InputTokens != 0 {
			t.Errorf("stored an offset inside a line: %+v", u)
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		s.say("turn 20 2 0.5")
		b.after(time.Minute)
		if u := b.view("coder").UsageToday; u.InputTokens != 30 || u.OutputTokens != 3 {
			t.Errorf("%+v", u)
		}
	})
}

// TestUseOfASessionThatWasNeverSeen checks that the usage counts of a session that ended before it
// was seen running.
func TestUseOfASessionThatWasNeverSeen(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { s.say("usage 10 10 1") }
		b.start()
		b.host.starts.set(func(string) error { // the engine crashes with the start, which succeeds
			b.crashPoint.mu.Lock()
			defer b.crashPoint.mu.Unlock()
			b.crashPoint.last = len(b.crashPoint.acts) + 1
			return nil
		})
		b.command("coder", "run_once")
		b.settle()
		if !b.crashPoint.isDead() {
			t.Fatal("it lives")
		}
		b.host.starts.set(nil)
		b.restartIfDead()
		if u := b.view("coder").UsageToday; u.InputTokens != 10 {
			t.Errorf("%+v", u)
		}
		b.is("coder", "pause", "pause")
		b.checkConsistent()
	})
}

// TestHostileNumbers checks that an agent may report arbitrary numbers.
func TestHostileNumbers(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.agent("coder").Limits.CostPerDayUSD = 1e12
		b.host.play = func(s *fakeSession) {
			for _, line := range []string{
				"usage -5 -5 -5", "usage 9223372036854775807 9223372036854775807 NaN", "usage 9223372036854775807 1 +Inf",
				"usage x y z", "usage 0 0 -Inf", "usage 1 1 1e308", "usage 1 1 1e308", "stop " + strings.Repeat("\xff<", 4000),
			} {
				s.say("%s", line)
			}
			<-s.asked
			s.exit(1)
		}
		b.start()
		b.command("coder", "run_once")
		b.after(time.Minute)
		u := b.view("coder").UsageToday
		if u.InputTokens < 0 || u.OutputTokens < 0 || math.IsNaN(u.CostUSD) || math.IsInf(u.CostUSD, 0) || u.CostUSD < 0 {
			t.Errorf("%+v", u)
		}
		b.is("coder", "pause", "pause")
		b.checkConsistent()
	})
	var l listen.SessionListener
	for range 100 {
		l.Note(listen.HeldFact{Fact: driver.Fact{
			Kind:  driver.UsageReported,
			Usage: change.Usage{InputTokens: math.MaxInt64, CostUSD: math.Inf(1)},
		}})
	}
	if u := l.Pending.Usage; u.InputTokens != 100*sessions.TokensReportMax || u.CostUSD != 100*sessions.CostReportMax {
		t.Errorf("%+v", u)
	}
}

// TestClock checks that timers fire after the clock was set back or forward.
func TestClock(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.host.play = func(s *fakeSession) { s.exit(1) }
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		ahead := journal.Change{
			Time: time.Now().Add(48 * time.Hour), Machine: "team", Entity: "agent/coder", Row: "E3", From: "configured",
			To: "configured", Trigger: "agent_configured", Actor: change.Actor{Kind: "engine", ID: "x"},
		}
		ahead.Data = []byte(`{"agent":{"settings":{"policy":{},"limits":{},"driver":"fake"}}}`)
		if _, err := b.slate.Append(t.Context(), []journal.Change{ahead}); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.command("coder", "continuous")
		b.after(5 * time.Minute) // a back-off of 1 + 2 + 4 + 8 seconds, on a clock that was set back
		if a := b.is("coder", "pause", "pause"); !strings.Contains(a.Note, "5 sessions failed") {
			t.Errorf("note %q", a.Note)
		}
		last := time.Time{}
		for _, ch := range b.history() {
			if ch.Time.Before(last) {
				t.Errorf("change %d is of %v, before %v", ch.Seq, ch.Time, last)
			}
			last = ch.Time
		}
	})
}
