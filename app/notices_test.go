package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/notices"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// sentNotices records what the targets of a test were sent.
type sentNotices struct {
	mu           sync.Mutex
	compareSteps []notice.Notice
	by           []string // TARGET EVENT CAUSE+MORE
	answer       func(ctx context.Context, target string) *notice.Failure
}

func (l *sentNotices) all() []notice.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.compareSteps)
}

func (l *sentNotices) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.by)
}

// notifies configures targets. Their deliveries succeed, unless the test says otherwise.
func (b *bubble) notifies(targets ...notice.Target) *sentNotices {
	l := &sentNotices{}
	b.tellers = &outside.Notices{
		Targets: targets, Kinds: map[string]string{},
		Send: func(ctx context.Context, target string, listed []notice.Notice, more int) *notice.Failure {
			l.mu.Lock()
			answer := l.answer
			l.mu.Unlock()
			if answer != nil {
				if failed := answer(ctx, target); failed != nil {
					return failed
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.compareSteps = append(l.compareSteps, listed...)
			for _, m := range listed {
				l.by = append(l.by, strings.TrimSpace(fmt.Sprint(target, " ", m.Event, " ", m.Cause)))
			}
			return nil
		},
	}
	for _, t := range targets {
		b.tellers.Kinds[t.Name] = "test"
	}
	return l
}

func (b *bubble) wantNotices(l *sentNotices, want ...string) {
	b.t.Helper()
	if got := l.lines(); !slices.Equal(got, want) {
		b.t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func phone() notice.Target {
	return notice.Target{Name: "phone", Events: notice.Events(), PerHour: 100}
}

// TestNoticesOverRestarts checks that a question and its reminder are sent once, by the daemon that
// runs at the time, and not after it was answered.
func TestNoticesOverRestarts(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		r, mail := &replies{}, b.notifies(phone())
		b.host.play = r.asksFor(makeCall)
		b.agent("coder").Permissions = config.Permissions{Timeout: 24 * time.Hour}
		b.start()
		b.command("coder", "run_once")
		b.after(time.Second)
		b.wantNotices(mail, "phone needs_you question/q1")
		for range 3 { // the daemon is killed, and the next one finds the question open
			if err := b.stop(); err != nil {
				t.Error(err)
			}
			b.start()
			b.after(time.Minute)
		}
		b.wantNotices(mail, "phone needs_you question/q1")
		b.after(15 * time.Minute)
		b.wantNotices(mail, "phone needs_you question/q1", "phone still_needs_you question/q1")
		if rows := b.rows("notice/phone"); rows != "G1 G1" {
			t.Errorf("the journal has %s", rows)
		}
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{Allow: true})
		b.after(time.Hour)
		if got := len(mail.lines()); got != 2 {
			t.Errorf("%d notices after the answer: %q", got, mail.lines())
		}
	})
}

// TestNoticesOfAFailingTarget checks the notice for an agent that gives up. A target that hangs or
// fails delays neither the team nor another target. It is logged and journaled once, and the notice
// is sent later.
func TestNoticesOfAFailingTarget(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		stuck, well := notice.Target{Name: "stuck", Events: notice.Usual(), PerHour: 100},
			notice.Target{Name: "well", Events: notice.Usual(), PerHour: 100}
		mail := b.notifies(stuck, well)
		tries := 0
		mail.answer = func(_ context.Context, target string) *notice.Failure {
			if target == "well" {
				return nil
			}
			tries++
			return &notice.Failure{Cause: "connection refused", WayOut: "look", Again: true}
		}
		b.agent("coder").FailuresMax = 2
		b.host.play = func(s *fakeSession) { s.exit(1) }
		b.start()
		b.command("coder", "continuous")
		b.after(10 * time.Minute)
		b.wantNotices(mail, "well gave_up agent/coder")
		if m := mail.all()[0]; m.Page != "#/agents/coder/evidence" || m.Agent != "coder" {
			t.Errorf("%+v", m)
		}
		if tries < 4 || tries > 7 { // at 0, 1, 5, 21, 85, 341 s
			t.Errorf("%d tries in ten minutes", tries)
		}
		if rows := b.rows("notice/stuck"); rows != "G2" {
			t.Errorf("the journal has %s", rows)
		}
		if n := strings.Count(b.logged.String(), "could not be delivered"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		targets, err := b.engine.Notices.NoticeTargets(t.Context())
		if err != nil || len(targets) != 2 || targets[0].State != "failing" || targets[0].Cause != "connection refused" ||
			targets[0].Waiting != 1 || targets[1].State != "reached" || targets[1].LastHour != 1 {
			t.Errorf("%+v, %v", targets, err)
		}
		mail.mu.Lock()
		mail.answer = nil
		mail.mu.Unlock()
		b.after(20 * time.Minute)
		b.wantNotices(mail, "well gave_up agent/coder", "stuck gave_up agent/coder")
		if rows := b.rows("notice/stuck"); rows != "G2 G3" {
			t.Errorf("the journal has %s", rows)
		}
	})
}

// TestNoticesHang checks that a target that hangs delays neither orders nor the stop of the daemon.
func TestNoticesHang(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder critic", func(t *testing.T, b *bubble) {
		mail := b.notifies(phone())
		mail.answer = func(ctx context.Context, _ string) *notice.Failure {
			<-ctx.Done()
			return &notice.Failure{Cause: "it did not answer", Again: true}
		}
		r := &replies{}
		b.host.play = r.asksFor(makeCall)
		b.agent("coder").Permissions, b.agent("critic").Permissions = config.Permissions{Timeout: time.Hour},
			config.Permissions{Timeout: time.Hour}
		b.start()
		b.command("coder", "run_once")
		b.after(time.Minute)
		b.command("critic", "run_once")
		b.settle()
		if n := len(b.asked()); n != 2 {
			t.Errorf("%d questions", n)
		}
		flushing, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		b.engine.Notices.FlushNotices(flushing)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the daemon waited %v for a target that hangs", took)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

func (b *bubble) asked() []view.QuestionView {
	b.t.Helper()
	open, err := b.engine.Questions.Questions(b.t.Context())
	if err != nil {
		b.t.Error(err)
	}
	return open
}

// TestNoticesOfLimits checks that a daily limit is sent once, also while more is used, and that
// only a long rate limit is sent.
func TestNoticesOfLimits(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		mail := b.notifies(phone())
		b.agent("coder").Limits.TokensPerDay = 100
		b.host.play = func(s *fakeSession) {
			for range 5 {
				s.say("usage 60 0 0.5")
				s.lasts(time.Minute)
			}
			s.exit(0)
		}
		b.start()
		b.command("coder", "continuous")
		b.after(2 * time.Hour)
		if got := mail.lines(); !slices.Equal(got, []string{"phone limit_reached limit/agent/coder"}) ||
			!strings.Contains(mail.all()[0].Why, "tokens_per_day 100") {
			t.Errorf("sent %q, %+v", got, mail.all())
		}
	})
	for _, c := range []struct {
		wait time.Duration
		want []string
	}{{2 * time.Minute, nil}, {time.Hour, []string{"limit_reached provider/coder"}}} {
		at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
		is := team.New(nil)
		is.Agents["coder"] = &team.Agent{Name: "coder", Limited: &team.Limited{Since: at, Until: at.Add(c.wait)}}
		var got []string
		for _, m := range notices.Due(is, at.Add(time.Second)) {
			got = append(got, string(m.Event)+" "+m.Cause)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q", c.wait, got)
		}
	}
}

// TestFlushNotices checks that due notices are sent before the daemon stops.
func TestFlushNotices(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		mail, r := b.notifies(phone()), &replies{}
		mail.answer = func(context.Context, string) *notice.Failure { wait.Elapse(time.Second); return nil }
		b.host.play = r.asksFor(makeCall)
		b.agent("coder").Permissions = config.Permissions{Timeout: time.Hour}
		b.start()
		b.command("coder", "run_once")
		b.engine.Notices.FlushNotices(t.Context())
		b.settle()
		b.engine.Notices.FlushNotices(t.Context())
		b.wantNotices(mail, "phone needs_you question/q1")
	})
}

// TestTestNotice checks that a person can test a target and an agent cannot, and that the result is
// printed and journaled.
func TestTestNotice(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		var refused *table.Refusal
		if _, err := b.engine.Notices.TestNotice(t.Context(), human, ""); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "notify.targets") {
			t.Errorf("without targets: %v", err)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		mail := b.notifies(phone(),
			notice.Target{Name: "night", Quiet: notice.Quiet{From: 0, To: 24*time.Hour - time.Minute, Zone: time.UTC}})
		b.start()
		if done, err := b.engine.Notices.TestNotice(t.Context(), human, "phone"); err != nil || len(done) != 1 || !done[0].Delivered ||
			done[0].Kind != "test" {
			t.Errorf("%+v, %v", done, err)
		}
		var unknown *team.Unknown
		if _, err := b.engine.Notices.TestNotice(t.Context(), human, "x"); !errors.As(err, &unknown) || len(unknown.Known) != 2 {
			t.Errorf("an unknown one: %v", err)
		}
		if _, err := b.engine.Notices.TestNotice(t.Context(), change.Actor{Kind: "agent", ID: "coder"}, ""); !errors.As(err, &refused) ||
			refused.Row != "X10" {
			t.Errorf("an agent: %v", err)
		}
		mail.mu.Lock()
		mail.answer = func(context.Context, string) *notice.Failure {
			return &notice.Failure{Cause: "it answers 404", WayOut: "correct it"}
		}
		mail.mu.Unlock()
		if done, err := b.engine.Notices.TestNotice(t.Context(), human, ""); err != nil || len(done) != 2 || done[0].Delivered ||
			done[1].Cause != "it answers 404" {
			t.Errorf("%+v, %v", done, err)
		}
		if rows := b.rows("notice/phone"); rows != "G1 G2" {
			t.Errorf("the journal has %s", rows)
		}
	})
}
