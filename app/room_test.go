package app

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Sessions wait until their machine has room, and say so. Then they start by themselves, one after the other. One that is no longer
// wanted does not start.
func TestStartsWaitForRoom(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob eve", func(t *testing.T, b *bubble) {
		var full atomic.Bool
		full.Store(true)
		b.room = func() string {
			if full.Load() {
				return "waits for memory: 1.0 MB are free, and a session needs 512.0 MB"
			}
			return ""
		}
		b.host.play = func(s *fakeSession) { <-s.asked }
		b.start()
		for _, name := range []string{"ada", "bob", "eve"} {
			b.command(name, "continuous")
		}
		b.after(time.Minute)
		starts := func() (n int) { return b.host.startsOf("ada") + b.host.startsOf("bob") + b.host.startsOf("eve") }
		if n := starts(); n != 0 {
			t.Fatalf("%d sessions were started", n)
		}
		if is := b.view("ada"); is.Session == nil || !strings.HasPrefix(is.Session.Waits, "waits for memory: 1.0 MB") {
			t.Errorf("%+v", is.Session)
		}
		b.command("eve", "pause")
		b.after(time.Minute)
		full.Store(false)
		b.after(2 * time.Second)
		if n := starts(); n != 1 {
			t.Errorf("%d sessions were started at once", n)
		}
		b.after(10 * time.Second)
		if n := starts(); n != 2 || b.host.startsOf("eve") != 0 {
			t.Errorf("%d sessions were started, %d of eve", n, b.host.startsOf("eve"))
		}
		if is := b.view("ada"); is.Session == nil || is.Session.Waits != "" {
			t.Errorf("%+v", is.Session)
		}
	})
}

// A session that a limit has ended has failed, whatever its program has said, and its agent backs off. The reason names the limit, and
// the journal has what the session has used.
func TestEndedForLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.agent("coder").Limits.MemoryBytes = 64e6
		use := session.Use{MemoryBytes: 70e6, Processes: 3, Processor: time.Second}
		b.host.play = func(s *fakeSession) {
			s.say("done")
			s.finish(session.Exit{Code: -1, Signal: "SIGKILL", At: time.Now(), Limit: session.LimitMemory, Use: use})
		}
		b.start()
		b.command("coder", "continuous")
		b.after(100 * time.Millisecond)
		var past []team.Session
		if err := b.engine.Loop.View(t.Context(), func(now *team.Team) { past = now.Agents["coder"].Past }); err != nil || len(past) != 1 {
			t.Fatalf("%+v %v", past, err)
		}
		const why = "limits.memory of coder was reached: its processes had 70.0 MB of memory"
		if s := past[0]; s.Outcome != "failed" || s.Limit != session.LimitMemory || s.Use != use || !strings.HasPrefix(s.Why, why) {
			t.Errorf("%+v", s)
		}
		if is := b.view("coder"); is.Failures != 1 || is.RetryAt == nil {
			t.Errorf("%+v", is)
		}
		b.after(10 * time.Minute)
		if is := b.view("coder"); is.GaveUp == nil || !strings.Contains(is.Note, why) {
			t.Errorf("%+v", is)
		}
	})
}
