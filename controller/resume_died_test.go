package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/driver"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// A key that the provider refuses is not tried again and again: after one session the agent rests,
// and the status says how to sign in. A person's next command tries once more.
func TestKeyRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.agent("coder").Command = []string{"opencode", "acp"}
		b.host.play = func(s *fakeSession) { s.say("stop not_signed_in") }
		b.start()
		for n := 1; n <= 2; n++ {
			b.command("coder", "continuous")
			b.after(time.Hour)
			v := b.is("coder", "pause", "pause")
			if got := b.host.startsOf("coder"); got != n || !strings.Contains(v.Note, "its provider refuses it: run `opencode auth login`") {
				t.Errorf("%d sessions were started, and it says %q", got, v.Note)
			}
		}
	})
}

// A program that died during its work is resumed, whether its adapter reported that or died with
// it; one that failed by itself begins anew.
func TestTakesUpWhatDied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop *team.Stop
		want bool
	}{
		"all died":         {nil, true},
		"the program died": {&team.Stop{Reason: "died"}, true},
		"it failed":        {&team.Stop{Reason: "failed"}, false},
		"its key was bad":  {&team.Stop{Reason: "not_signed_in"}, true},
	} {
		a := &team.Agent{Past: []team.Session{{ID: "a-1", For: team.ForControl, Outcome: control.Failed, Stop: c.stop}}}
		got, cut, _ := sessions.ShouldResume(a, &team.Session{ID: "a-2", For: team.ForControl}, &team.Conversation{Session: "a-1", For: team.ForControl}, config.ResumeInterrupted)
		if got != c.want || cut != c.want {
			t.Errorf("%s: %t, cut %t; want %t", name, got, cut, c.want)
		}
	}
}

// In a channel every session resumes the conversation until it has killed two in a row.
func TestATalkThatKills(t *testing.T) {
	t.Parallel()
	past := func(outcomes ...control.Outcome) (a *team.Agent) {
		a = &team.Agent{}
		for i, o := range outcomes {
			a.Past = append(a.Past, team.Session{ID: fmt.Sprint("ada-", i+1), For: team.ForChannels, Outcome: o})
		}
		return a
	}
	said := func(session string, resumed bool) *team.Conversation {
		return &team.Conversation{Conversed: team.Conversed{ID: "t", Resumed: resumed}, Session: session, For: team.ForChannels}
	}
	const ok, bad = control.OK, control.Failed
	for _, tt := range []struct {
		a    *team.Agent
		c    *team.Conversation
		want bool
	}{
		{past(ok), said("ada-1", false), false},
		{past(bad), said("ada-1", false), false},
		{past(bad, bad), said("ada-2", true), true},
		{past(bad, bad), said("ada-1", false), true}, // it died before it named the conversation again
		{past(bad, bad, bad), said("ada-3", false), false},
		{past(ok, bad), said("ada-2", true), false},
		{past(bad, ok, bad), said("ada-3", true), false},
		{past(), said("ada-1", true), false},
	} {
		if got := sessions.ResumeFailed(tt.a, tt.c); got != tt.want {
			t.Errorf("%+v by %s: %t", tt.a.Past, tt.c.Session, got)
		}
	}
	stale := past(control.RateLimited, ok, bad) // another conversation was not found
	stale.Past[0].Stop = &team.Stop{Reason: driver.ReasonNotResumed}
	if sessions.ResumeFailed(stale, said("ada-3", true)) {
		t.Error("an old answer counts for a new conversation")
	}
}
