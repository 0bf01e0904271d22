package team

import (
	"fmt"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
)

// TestNextResumeStep takes each combination of what decides whether a session resumes a conversation.
func TestNextResumeStep(t *testing.T) {
	is := func(state question.State) *question.Question { return &question.Question{State: state} }
	for _, tt := range []struct {
		name      string
		q         *question.Question
		unasked   ResumeStep // while the session may be started and has not asked
		afterward ResumeStep // when it has asked
	}{
		{"no question", nil, ResumeAsks, ResumeBeginsNew},
		{"open", is(question.Open), ResumeWaits, ResumeWaits},
		{"answered", is(question.Answered), ResumeTakesAnswer, ResumeTakesAnswer},
		{"told", is(question.Delivered), ResumeTakesAnswer, ResumeTakesAnswer},
		{"withdrawn", is(question.Withdrawn), ResumeBeginsNew, ResumeBeginsNew},
	} {
		for _, c := range []struct {
			startable, asked bool
			want             ResumeStep
		}{{true, false, tt.unasked}, {true, true, tt.afterward}, {false, false, ResumeLeaves}, {false, true, ResumeLeaves}} {
			if got := NextResumeStep(tt.q, c.startable, c.asked); got != c.want {
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
		stop *Stop
		want bool
	}{
		"all died":         {nil, true},
		"the program died": {&Stop{Reason: "died"}, true},
		"it failed":        {&Stop{Reason: "failed"}, false},
		"its key was bad":  {&Stop{Reason: "not_signed_in"}, true},
	} {
		a := &Agent{Past: []Session{{ID: "a-1", For: ForControl, Outcome: control.Failed, Stop: c.stop}}}
		got, cut, _ := a.ShouldResume(&Session{ID: "a-2", For: ForControl}, &Conversation{Session: "a-1", For: ForControl},
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
		purpose Purpose
		percent int
		want    bool
	}{
		{ForStep("r", "work"), 0, true}, // unknown
		{ForStep("r", "work"), fullPercent - 1, true},
		{ForStep("r", "work"), fullPercent, false},
		{ForControl, 100, true},
	} {
		a := &Agent{Past: []Session{{
			ID: "a-1", For: c.purpose, Outcome: control.OK,
			Stop: &Stop{OK: true, ContextPercent: c.percent},
		}}}
		got, _, why := a.ShouldResume(&Session{ID: "a-2", For: c.purpose}, &Conversation{Session: "a-1", For: c.purpose}, true)
		if got != c.want || got == (why != "") {
			t.Errorf("%s at %d %%: %t, %q", c.purpose, c.percent, got, why)
		}
	}
}

// In a channel every session resumes the conversation until it has killed two in a row.
func TestATalkThatKills(t *testing.T) {
	t.Parallel()
	past := func(outcomes ...control.Outcome) (a *Agent) {
		a = &Agent{}
		for i, o := range outcomes {
			a.Past = append(a.Past, Session{ID: fmt.Sprint("ada-", i+1), For: ForChannels, Outcome: o})
		}
		return a
	}
	said := func(session string, resumed bool) *Conversation {
		return &Conversation{Conversed: Conversed{ID: "t", Resumed: resumed}, Session: session, For: ForChannels}
	}
	const ok, bad = control.OK, control.Failed
	for _, tt := range []struct {
		a    *Agent
		c    *Conversation
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
		if got := tt.a.resumeFailed(tt.c); got != tt.want {
			t.Errorf("%+v by %s: %t", tt.a.Past, tt.c.Session, got)
		}
	}
	stale := past(control.RateLimited, ok, bad) // another conversation was not found
	stale.Past[0].Stop = &Stop{Reason: session.ReasonNotResumed}
	if stale.resumeFailed(said("ada-3", true)) {
		t.Error("an old answer counts for a new conversation")
	}
}
