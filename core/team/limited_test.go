package team

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// R1, R2: a rate limit is not a failure. The agent waits until the provider's reset time or,
// without one, longer each time. A session that succeeds ends the series.
func TestProviderWaits(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	limited := func(until time.Time) {
		t.Helper()
		id := c.starts("ada")
		c.must("ada", SessionEnded{Session: id, Outcome: control.RateLimited, Why: "429", Until: until})
	}
	waits := func(want time.Duration, stated bool) {
		t.Helper()
		a := c.Agents["ada"]
		if !a.Waits() || a.Limited.Until.Sub(a.Limited.Since) != want || a.Limited.Stated != stated {
			t.Fatalf("waits %v: %+v, want %v", a.Limited.Until.Sub(a.Limited.Since), a.Limited, want)
		}
		if a.Session != nil || a.Control.Failures != 0 || a.Control.State != control.Continuous {
			t.Fatalf("it is %s after %d failures, with %+v", a.Control.State, a.Control.Failures, a.Session)
		}
		if why := c.ControlWaits("ada"); !strings.HasPrefix(why,
			"it waits in the queue behind its provider: rate limited until 2026-11-2") {
			t.Fatalf("it waits: %q", why)
		}
		if at := c.Deadline(a); !at.Equal(a.Limited.Until) {
			t.Fatalf("the next deadline is %v, but it waits until %v", at, a.Limited.Until)
		}
	}
	lifts := func() {
		t.Helper()
		c.at = c.Agents["ada"].Limited.Until
		c.must("ada", TimerFired{})
		if a := c.Agents["ada"]; a.Waits() || a.Session == nil {
			t.Fatalf("after the wait it is %+v with %+v", a.Limited, a.Session)
		}
	}
	limited(time.Time{})
	waits(time.Minute, false)
	lifts()
	limited(time.Time{})
	waits(2*time.Minute, false)
	c.must("ada", LimitLifted{}) // a person lifts the limit
	for range 6 {
		limited(time.Time{})
		lifts()
	}
	limited(time.Time{})
	waits(30*time.Minute, false)
	lifts()
	limited(c.at.Add(90 * time.Minute).Add(0))
	if a := c.Agents["ada"]; a.Limited.Until.Sub(a.Limited.Since) > 90*time.Minute || !a.Limited.Stated {
		t.Fatalf("%+v", a.Limited)
	}
	lifts()
	limited(c.at.Add(-time.Hour)) // a time that has passed
	waits(time.Second, true)
	lifts()
	limited(c.at.Add(1000 * time.Hour)) // an implausible time
	waits(7*24*time.Hour, true)
	lifts()
	c.ends("ada", control.OK)
	if a := c.Agents["ada"]; a.Limited.Times != 0 {
		t.Fatalf("after a successful session: %+v", a.Limited)
	}
	id := c.starts("ada")
	until := c.at.Add(10 * time.Minute)
	c.must("ada", SessionReported{Session: id, Offset: 5, RateLimit: &RateLimit{Until: until, Why: "five hours are used up"}})
	// reported before a crash, and its end was seen after it
	c.must("ada", SessionEnded{Session: id, Outcome: control.RateLimited, Why: "429"})
	if a := c.Agents["ada"]; !a.Limited.Until.Equal(until) || a.Limited.Times != 1 {
		t.Fatalf("%+v, want %v", a.Limited, until)
	}
}

// TestConversations checks that a conversation is known by the program's own id, also if that
// changes, and with the conditions of its start.
func TestConversations(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.Agents["ada"].Session.ID
	was := &LaunchRecord{Driver: "acp", Argv: []string{"opencode", "acp"}, Env: []string{"KEY"}, Dir: "/work/repo", Model: "m1"}
	c.must("ada", SessionStarted{Session: id, PID: 4711, Launch: was})
	c.must("ada", ConversationNamed{Session: id, Conversed: Conversed{ID: "ses_1", Program: "opencode 1.18.33"}})
	c.must("ada", ConversationNamed{Session: id, Conversed: Conversed{ID: "ses_2", Program: "opencode 1.18.33"}})
	is := c.Agents["ada"].Conversations[ForControl]
	if is == nil || is.ID != "ses_2" || is.Before != "ses_1" || is.Launch == nil || is.Launch.Model != "m1" {
		t.Fatalf("%+v", is)
	}
	c.ends("ada", control.OK)
	if past := c.Agents["ada"].Past[0]; past.Launch != nil {
		t.Error("a past session duplicates the record of its conversation")
	}
	now := &LaunchRecord{
		Driver: "acp", Argv: []string{"opencode", "acp", "--yolo"}, Env: []string{"OTHER"}, Dir: "/work/repo",
		Model: "m2", Resume: "ses_2",
	}
	want := []string{"model: m1 is now m2", "argument --yolo was added", "variable KEY is gone", "variable OTHER was added"}
	if got := is.Launch.Differs(now); !slices.Equal(got, want) {
		t.Errorf("the differences are %q", got)
	}
	if got := is.Launch.Differs(&LaunchRecord{
		Driver: "acp", Argv: []string{"acp", "opencode"}, Env: []string{"KEY"}, Dir: "/work/repo",
		Model: "m1",
	}); !slices.Equal(got, []string{"arguments are in a different order"}) {
		t.Errorf("the differences are %q", got)
	}
	for i := range 40 {
		c.Agents["ada"].keepConversation(Conversation{
			For: Purpose{Kind: PurposeStep, Run: "r", Step: strings.Repeat("x", i)},
			At:  machinetest.Noon.Add(time.Duration(i) * time.Second),
		})
	}
	if n := len(c.Agents["ada"].Conversations); n != conversationsMax {
		t.Errorf("%d conversations are kept", n)
	}
}

// X10: an agent cannot answer what waits for a person, not even its own question.
func TestNoAgentAnswersItself(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.starts("ada")
	ask := question.Ask{Question: question.Question{
		Kind: question.Permission, Agent: "ada", Session: id, Ask: "1", Tool: "Bash",
		Call: "make", Key: "make",
	}}
	c.must("", ask)
	for _, in := range []question.Input{question.Answer{ID: "q1", Allow: true}, question.Revoke{ID: "s1"}} {
		if _, err := c.Decide(Event{At: c.at, Actor: change.Actor{Kind: "agent", ID: "ada"}, What: in}); err == nil ||
			!strings.Contains(err.Error(), "X10") {
			t.Errorf("%T: %v", in, err)
		}
	}
	late := ask
	late.Question.Session = "ada-9"
	if _, err := c.Decide(Event{At: c.at, What: late}); err == nil || !strings.Contains(err.Error(), "is over, or it never was") {
		t.Errorf("%v", err)
	}
	c.must("", question.Answer{ID: "q1", Allow: false})
	if s := c.Agents["ada"].Session; s.Denied != 1 || !slices.Equal(s.DeniedWhat, []string{"Bash make"}) {
		t.Errorf("%+v", s)
	}
	c.must("", question.Ask{Question: question.Question{Kind: question.Asked, Agent: "ada", Session: id, Ask: "2", What: "Which?"}})
	c.ends("ada", control.OK)
	if q := c.Questions.Of(id, "2"); q.State != question.Withdrawn || !strings.Contains(q.Ended, "its session is over") {
		t.Errorf("%+v", q)
	}
	if past := c.Agents["ada"].Past[0]; past.Denied != 1 {
		t.Errorf("the denied call was lost: %+v", past)
	}
}

// A wait that no provider names doubles up to half an hour; one that it names lasts a second to a week; the longest counts.
func TestNextLimit(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var last *Limited
	for i, minutes := range []int{1, 2, 4, 8, 16, 30, 30} {
		if last != nil {
			last.Until = time.Time{} // it has ended
		}
		want := time.Duration(minutes) * time.Minute
		now, longer := nextLimit(last, at, time.Time{}, "busy")
		if got := now.Until.Sub(at); got != want || !longer || now.Stated {
			t.Errorf("wait %d lasts %v, longer %v", i, got, longer)
		}
		last = &now
	}
	for named, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, time.Hour: time.Hour,
		1000 * time.Hour: 7 * 24 * time.Hour,
	} {
		if now, _ := nextLimit(nil, at, at.Add(named), "busy"); now.Until.Sub(at) != want || !now.Stated {
			t.Errorf("%v: %+v", named, now)
		}
	}
	if _, longer := nextLimit(last, at, at.Add(time.Minute), "busy"); longer {
		t.Error("a shorter wait replaces a longer one")
	}
}
