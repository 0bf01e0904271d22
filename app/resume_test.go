package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
)

// conversing gives the bubble's agents conversations. Each session names its own, or resumes the
// given one.
func (b *bubble) conversing(how config.Resume, life func(s *fakeSession)) {
	b.driver.resumes, b.driver.talks = true, true
	for i := range b.conf.Agents {
		b.conf.Agents[i].Resume, b.conf.Agents[i].Permissions.Timeout = how, time.Hour
		b.conf.Agents[i].Model = "m1"
	}
	b.host.play = func(s *fakeSession) {
		if s.resume != "" {
			s.say("conversation %s m1 resumed", s.resume)
		} else {
			s.say("conversation talk-%s m1", s.id)
		}
		life(s)
	}
}

// waitsForPrompts runs a session that answers each prompt and waits for more.
func waitsForPrompts(s *fakeSession) {
	for _, _, ok := s.next(time.Hour); ok; _, _, ok = s.next(time.Hour) {
		s.say("done TURN_COMPLETE")
		s.say("listening %d", s.read())
	}
	s.say("stop ok")
}

func lost(s *fakeSession) {
	s.lasts(time.Minute)
	s.finish(session.Exit{Lost: true, Why: "its shim was killed"})
}

func well(s *fakeSession) {
	s.lasts(time.Minute)
	s.say("stop ok")
}

// resumedBy returns the conversation that a session was started with.
func (b *bubble) resumedBy(session string) string {
	b.t.Helper()
	s := b.host.session(session)
	if s == nil {
		b.t.Fatalf("there is no session %s; there are %v", session, b.host.order)
	}
	return s.resume
}

// TestResume checks that an interrupted session resumes its conversation. One that succeeded begins
// a new one unless `resume: always` is set; with `never` none resumes.
func TestResume(t *testing.T) {
	t.Parallel()
	died := func(s *fakeSession) {
		s.lasts(time.Minute)
		s.exit(137)
	}
	tests := map[string]struct {
		how  config.Resume
		life func(*fakeSession)
		want string
	}{
		"lost":                  {config.ResumeInterrupted, lost, "talk-coder-1"},
		"ended well":            {config.ResumeInterrupted, well, ""},
		"ended well, always":    {config.ResumeAlways, well, "talk-coder-1"},
		"lost, never":           {config.ResumeNever, lost, ""},
		"its program died":      {config.ResumeInterrupted, died, "talk-coder-1"},
		"it reported a failure": {config.ResumeInterrupted, func(s *fakeSession) { s.say("stop badly") }, ""},
		"rate limited": {
			config.ResumeInterrupted, func(s *fakeSession) { s.say("limited 10 no"); s.say("stop rate_limited") },
			"talk-coder-1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.conversing(tt.how, func(s *fakeSession) {
					if s.id != "coder-1" {
						<-s.asked
						return
					}
					tt.life(s)
				})
				b.start()
				b.command("coder", "continuous")
				b.after(2 * time.Minute)
				if got := b.resumedBy("coder-2"); got != tt.want {
					t.Errorf("resumed %q, want %q", got, tt.want)
				}
				if cut := strings.HasPrefix(string(b.host.session("coder-2").in),
					`{"prompt":"You were interrupted`); cut != (tt.want != "" && tt.how != config.ResumeAlways) {
					t.Errorf("the prompt is %s", b.host.session("coder-2").in)
				}
				b.noneOpen()
				if v := b.view("coder"); v.Conversation == nil || v.Conversation.Resumed != (tt.want != "") ||
					v.Conversation.Program != "fake 1.0" {
					t.Errorf("the view is %+v", v.Conversation)
				}
			})
		})
	}
}

// TestResumeDoesNotSpin checks that a conversation that fails again after a resume is not resumed
// forever.
func TestResumeDoesNotSpin(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.conversing(config.ResumeInterrupted, func(s *fakeSession) { s.exit(139) })
		b.start()
		b.command("coder", "continuous")
		b.after(time.Minute)
		for i, want := range []string{"", "talk-coder-1", "", "talk-coder-3"} {
			if got := b.resumedBy(fmt.Sprintf("coder-%d", i+1)); got != want {
				t.Errorf("session %d resumed %q, want %q", i+1, got, want)
			}
		}
	})
}

// TestResumeThatDiffers checks that a conversation that would resume with other settings waits for
// a person's answer, also across restarts. Without an answer a new one begins. The question names
// the differences.
func TestResumeThatDiffers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer string
		want   string
	}{
		"go on":           {view.GoOn, "talk-coder-1"},
		"begin a new one": {view.Anew, ""},
		"no answer":       {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.conversing(config.ResumeInterrupted, lost)
				b.start()
				b.command("coder", "continuous")
				b.after(30 * time.Second)
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				c := b.agent("coder")
				c.Model, c.Mode, c.Command = "m2", "yolo", []string{"agent", "--yolo"}
				b.start()
				b.after(time.Minute)
				q := b.open1(question.Resume)
				if text := strings.Join(q.Differs,
					"; "); text != "model: m1 is now m2; mode: (none) is now yolo; argument --yolo was added; argument agent was added" {
					t.Errorf("differences: %s", text)
				}
				if b.host.session("coder-2") != nil {
					t.Error("the session was started before the answer")
				}
				why, err := b.engine.Status.Why(t.Context(), "coder")
				if err != nil || !strings.Contains(why.Verdict, "its conversation would be resumed with other settings") {
					t.Errorf("why says %s, %v", why.Verdict, err)
				}
				b.crashPoint.die()
				b.restartIfDead()
				b.after(time.Second)
				if again := b.open1(question.Resume); again.ID != q.ID {
					t.Errorf("after a crash there is a second question %s", again.ID)
				}
				if tt.answer == "" {
					b.after(time.Hour)
				} else {
					b.answer(q.ID, view.QuestionAnswer{Option: tt.answer})
					b.after(time.Second)
				}
				if got := b.resumedBy("coder-2"); got != tt.want {
					t.Errorf("resumed %q, want %q", got, tt.want)
				}
				b.noneOpen()
				if got := b.rows("question/q1"); got != "Q1 Q3 Q6" && (tt.answer != "" || got != "Q1 Q4 Q6") {
					t.Errorf("the question has the rows %s", got)
				}
				b.after(2 * time.Minute) // it was interrupted again, and the settings match
				b.noneOpen()
			})
		})
	}
}

// TestResumeNoLongerWanted checks a change of the desired state while the question is open: no
// session starts, and the question is withdrawn.
func TestResumeNoLongerWanted(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.conversing(config.ResumeInterrupted, lost)
		b.start()
		b.command("coder", "continuous")
		b.after(30 * time.Second)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.agent("coder").Model = "m2"
		b.start()
		b.after(time.Minute)
		b.open1(question.Resume)
		b.command("coder", "pause")
		b.after(time.Second)
		b.noneOpen()
		b.is("coder", "pause", "pause")
		if n := b.host.startsOf("coder"); n != 1 {
			t.Errorf("%d sessions were started", n)
		}
	})
}

// TestResumeOfATalk checks that a session for channels resumes the previous conversation, and that
// a turn that passes while a question is open causes no second question.
func TestResumeOfATalk(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada", "bob")
		b.conversing(config.ResumeInterrupted, waitsForPrompts)
		b.start()
		b.retrySay("hello", "")
		b.after(20 * time.Minute) // the sessions have ended
		b.retrySay("hello again", "")
		b.after(10 * time.Second)
		if got := b.resumedBy("ada-2"); got != "talk-ada-1" {
			t.Errorf("resumed %q", got)
		}
		b.after(20 * time.Minute)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.agent("ada").Model = "m2"
		b.start()
		b.retrySay("and again", "")
		b.after(5 * time.Minute) // its turn has ended long ago
		q := b.open1(question.Resume)
		b.answer(q.ID, view.QuestionAnswer{Option: view.GoOn})
		b.after(time.Minute)
		b.retrySay("and once more", "")
		b.after(time.Minute)
		b.noneOpen()
		last := b.host.order[len(b.host.order)-1]
		for _, id := range b.host.order {
			if agentIn(id) == "ada" {
				last = id
			}
		}
		if got := b.resumedBy(last); last == "ada-2" || got != "talk-ada-1" {
			t.Errorf("%s resumed %q; %v", last, got, b.host.order)
		}
	})
}

// TestResumeProcessConflict checks that a conversation that another process has open is resumed only if a
// person says so, or the process closes it.
func TestResumeProcessConflict(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{true, false} {
		t.Run(fmt.Sprintf("leaves=%v", leaves), func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				var mu sync.Mutex
				there := []sessionhost.ProcessConflict{{
					PID: 4711, Program: "claude", Sign: "its arguments name the conversation",
					Under: "tmux, session 0 of server 99",
				}}
				b.conflicts = func(_ context.Context, id string, _ []string) ([]sessionhost.ProcessConflict, error) {
					mu.Lock()
					defer mu.Unlock()
					if id != "talk-coder-1" {
						return nil, nil
					}
					return there, nil
				}
				b.conversing(config.ResumeInterrupted, lost)
				b.start()
				b.command("coder", "continuous")
				b.after(2 * time.Minute)
				q := b.open1(question.Resume)
				if text := fmt.Sprint(q.What, q.Differs); !strings.Contains(text, "process 4711 (claude)") ||
					!strings.Contains(text, "tmux, session 0") {
					t.Errorf("it says %s", text)
				}
				if why, err := b.engine.Status.Why(t.Context(), "coder"); err != nil || !strings.Contains(why.Verdict, "4711") {
					t.Errorf("why says %s, %v", why.Verdict, err)
				}
				want := ""
				if leaves {
					mu.Lock()
					there, want = nil, "talk-coder-1"
					mu.Unlock()
					b.after(10 * time.Second)
				} else {
					b.answer(q.ID, view.QuestionAnswer{Option: view.Anew})
					b.after(time.Second)
				}
				b.noneOpen()
				if got := b.resumedBy("coder-2"); got != want {
					t.Errorf("resumed %q, want %q", got, want)
				}
			})
		})
	}
}

// TestConversationNotFound checks that a program that does not find its conversation begins a new
// one, and that the status says so.
func TestConversationNotFound(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.driver.resumes = true
		b.host.play = func(s *fakeSession) {
			s.say("conversation talk-%s m1", s.id)
			lost(s)
		}
		b.start()
		b.command("coder", "continuous")
		b.after(90 * time.Second)
		if got := b.resumedBy("coder-2"); got != "talk-coder-1" {
			t.Fatalf("resumed %q", got)
		}
		why, err := b.engine.Status.Why(t.Context(), "coder")
		if err != nil || !slices.ContainsFunc(why.Evidence, func(e view.Evidence) bool {
			return strings.Contains(e.What, "did not find conversation talk-coder-1, and began talk-coder-2") && !e.Holds
		}) {
			t.Errorf("why says %+v, %v", why.Evidence, err)
		}
		if !strings.Contains(b.logged.String(), "a conversation could not be gone on with") {
			t.Error("the log does not say it")
		}
	})
}

// R1, R2: a rate limit ends a session without a failure. The desired state stays, the agent starts
// no session before the reset, and every view shows the limit.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) {
			if s.id == "coder-1" {
				s.say("limited 600 five hour limit reached")
				s.say("stop rate_limited")
				return
			}
			if s.id == "coder-2" {
				s.say("limited 0 slow down")
				s.say("stop rate_limited")
				return
			}
			<-s.asked
		}
		b.start()
		b.command("coder", "continuous")
		b.command("pm", "run_once")
		b.after(time.Second)
		v := b.view("coder")
		if v.LimitedUntil == nil || v.Failures != 0 || v.DesiredState != control.WordContinuous ||
			!strings.Contains(v.LimitedWhy, "five hour limit") {
			t.Errorf("it is %+v", v)
		}
		if why, err := b.engine.Status.Why(t.Context(), "coder"); err != nil || !strings.Contains(why.Verdict, "rate limited until") {
			t.Errorf("why says %s, %v", why.Verdict, err)
		}
		b.after(9 * time.Minute)
		if n := b.host.startsOf("coder"); n != 1 {
			t.Errorf("%d sessions were started before the time", n)
		}
		b.after(time.Minute)
		if n := b.host.startsOf("coder"); n != 2 {
			t.Errorf("%d sessions were started at the time", n)
		}
		b.after(110 * time.Second) // the second limit in a row, without a reset time: two minutes
		if n := b.host.startsOf("coder"); n != 2 {
			t.Errorf("%d sessions; the second wait must be twice as long", n)
		}
		b.after(15 * time.Second)
		if n := b.host.startsOf("coder"); n != 3 {
			t.Errorf("%d sessions", n)
		}
		if n := b.host.startsOf("pm"); n != 1 {
			t.Errorf("the other agent has %d sessions", n)
		}
	})
}

// TestInjectIsKept checks that a program that reads no input during an answer receives it
// afterwards.
func TestInjectIsKept(t *testing.T) {
	t.Parallel()
	for _, plods := range []bool{true, false} {
		t.Run(fmt.Sprintf("plods=%v", plods), func(t *testing.T) {
			inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
				b.inOneChannel("ada", "bob")
				b.driver.plods = plods
				var mu sync.Mutex
				var received []string
				b.host.play = func(s *fakeSession) {
					for text, _, ok := s.next(time.Hour); ok; text, _, ok = s.next(time.Hour) {
						mu.Lock()
						received = append(received, agentIn(s.id)+" "+text)
						mu.Unlock()
						s.say("I look")
						s.lasts(20 * time.Second)
						s.say("listening %d", s.read())
					}
					s.say("stop ok")
				}
				b.start()
				b.retrySay("please review", "")
				b.after(5 * time.Second)
				if _, err := b.engine.Channels.Say(t.Context(), human, "reviews", "mind the tests", "inject"); err != nil {
					t.Fatal(err)
				}
				b.after(5 * time.Second)
				s := b.host.session("ada-1")
				s.mu.Lock()
				waiting := strings.Contains(string(s.in), "mind the tests")
				s.mu.Unlock()
				if waiting == plods {
					t.Errorf("it was written during the answer: %v", waiting)
				}
				b.after(15 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				if !slices.ContainsFunc(received, func(text string) bool {
					return strings.HasPrefix(text, "ada") && strings.Contains(text, "mind the tests")
				}) {
					t.Errorf("it received %q", received)
				}
			})
		})
	}
}

// TestNotResumed checks a program that no longer knows the conversation and does nothing. This is
// not a failure: a new conversation begins at once, and the lost one is not tried again.
func TestNotResumed(t *testing.T) {
	t.Parallel()
	for _, word := range []string{control.WordContinuous, control.WordRunOnce} {
		t.Run(word, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.driver.resumes = true
				b.host.play = func(s *fakeSession) {
					switch s.id {
					case "coder-1":
						s.say("conversation talk-1 m1")
						s.say("limited 5 later")
						s.say("stop rate_limited")
					case "coder-2":
						s.say("stop not_resumed")
						s.exit(1)
					default:
						s.say("conversation talk-3 m1")
						s.lasts(time.Minute)
						s.say("stop ok")
					}
				}
				b.start()
				b.command("coder", word)
				b.after(20 * time.Second)
				for id, want := range map[string]string{"coder-2": "talk-1", "coder-3": ""} {
					if got := b.resumedBy(id); got != want {
						t.Errorf("%s resumed %q, want %q", id, got, want)
					}
				}
				if v := b.view("coder"); v.Failures != 0 || v.Conversation == nil || v.Conversation.ID != "talk-3" {
					t.Errorf("it is %+v, %+v", v, v.Conversation)
				}
				if why := b.replayed().Agents["coder"].Past[1].Why; !strings.Contains(why, "no longer knows the conversation talk-1") {
					t.Errorf("the second session ended with %s", why)
				}
			})
		})
	}
}

// TestNotResumedInATalk checks the same in a channel. The agent keeps its turn and receives it
// again in a new conversation. No crash is counted, and no other agent gets the turn before.
func TestNotResumedInATalk(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada", "bob")
		b.driver.resumes = true
		var mu sync.Mutex
		received := map[string]string{}
		b.host.play = func(s *fakeSession) {
			if s.id == "ada-2" {
				s.say("stop not_resumed")
				s.exit(1)
				return
			}
			s.say("conversation talk-%s m1", s.id)
			for text, _, ok := s.next(time.Hour); ok; text, _, ok = s.next(time.Hour) {
				mu.Lock()
				received[s.id] += text
				mu.Unlock()
				s.say("done TURN_COMPLETE")
				s.say("listening %d", s.read())
			}
			s.say("stop ok")
		}
		b.start()
		b.retrySay("hello", "")
		b.after(20 * time.Minute)
		b.retrySay("are you there", "")
		b.after(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if b.resumedBy("ada-2") != "talk-ada-1" || b.resumedBy("ada-3") != "" || !strings.Contains(received["ada-3"], "it is your turn") {
			t.Errorf("it received %q in %v", received, b.host.order)
		}
		if rows := b.rows("channel/reviews"); !strings.Contains(received["ada-3"], "are you there") || !strings.Contains(rows, "N6 N9 N6") {
			t.Errorf("it received %q, by %s", received["ada-3"], rows)
		}
		if view := b.view("ada"); view.Turn["reviews"] == "OFFLINE" || strings.Contains(b.rows("channel/reviews"), "T11") {
			t.Errorf("it is %v, by %s", view.Turn, b.rows("channel/reviews"))
		}
	})
}

// TestNotResumedWithoutAResume checks that a program that reports a failed resume without one has
// failed, and is not restarted endlessly without counting failures.
func TestNotResumedWithoutAResume(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.driver.resumes = true
		b.host.play = func(s *fakeSession) {
			s.say("stop not_resumed")
			s.exit(1)
		}
		b.start()
		b.command("coder", control.WordContinuous)
		b.after(time.Hour)
		if v := b.view("coder"); v.Failures == 0 || len(b.host.order) > 10 {
			t.Errorf("%d failures in %d sessions", v.Failures, len(b.host.order))
		}
	})
}

// TestUnusableConversations checks that a conversation that is too long, or open in another
// process, is resumed at most once, and that one that ends its program is replaced by a new one,
// also in a channel.
func TestUnusableConversations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		life func(s *fakeSession)
		want []string
	}{
		"too long": {func(s *fakeSession) { s.say("stop context_exhausted") }, []string{"", "", ""}},
		"held":     {func(s *fakeSession) { s.lasts(time.Second); s.say("stop process_conflict") }, []string{"", "", ""}},
		"it kills": {func(s *fakeSession) { s.exit(139) }, []string{"", "talk-coder-1", "", "talk-coder-3"}},
		"lost, and too long": {func(s *fakeSession) {
			if s.resume == "" {
				lost(s)
				return
			}
			s.say("stop context_exhausted")
		}, []string{"", "talk-coder-1", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.conversing(config.ResumeInterrupted, tt.life)
				b.start()
				b.command("coder", control.WordContinuous)
				b.after(10 * time.Minute)
				for i, want := range tt.want {
					if got := b.resumedBy(fmt.Sprintf("coder-%d", i+1)); got != want {
						t.Errorf("session %d resumed %q, want %q", i+1, got, want)
					}
				}
			})
		})
	}
}
