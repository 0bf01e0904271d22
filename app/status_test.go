package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"
)

// SPEC, corrections, "status": a foreign loop that Fairlead did not start is UNKNOWN, with the age
// of its report, if its file says that it works and has not changed for report_within.
func TestForeignLoopThatFallsSilentIsUnknown(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.foreign("ada")
		b.agent("ada").Command = nil
		b.agent("ada").ReportWithin = 5 * time.Minute
		b.start()
		b.command("ada", "continuous")
		b.settle()
		report := func() {
			t.Helper()
			s, err := agentstate.Parse(b.disk.text("ada"))
			if err != nil {
				t.Fatal(err)
			}
			s.CurrentState, s.Timestamp = "continuous", file.FormatTime(time.Now())
			b.disk.put("ada", s.Render())
			b.settle()
		}
		is := func(when string, want view.Status) view.AgentView {
			t.Helper()
			v := b.view("ada")
			if v.Status != want {
				t.Errorf("%s: the badge is %s (%s), want %s", when, v.Status, v.StatusWhy, want)
			}
			return v
		}
		report()
		is("after its report", view.StatusRunning)
		b.after(4 * time.Minute)
		is("four minutes later", view.StatusRunning)
		b.after(2 * time.Minute)
		if v := is("six minutes later", view.StatusUnknown); !strings.Contains(v.Doubt, "6m0s ago") || v.Badge != view.BadgeRunning {
			t.Errorf("badge %s, doubt %q", v.Badge, v.Doubt)
		}
		why, err := b.engine.Status.Why(t.Context(), "ada")
		if err != nil || !strings.HasPrefix(why.Verdict, "ada is UNKNOWN: ") || len(against(why)) == 0 {
			t.Errorf("%q, against it %q, %v", why.Verdict, against(why), err)
		}
		b.command("ada", "pause")
		b.settle()
		is("after an order, which is no report", view.StatusUnknown)
		b.after(time.Second)
		report()
		is("after its next report, which has not read the order", view.StatusStopping)
		b.after(40 * 24 * time.Hour)
		is("40 days later", view.StatusUnknown)
	})
}

// TestGaveUpIsFailed checks that an agent that failed permanently is FAILED and in the inbox until
// a person gives an order.
func TestGaveUpIsFailed(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.agent("ada").FailuresMax = 1
		b.agent("ada").Loop = config.LoopFairlead
		b.start()
		b.host.starts.set(func(string) error { return errors.New("no such program") })
		b.command("ada", "continuous")
		b.after(time.Second)
		if v := b.view("ada"); v.Status != view.StatusFailed || v.GaveUp == nil || !strings.Contains(v.StatusWhy, "no such program") {
			t.Fatalf("it is %s: %q, note %q", v.Status, v.StatusWhy, v.Note)
		}
		items, err := b.engine.Status.Inbox(t.Context())
		if err != nil || len(items) != 1 || items[0].Kind != view.InboxFailed || items[0].Agent != "ada" {
			t.Errorf("the inbox: %+v, %v", items, err)
		}
		b.command("ada", "pause")
		b.settle()
		if v := b.view("ada"); v.Status != view.StatusIdle || v.IdleReason != view.IdlePaused {
			t.Errorf("after the pause it is %s (%s)", v.Status, v.IdleReason)
		}
		if items, err := b.engine.Status.Inbox(t.Context()); err != nil || len(items) != 0 {
			t.Errorf("the inbox: %+v, %v", items, err)
		}
	})
}

// SPEC F5, correction of 2026-11-28: a foreign loop that Fairlead started is known by its process from its first moment, also before
// it has written a file. Its twin, a loop that Fairlead did not start,
// is UNKNOWN until it writes.
func TestForeignLoopIsKnownByItsProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.foreign("ada", "bob")
		b.agent("ada").Command = []string{"loop"}
		b.agent("bob").Command = nil
		b.start()
		is := func(when, agent string, want view.Status) {
			t.Helper()
			v := b.view(agent)
			if v.Status != want || (v.Certainty == view.CertaintyUnknown) != (want == view.StatusUnknown) {
				t.Errorf("%s, %s is %s (%s)", when, agent, v.Status, v.StatusWhy)
			}
		}
		b.settle()
		is("before it has written", "ada", view.StatusRunning)
		is("before it has written", "bob", view.StatusUnknown)
		b.command("ada", "continuous")
		b.settle()
		is("after an order", "ada", view.StatusRunning)
		if why, err := b.engine.Status.Why(t.Context(), "ada"); err != nil || !strings.HasPrefix(why.Verdict, "ada is RUNNING") {
			t.Errorf("%q, %v", why.Verdict, err)
		}
	})
}
