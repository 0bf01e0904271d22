package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/tools"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
)

// toolCaller makes tool calls for the sessions of a bubble, on the running engine.
type toolCaller struct{ engine atomic.Pointer[App] }

func (h *toolCaller) of(s *fakeSession) (*App, tools.AgentCaller) {
	return h.engine.Load(), callerOf(agentIn(s.id), s.id)
}

// tokenIn returns the token of a session in a bubble.
func tokenIn(_, session string) driver.MCP { return driver.MCP{Token: "the token of " + session} }

// callerOf returns an agent with the token of its session.
func callerOf(agent, session string) tools.AgentCaller {
	return tools.AgentCaller{Agent: agent, Session: session, TokenHash: sessions.HashOfToken(tokenIn(agent, session).Token)}
}

// acting starts an engine whose agents can make tool calls.
func (b *bubble) acting(h *toolCaller) {
	b.t.Helper()
	for i := range b.conf.Agents {
		b.conf.Agents[i].MCP = true
	}
	b.start()
	h.engine.Store(b.engine)
}

// calls reports a call of one of Fairlead's tools in the output, as programs do before they make
// it.
func (s *fakeSession) calls(tool string) { s.say("calls mcp__fairlead__%s {}", tool) }

// said returns the messages of a channel: kind, author and text.
func (b *bubble) said(channel string) (lines []string) {
	b.t.Helper()
	page, err := b.engine.Channels.ChannelEntries(b.t.Context(), channel, view.EntryQuery{Limit: 500})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range page.Entries {
		lines = append(lines, one.Kind+" "+one.By+": "+one.Text)
	}
	return lines
}

func (b *bubble) wantSaid(channel string, want ...string) {
	b.t.Helper()
	if got := b.said(channel); !slices.Equal(got, want) {
		b.t.Errorf("#%s holds\n%s\nwant\n%s", channel, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// must records an error of a session.
func (b *bubble) must(err error, what string) {
	if err != nil {
		b.t.Errorf("%s: %v", what, err)
	}
}

func reason(err error) string {
	var no *table.Refusal
	if errors.As(err, &no) {
		return no.Row + ": " + no.Reason
	}
	return fmt.Sprint(err)
}

// SPEC T7, T22, N3: a turn that ends by a call includes all text of its answer, also text after the
// call. A pass posts nothing. Text without the turn is late and marked as such.
func TestTurnEndsByCall(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		h := &toolCaller{}
		b.inOneChannel("ada", "bob")
		b.host.play = func(s *fakeSession) {
			for n := 1; ; n++ {
				if _, _, ok := s.next(time.Hour); !ok {
					s.say("stop ok")
					return
				}
				e, c := h.of(s)
				if c.Agent == "bob" {
					s.calls("pass")
					_, err := e.Tools.ActPass(t.Context(), c, "")
					b.must(err, "pass")
					s.say("listening %d", s.read())
					continue
				}
				s.say("ada looks %d", n)
				s.calls("turn_complete")
				ended, err := e.Tools.ActTurnComplete(t.Context(), c, "", "")
				b.must(err, "turn_complete")
				if ended.Channel != "reviews" || ended.Turn == 0 || ended.Over {
					t.Errorf("the turn ended as %+v", ended)
				}
				s.say("ada is done")
				s.say("listening %d", s.read())
				s.lasts(time.Second)
				_, err = e.Tools.ActTurnComplete(t.Context(), c, "", "too late")
				if !strings.HasPrefix(reason(err), "N3") {
					t.Errorf("a second time: %v", err)
				}
			}
		}
		b.acting(h)
		_, err := b.engine.Channels.Say(t.Context(), human, "reviews", "please", "")
		b.must(err, "say")
		b.after(time.Minute)
		b.wantSaid("reviews", "human tester: please", "turn ada: ada looks 1\nada is done", "late ada: too late",
			"warning : TURN_COMPLETE without the turn: turn 1 has ended or belonged to another agent")
	})
}

// TestActsOfOthersAreRefused checks that a call that the caller is not allowed to make is refused
// with the reason, regardless of the name that the caller gives.
func TestActsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		h := &toolCaller{}
		b.inOneChannel("ada")
		b.host.play = func(s *fakeSession) {
			<-s.asked
			s.say("stop ok")
		}
		b.acting(h)
		ctx, e := t.Context(), b.engine
		for _, c := range []tools.AgentCaller{
			{},
			{Agent: "ada"},
			callerOf("ada", "ada-1"), callerOf("unknown", "unknown-1"),
			callerOf("build@r1", "build@r1-1"),
		} {
			var over *tools.SessionOver
			if err := e.Tools.ActOpen(ctx, c); !errors.As(err, &over) {
				t.Errorf("%+v: %v", c, err)
			}
			if _, err := e.Tools.ActTurnComplete(ctx, c, "", ""); !errors.As(err, &over) {
				t.Errorf("%+v: %v", c, err)
			}
			if err := e.Tools.ActSetStatus(ctx, c, "at work"); !errors.As(err, &over) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		b.command("ada", "run_once")
		b.command("bob", "run_once")
		b.settle()
		ada := callerOf("ada", "ada-1")
		b.must(e.Tools.ActOpen(ctx, ada), "an open session")
		var over *tools.SessionOver
		if err := e.Tools.ActOpen(ctx, callerOf("bob", "ada-1")); !errors.As(err, &over) {
			t.Errorf("bob in ada's session: %v", err)
		}
		forged := ada // an open session with another token
		for _, hash := range []string{"", sessions.HashOfToken("guessed"), sessions.HashOfToken(tokenIn("bob", "bob-1").Token)} {
			forged.TokenHash = hash
			if err := e.Tools.ActOpen(ctx, forged); !errors.As(err, &over) {
				t.Errorf("a forged token is valid: %v", err)
			}
			if err := e.Tools.ActSetStatus(ctx, forged, "not me"); !errors.As(err, &over) {
				t.Errorf("a forged token acts: %v", err)
			}
		}
		for what, err := range map[string]error{
			"turn_complete": second(e.Tools.ActTurnComplete(ctx, ada, "", "")),
			"pass":          second(e.Tools.ActPass(ctx, ada, "reviews")),
			"say":           second(e.Tools.ActSay(ctx, ada, "", "hello")),
			"wait":          second(e.Tools.ActWait(ctx, ada, "", "", time.Second)),
			"report_step":   second(e.Tools.ActReportStep(ctx, ada, runs.AgentReport{Status: "COMPLETED"})),
		} {
			var no *table.Refusal
			if !errors.As(err, &no) || no.Reason == "" {
				t.Errorf("%s: %v", what, err)
			}
		}
		var unknown *team.Unknown
		if _, err := e.Tools.ActSay(ctx, ada, "elsewhere", "hello"); !errors.As(err, &unknown) {
			t.Errorf("an unknown channel: %v", err)
		}
		if _, err := e.Tools.ActSay(ctx, ada, "reviews", "without the turn"); err == nil {
			t.Error("a message without the turn was posted")
		}
		if _, err := e.Tools.ActSay(ctx, callerOf("bob", "bob-1"), "reviews", "a stranger"); err == nil {
			t.Error("an agent outside of the channel posted a message")
		}
		b.wantSaid("reviews", "late ada: without the turn")
	})
}

func second[T any](_ T, err error) error { return err }

// SPEC T10, T12, T13, T15: a turn that waits by a tool call continues when a person writes or
// continues it, or when its agent speaks. It is forfeited when its time is up.
func TestWaitByCall(t *testing.T) {
	t.Parallel()
	type end struct {
		waited tools.ActWaited
		err    error
	}
	tests := map[string]struct {
		do    func(b *bubble)
		state string
		why   string
		said  []string
	}{
		"a person writes": {
			func(b *bubble) {
				_, err := b.engine.Channels.Say(b.t.Context(), human, "reviews", "the tests are green", "")
				b.must(err, "say")
			}, tools.ActResumed, "a person wrote something into the channel",
			[]string{"human tester: please", "turn ada: I need ann.", "human tester: the tests are green", "turn ada: going on"},
		},
		"a person has it go on": {
			func(b *bubble) {
				_, err := b.engine.Channels.Override(b.t.Context(), human, "reviews", true)
				b.must(err, "override")
			}, tools.ActResumed, "a person had it go on",
			[]string{"human tester: please", "turn ada: I need ann.", "turn ada: going on"},
		},
		"nobody": {
			func(b *bubble) { b.after(time.Minute) }, tools.ActStillWaiting, "",
			[]string{"human tester: please", "turn ada: I need ann.", "turn ada: going on"},
		},
		"a person ends it": {
			func(b *bubble) {
				_, err := b.engine.Channels.Skip(b.t.Context(), human, "reviews", 0)
				b.must(err, "skip")
			}, tools.ActForfeited, "the turn is over",
			[]string{
				"human tester: please", "turn ada: I need ann.",
				"notice : No agent answered message 1 of tester; #reviews waits for a human", "late ada: going on",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "ada", func(t *testing.T, b *bubble) {
				h, ended := &toolCaller{}, make(chan end, 1)
				b.inOneChannel("ada")
				prompts := 0
				b.host.play = func(s *fakeSession) {
					for {
						_, cancel, ok := s.next(time.Hour)
						if !ok {
							s.say("stop ok")
							return
						}
						if prompts++; cancel || prompts > 1 {
							s.say("listening %d", s.read())
							continue
						}
						e, c := h.of(s)
						s.say("I need ann.")
						s.calls("wait")
						waited, err := e.Tools.ActWait(t.Context(), c, "", "for ann", 30*time.Second)
						ended <- end{waited, err}
						s.say("going on")
						s.calls("turn_complete")
						_, _ = e.Tools.ActTurnComplete(t.Context(), c, "", "") // late if the turn has ended
						s.say("listening %d", s.read())
					}
				}
				b.acting(h)
				_, err := b.engine.Channels.Say(t.Context(), human, "reviews", "please", "")
				b.must(err, "say")
				b.after(5 * time.Second)
				view, err := b.engine.Channels.Channel(t.Context(), "reviews")
				if err != nil || view.State != "WAITING" || view.Why != "for ann" {
					t.Errorf("during the wait the channel is %s (%s), %v", view.State, view.Why, err)
				}
				tt.do(b)
				b.after(30 * time.Second)
				got := <-ended
				if got.err != nil || got.waited.State != tt.state || got.waited.Why != tt.why {
					t.Errorf("the turn ended as %+v, %v", got.waited, got.err)
				}
				if m := got.waited.Message; (m != nil) != (name == "a person writes") || m != nil && m.Text != "the tests are green" {
					t.Errorf("the wait returned %+v", m)
				}
				said := slices.DeleteFunc(b.said("reviews"), func(line string) bool { return strings.HasPrefix(line, "warning") })
				if !slices.Equal(said, tt.said) {
					t.Errorf("the channel holds\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(tt.said, "\n"))
				}
				if state := b.channelHolder("reviews"); state != "" {
					t.Errorf("%s still has the turn", state)
				}
			})
		})
	}
}

func (b *bubble) channelHolder(name string) string {
	b.t.Helper()
	view, err := b.engine.Channels.Channel(b.t.Context(), name)
	b.must(err, "channel")
	return view.Holder
}

// TestAskHuman checks a question to a person. It is in the inbox, the turn waits, and a repeated
// question is the same one. Its answer reaches the agent, also after a restart of the daemon.
func TestAskHuman(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		h, ended := &toolCaller{}, make(chan tools.ActAnswer, 8)
		b.inOneChannel("ada")
		b.agent("ada").Permissions.Timeout = time.Hour
		go1 := make(chan struct{})
		b.host.play = func(s *fakeSession) {
			if _, _, ok := s.next(time.Hour); !ok {
				return
			}
			ask := tools.AgentQuestion{Text: "Ship it?", Options: []string{"no", "yes"}}
			e, c := h.of(s)
			s.calls("ask_human")
			answer, err := e.Tools.ActAskHuman(t.Context(), c, ask, 10*time.Second)
			b.must(err, "ask")
			ended <- answer
			<-go1 // the daemon restarts meanwhile
			e, c = h.of(s)
			same, err := e.Tools.ActAskHuman(t.Context(), c, ask, time.Second)
			b.must(err, "ask in the same words")
			ended <- same
			answer, err = e.Tools.ActAskHuman(t.Context(), c, tools.AgentQuestion{ID: answer.ID}, 4*time.Minute)
			b.must(err, "ask by id")
			ended <- answer
			s.calls("turn_complete")
			_, err = e.Tools.ActTurnComplete(t.Context(), c, "", "shipped")
			b.must(err, "turn_complete")
			s.say("listening %d", s.read())
			<-s.asked
			s.say("stop ok")
		}
		b.acting(h)
		_, err := b.engine.Channels.Say(t.Context(), human, "reviews", "please", "")
		b.must(err, "say")
		b.after(15 * time.Second)
		first := <-ended
		if first.State != tools.ActStillWaiting || first.ID == "" {
			t.Fatalf("at first: %+v", first)
		}
		q := b.open1(question.Asked)
		if q.What != "Ship it?" || q.Agent != "ada" || len(q.Options) != 2 || q.ExpiresAt == nil {
			t.Errorf("the inbox has %+v", q)
		}
		if view, err := b.engine.Channels.Channel(t.Context(), "reviews"); err != nil || view.State != "WAITING" {
			t.Errorf("meanwhile the channel is %s, %v", view.State, err)
		}
		b.must(b.stop(), "stop")
		b.acting(h)
		close(go1)
		b.after(5 * time.Second)
		if same := <-ended; same.ID != first.ID || same.State != tools.ActStillWaiting {
			t.Errorf("in the same words: %+v", same)
		}
		b.open1(question.Asked)
		b.answer(first.ID, view.QuestionAnswer{Option: "2", Text: "with care"})
		b.after(5 * time.Second)
		if last := <-ended; last.State != tools.ActAnswered || last.Option != "2" || last.Text != "with care" || last.By != "tester" ||
			last.Lost {
			t.Errorf("the answer: %+v", last)
		}
		b.noneOpen()
		b.after(time.Minute)
		b.wantSaid("reviews", "human tester: please", "turn ada: shipped")
		if view, err := b.engine.Questions.QuestionByID(t.Context(), first.ID); err != nil || view.State != string(question.Delivered) {
			t.Errorf("in the end it is %s, %v", view.State, err)
		}
	})
}

// TestAskHumanOfOthers checks that an agent cannot read the answers to another agent's questions,
// and that a removed agent gets no answer.
func TestAskHumanOfOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		h := &toolCaller{}
		b.host.play = func(s *fakeSession) { <-s.asked; s.say("stop ok") }
		b.agent("ada").Permissions.Timeout = time.Minute
		b.acting(h)
		b.command("ada", "run_once")
		b.command("bob", "run_once")
		b.settle()
		ctx, e := t.Context(), b.engine
		ada, bob := callerOf("ada", "ada-1"), callerOf("bob", "bob-1")
		asked, err := e.Tools.ActAskHuman(ctx, ada, tools.AgentQuestion{Text: "Which one?"}, time.Second)
		b.must(err, "ask")
		if _, err := e.Tools.ActAskHuman(ctx, bob, tools.AgentQuestion{ID: asked.ID}, time.Second); err == nil {
			t.Error("bob reads ada's answer")
		}
		if _, err := e.Tools.ActAskHuman(ctx, ada, tools.AgentQuestion{ID: "q99"}, time.Second); err == nil {
			t.Error("an unknown question was answered")
		}
		late, err := e.Tools.ActAskHuman(ctx, ada, tools.AgentQuestion{ID: asked.ID}, 2*time.Minute)
		if err != nil || late.State != tools.ActUnanswered {
			t.Errorf("without an answer the question is %+v, %v", late, err)
		}
		again, err := e.Tools.ActAskHuman(ctx, ada, tools.AgentQuestion{Text: "Which one?"}, time.Second)
		if err != nil || again.ID == asked.ID {
			t.Errorf("asked again it is %+v, %v", again, err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := e.Tools.ActAskHuman(gone, ada, tools.AgentQuestion{ID: again.ID}, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("a removed agent: %v", err)
		}
	})
}

// TestStatusAndWhoIsHere checks that an agent's status is shown, and that an agent can list the
// others.
func TestStatusAndWhoIsHere(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		h, here := &toolCaller{}, make(chan tools.ActHere, 1)
		b.inOneChannel("ada", "bob")
		b.host.play = func(s *fakeSession) {
			if _, _, ok := s.next(time.Hour); !ok {
				return
			}
			e, c := h.of(s)
			b.must(e.Tools.ActSetStatus(t.Context(), c, "  running the tests\nand more"), "set_status")
			is, err := e.Tools.ActWhoIsHere(t.Context(), c, "")
			b.must(err, "who_is_here")
			here <- is
			<-s.asked
		}
		b.acting(h)
		_, err := b.engine.Channels.Say(t.Context(), human, "reviews", "please", "")
		b.must(err, "say")
		b.after(time.Second)
		is := <-here
		if is.You.Agent != "ada" || is.You.Channel != "reviews" || is.You.Turn != 1 || is.You.For != team.ForChannels.String() ||
			len(is.Agents) != 2 {
			t.Errorf("the agent sees %+v", is)
		}
		if c := is.Channels; len(c) != 1 || c[0].Holder != "ada" || c[0].States["bob"] != string(channel.Queued) ||
			!slices.Equal(c[0].Queue, []string{"bob"}) {
			t.Errorf("its channels are %+v", c)
		}
		if view := b.view("ada"); view.Says == nil || view.Says.Text != "running the tests" {
			t.Errorf("the view shows %+v", view.Says)
		}
	})
}
