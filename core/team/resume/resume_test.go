package resume

import (
	"fmt"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// TestNextResumeStep takes each combination of what decides whether a session resumes a conversation.
func TestNextResumeStep(t *testing.T) {
	is := func(state question.State) *question.Question { return &question.Question{State: state} }
	for _, tt := range []struct {
		name      string
		q         *question.Question
		unasked   Step // while the session may be started and has not asked
		afterward Step // when it has asked
	}{
		{"no question", nil, Asks, BeginsNew},
		{"open", is(question.Open), Waits, Waits},
		{"answered", is(question.Answered), TakesAnswer, TakesAnswer},
		{"told", is(question.Delivered), TakesAnswer, TakesAnswer},
		{"withdrawn", is(question.Withdrawn), BeginsNew, BeginsNew},
	} {
		for _, c := range []struct {
			startable, asked bool
			want             Step
		}{{true, false, tt.unasked}, {true, true, tt.afterward}, {false, false, Leaves}, {false, true, Leaves}} {
			if got := NextStep(tt.q, c.startable, c.asked); got != c.want {
				t.Errorf("%s, startable %v, asked %v: step %d, want %d", tt.name, c.startable, c.asked, got, c.want)
			}
		}
	}
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
		got, cut, _ := Should(a, &team.Session{ID: "a-2", For: team.ForControl}, &team.Conversation{Session: "a-1", For: team.ForControl},
			false)
		if got != c.want || cut != c.want {
			t.Errorf("%s: %t, cut %t; want %t", name, got, cut, c.want)
		}
	}
}

// A step begins a new conversation if the last one is too full for another round; other sessions leave it to their
// program.
func TestFullContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		purpose team.Purpose
		percent int
		want    bool
	}{
		{team.ForStep("r", "work"), 0, true}, // unknown
		{team.ForStep("r", "work"), fullPercent - 1, true},
		{team.ForStep("r", "work"), fullPercent, false},
		{team.ForControl, 100, true},
	} {
		a := &team.Agent{Past: []team.Session{{
			ID: "a-1", For: c.purpose, Outcome: control.OK,
			Stop: &team.Stop{OK: true, ContextPercent: c.percent},
		}}}
		got, _, why := Should(a, &team.Session{ID: "a-2", For: c.purpose}, &team.Conversation{Session: "a-1", For: c.purpose}, true)
		if got != c.want || got == (why != "") {
			t.Errorf("%s at %d %%: %t, %q", c.purpose, c.percent, got, why)
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
		if got := Failed(tt.a, tt.c); got != tt.want {
			t.Errorf("%+v by %s: %t", tt.a.Past, tt.c.Session, got)
		}
	}
	stale := past(control.RateLimited, ok, bad) // another conversation was not found
	stale.Past[0].Stop = &team.Stop{Reason: session.ReasonNotResumed}
	if Failed(stale, said("ada-3", true)) {
		t.Error("an old answer counts for a new conversation")
	}
}
