package app

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestIntentIsCheckedLast checks that a change of the desired state at any moment between the
// decision to start and the start of the process withdraws the session.
func TestIntentIsCheckedLast(t *testing.T) {
	t.Parallel()
	moments := map[string]func(b *bubble, at func()){
		"while it is made ready":    func(b *bubble, at func()) { b.driver.check.set(func(string) error { at(); return nil }) },
		"just before the last look": func(b *bubble, at func()) { b.files.reading.set(func(string) error { at(); return nil }) },
	}
	said := map[string]struct {
		say              func(t *testing.T, b *bubble)
		desired, current string
	}{
		"pause by API": {func(t *testing.T, b *bubble) { b.command("coder", "pause") }, "pause", "pause"},
		"pause by file": {func(t *testing.T, b *bubble) {
			b.disk.writeDesired("coder", "pause", "no", time.Now().Add(time.Second))
		}, "pause", "pause"},
		"hold": {func(t *testing.T, b *bubble) {
			if _, err := b.engine.Agents.Hold(t.Context(), human, true, "lunch"); err != nil {
				t.Error(err)
			}
		}, "run_once", "pause"},
		"stop": {func(t *testing.T, b *bubble) {
			if err := b.engine.Agents.Stop(t.Context(), human, false); err != nil {
				t.Error(err)
			}
		}, "run_once", "pause"},
		"nonsense in the file": {func(t *testing.T, b *bubble) { b.disk.put("coder", []byte("{")) }, "pause", "pause"},
		"the file deleted":     {func(t *testing.T, b *bubble) { b.disk.put("coder", nil) }, "pause", "pause"},
	}
	for when, arrange := range moments {
		for what, s := range said {
			t.Run(what+" "+when, func(t *testing.T) {
				inBubble(t, "coder", func(t *testing.T, b *bubble) {
					b.start()
					once := false
					arrange(b, func() {
						if !once {
							once = true
							s.say(t, b)
						}
					})
					b.command("coder", "run_once")
					b.after(time.Minute)
					if n := b.host.startsOf("coder"); n != 0 {
						t.Errorf("started %d times", n)
					}
					b.is("coder", s.desired, s.current)
					if rows := b.rows("session/coder"); rows != "J1 S6" {
						t.Errorf("rows of the session: %s", rows)
					}
					b.files.reading.set(nil)
					b.driver.check.set(nil)
					if what == "hold" {
						if _, err := b.engine.Agents.Hold(t.Context(), human, false, ""); err != nil {
							t.Fatal(err)
						}
						b.settle()
						if n := b.host.startsOf("coder"); n != 1 {
							t.Errorf("%d starts after the release", n)
						}
					}
				})
			})
		}
	}
}

// TestIntentWaitsForTheLoop checks that a start waits for a pause that is in the file, regardless
// of a delay of the loop.
func TestIntentWaitsForTheLoop(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		var release func()
		b.driver.check.set(func(string) error {
			b.disk.writeDesired("coder", "pause", "wait", time.Now().Add(time.Second))
			_, release = b.faults.Hold() // the pause reaches the loop, whose append is blocked
			return nil
		})
		b.command("coder", "continuous")
		b.after(time.Hour)
		if n := b.host.startsOf("coder"); n != 0 {
			t.Fatalf("%d starts although the file says pause", n)
		}
		b.driver.check.set(nil)
		release()
		b.settle()
		if n := b.host.startsOf("coder"); n != 0 {
			t.Errorf("%d starts afterwards", n)
		}
		b.is("coder", "pause", "pause")
	})
}

// TestIntentThatIsNotDelivered checks that a pause in the file counts at a start although its observation has not reached the loop.
func TestIntentThatIsNotDelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		delivered := make(chan struct{})
		b.driver.check.set(func(string) error {
			b.files.handing.set(func(string) error { <-delivered; return nil })
			b.disk.writeDesired("coder", "pause", "not yet", time.Now().Add(time.Second))
			return nil
		})
		b.command("coder", "continuous")
		b.after(time.Minute)
		if rows := b.rows("session/coder"); rows != "J1 S6" {
			t.Errorf("rows of the session: %s", rows)
		}
		b.is("coder", "pause", "pause")
		changes := b.rows("agent/coder")
		b.driver.check.set(nil)
		close(delivered)
		b.settle()
		if again := b.rows("agent/coder"); again != changes || b.host.startsOf("coder") != 0 {
			t.Errorf("the observation counted twice: %s, then %s", changes, again)
		}
	})
}

// SPEC X8: a hold in the batch that permits a start, and after it, is seen before the process starts.
func TestHoldInTheBatchOfAStart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		b.start()
		b.driver.check.set(func(string) error {
			_, release := b.faults.Hold()
			b.engine.Loop.Go(func(ctx context.Context) { _, _ = b.engine.Agents.Command(ctx, human, "pm", "pause", "busy") })
			b.engine.Loop.Go(func(ctx context.Context) {
				wait.Elapse(time.Second) // the loop waits for the journal, and the request for permission for the loop
				b.engine.Loop.Go(func(ctx context.Context) { _, _ = b.engine.Loop.Submit(ctx, human, "", team.HoldAsked{Note: "stop"}) })
				wait.Elapse(time.Second)
				release()
			})
			wait.Elapse(time.Millisecond)
			return nil
		})
		b.command("coder", "continuous")
		b.after(time.Minute)
		if n := b.host.startsOf("coder"); n != 0 {
			t.Errorf("%d starts during the hold; rows of the session: %s", n, b.rows("session/coder"))
		}
	})
}

// SPEC C11: a running process is not interrupted.
func TestPauseAfterTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.host.play = func(s *fakeSession) { s.lasts(time.Minute) }
		b.host.starts.set(func(string) error {
			b.disk.writeDesired("coder", "pause", "too late", time.Now().Add(time.Second))
			return nil
		})
		b.command("coder", "continuous")
		b.settle()
		b.is("coder", "pause", "continuous")
		b.after(2 * time.Minute)
		b.is("coder", "pause", "pause")
		if n := b.host.startsOf("coder"); n != 1 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestPauseWhileDownBeforeTheStart checks that a session that was opened before a restart and never
// started is checked once more before it starts.
func TestPauseWhileDownBeforeTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.driver.check.set(func(string) error { // the session is opened, and the daemon stops before the start
			b.cancel()
			wait.Elapse(time.Second)
			return nil
		})
		b.command("coder", "continuous")
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.driver.check.set(nil)
		if s := b.replayed().Agents["coder"].Session; s == nil || s.Phase != session.Open {
			t.Fatalf("the session is %+v", s)
		}
		b.disk.writeDesired("coder", "pause", "while you slept", time.Now().Add(time.Second))
		b.start()
		b.is("coder", "pause", "pause")
		if n := b.host.startsOf("coder"); n != 0 {
			t.Errorf("%d starts", n)
		}
		if note := b.view("coder").Note; note != "while you slept" {
			t.Errorf("note %q", note)
		}
	})
}

// TestShimThatDoesNotAnswer checks that a shim that does not answer is asked again. Its agent is
// neither started twice nor recorded as dead, and a request to end it is delivered as soon as
// possible.
func TestShimThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		b.start()
		b.command("coder", "continuous")
		b.command("pm", "continuous")
		b.settle()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.host.adopts.set(func(id string) error {
			if id == "coder-1" {
				return errDead
			}
			return nil
		})
		b.start()
		if a := b.view("pm"); a.Session.Phase != "running" || a.Doubt != "" {
			t.Errorf("pm was delayed: %+v", a.Session)
		}
		if a := b.view("coder"); a.Session == nil || !strings.Contains(a.Doubt, "answer") {
			t.Errorf("coder: %+v, doubt %q", a.Session, a.Doubt)
		}
		if err := b.engine.Agents.Stop(t.Context(), human, true); err != nil {
			t.Fatal(err)
		}
		b.after(time.Hour)
		if got := b.host.running(); len(got) != 1 || got[0] != "coder-1" {
			t.Errorf("running: %v", got)
		}
		b.host.adopts.set(nil)
		b.after(time.Minute)
		if got := b.host.running(); len(got) != 0 {
			t.Errorf("running: %v", got)
		}
		select {
		case <-b.engine.Loop.Stopped():
		default:
			t.Error("the stop is not complete")
		}
		b.is("coder", "continuous", "pause")
		if n := len(b.host.order); n != 2 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestStartThatFailsHalfway checks that a start that failed with an unknown result is followed
// until the result is known.
func TestStartThatFailsHalfway(t *testing.T) {
	t.Parallel()
	for _, began := range []bool{true, false} {
		inBubble(t, "coder", func(t *testing.T, b *bubble) {
			b.start()
			var deaf atomic.Bool
			deaf.Store(true)
			b.host.adopts.set(func(string) error {
				if deaf.Load() {
					return errDead
				}
				return nil
			})
			b.host.starts.set(func(id string) error {
				b.host.starts.set(nil)
				if began {
					if _, err := (hostHandle{b.host, b.crashPoint}).Start(t.Context(), id, 1, fakeLaunch, 0); err != nil {
						t.Error(err)
					}
				}
				return errDead
			})
			b.command("coder", "run_once")
			b.after(time.Hour)
			if rows := b.rows("session/coder"); rows != "J1" {
				t.Fatalf("the result was recorded too early: %s", rows)
			}
			deaf.Store(false)
			b.after(time.Minute)
			if began {
				if a := b.view("coder"); a.Session == nil || a.Session.Phase != "running" {
					t.Errorf("%+v", a.Session)
				}
				return
			}
			b.is("coder", "pause", "pause")
			if a := b.view("coder"); !strings.Contains(a.Note, errDead.Error()) {
				t.Errorf("note %q", a.Note)
			}
		})
	}
}

// team.hold: at the first start of a team nothing starts until a person lifts the hold. Later
// starts do not hold the team.
func TestHeldFromTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.conf.Team.Hold = true
		b.disk.writeDesired("coder", "continuous", "go", time.Now())
		b.start()
		b.after(time.Minute)
		if n := b.host.startsOf("coder"); n != 0 || !b.engine.Loop.State().Hold.On {
			t.Errorf("started %d times", n)
		}
		if _, err := b.engine.Agents.Hold(t.Context(), human, false, ""); err != nil {
			t.Fatal(err)
		}
		b.settle()
		if n := b.host.startsOf("coder"); n != 1 {
			t.Errorf("after the hold started %d times", n)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.start()
		if b.engine.Loop.State().Hold.On {
			t.Error("the second start holds the team")
		}
	})
}
