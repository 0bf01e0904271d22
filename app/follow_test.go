package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
)

func (b *bubble) inStore(ref string) string {
	b.t.Helper()
	return gitIn(b.t, filepath.Join(b.conf.Dir, ".fairlead", "git"), "for-each-ref", "--format=%(objectname)", ref)
}

// While a task is open, its origin has each minute what the person has committed. When none is, nothing is followed. Without tasks.fetch
// the remote is not fetched.
func TestOriginFollows(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(_ *bubble, _ int, _ string, s *fakeSession) {
		s.next(time.Hour)
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		commit := func() string {
			gitIn(t, b.conf.Dir, "commit", "--quiet", "--allow-empty", "-m", "more")
			return gitIn(t, b.conf.Dir, "rev-parse", "main")
		}
		gitIn(t, b.conf.Dir, "remote", "add", "origin", b.conf.Dir)
		b.start()
		b.give("Work for an hour")
		for range 2 {
			first, newest := b.inStore("refs/heads/main"), commit()
			if got := b.inStore("refs/heads/main"); got != first {
				t.Errorf("at once it has %s", got)
			}
			b.after(time.Minute + time.Second)
			if got := b.inStore("refs/heads/main"); got != newest {
				t.Errorf("after a minute it has %s, and not %s", got, newest)
			}
		}
		b.after(2 * time.Hour)
		b.land("T1")
		if got := b.inStore("refs/remotes/"); got != "" {
			t.Errorf("it has fetched %s", got)
		}
		before := b.inStore("refs/heads/main")
		commit()
		b.after(time.Hour)
		if got := b.inStore("refs/heads/main"); got != before {
			t.Error("it follows without a task")
		}
	})
}

// With tasks.fetch the remote is fetched while a task is open. A failure ends that, and says so, until a person's sync works.
func TestFetchesByItself(t *testing.T) {
	t.Parallel()
	taskBubble(t, func(_ *bubble, _ int, _ string, s *fakeSession) {
		s.next(9 * time.Hour)
		s.say("stop ok")
	}, nil, func(t *testing.T, b *bubble) {
		remote, others := filepath.Join(t.TempDir(), "remote.git"), filepath.Join(t.TempDir(), "others")
		gitIn(t, b.conf.Dir, "clone", "--quiet", "--bare", b.conf.Dir, remote)
		gitIn(t, b.conf.Dir, "remote", "add", "origin", remote)
		gitIn(t, b.conf.Dir, "clone", "--quiet", remote, others)
		push := func() string {
			gitIn(t, others, "commit", "--quiet", "--allow-empty", "-m", "more")
			gitIn(t, others, "push", "--quiet", "origin", "main")
			return gitIn(t, others, "rev-parse", "main")
		}
		const ref = "refs/remotes/origin/main"
		stopped := func() string { return b.runView("T1").Task.FetchStopped }
		b.conf.Tasks.Fetch = 10 * time.Minute
		mail := b.notifies(phone())
		b.start()
		b.give("Work for some hours")
		b.after(11 * time.Minute)
		newest := push()
		if got := b.inStore(ref); got == "" || got == newest {
			t.Errorf("at once it has %q", got)
		}
		b.after(11 * time.Minute)
		if got := b.inStore(ref); got != newest || stopped() != "" {
			t.Errorf("after ten minutes it has %s, and not %s: %s", got, newest, stopped())
		}
		if err := os.Rename(remote, remote+".away"); err != nil {
			t.Fatal(err)
		}
		b.after(11 * time.Minute)
		if why := stopped(); !strings.Contains(why, "remote origin: git fetch") || !strings.Contains(why, "fetch origin` says") {
			t.Errorf("it has stopped because of %q", why)
		}
		cards := func() (why []string) {
			items, err := b.engine.Status.Inbox(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				if item.Kind == view.InboxFetch {
					why = append(why, item.Why)
				}
			}
			return why
		}
		if why := cards(); len(why) != 1 || !strings.Contains(why[0], "remote origin: git fetch") {
			t.Errorf("the inbox has %q", why)
		}
		b.after(time.Minute) // the notices are looked at once a minute
		b.wantNotices(mail, "phone needs_you fetch")
		var refusal *table.Refusal
		if _, err := b.engine.Tasks.SyncTask(t.Context(), "T1"); !errors.As(err, &refusal) || refusal.Row != "W9" || stopped() == "" {
			t.Errorf("a sync that fails: %v", err)
		}
		if err := os.Rename(remote+".away", remote); err != nil {
			t.Fatal(err)
		}
		before := newest
		newest = push()
		b.after(time.Hour)
		if got := b.inStore(ref); got != before {
			t.Errorf("after a failure it has fetched %s", got)
		}
		if _, err := b.engine.Tasks.SyncTask(t.Context(), "T1"); err != nil || stopped() != "" || b.inStore(ref) != newest || len(cards()) != 0 {
			t.Errorf("a sync that works: %v, %q, %q", err, stopped(), cards())
		}
		newest = push()
		b.after(11 * time.Minute)
		if got := b.inStore(ref); got != newest {
			t.Errorf("after that it has %s, and not %s", got, newest)
		}
	})
}
