package team

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// SPEC X1: deciding changes nothing, and the same changes give the same team, also after encoding.
func TestDecideThenApply(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	before, _ := json.Marshal(c.Team)
	first, err := c.Decide(Event{At: machinetest.Noon, Agent: "ada", What: control.Commanded{Desired: "continuous", By: "human"}})
	if err != nil {
		t.Fatal(err)
	}
	second, _ := c.Decide(Event{At: machinetest.Noon, Agent: "ada", What: control.Commanded{Desired: "continuous", By: "human"}})
	after, _ := json.Marshal(c.Team)
	if string(before) != string(after) {
		t.Error("deciding changed the team")
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two decisions differ:\n%s", diff)
	}
}

// TestTimesAreTheJournals checks that times of a local, monotonic clock become times as the journal
// stores them.
func TestTimesAreTheJournals(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	here := time.FixedZone("here", 3600)
	changes, err := c.Decide(Event{At: time.Now().In(here), Agent: "ada", What: control.Commanded{Desired: "run_once", By: "human"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range changes {
		read := decoded(t, encoded(t, ch))
		if ch != read &&
			!cmp.Equal(ch, read, cmp.Comparer(func(a, b time.Time) bool {
				return a == b //nolint:revive // to the last bit: a journal is read by other programs
			})) {
			t.Errorf("the decoded change differs:\n%s", cmp.Diff(ch, read))
		}
	}
}

// SPEC X4: a refusal names the request, the state, the reason, and what is allowed.
func TestRefusals(t *testing.T) {
	tired := quiet
	tired.Limits.TokensPerDay = 10
	c := newCrew(t, Limits{}, map[string]Settings{"ada": tired, "bob": quiet})
	c.wants("ada", "continuous")
	id := c.starts("ada")
	c.must("ada", SessionReported{Session: id, Offset: 1, Usage: change.Usage{InputTokens: 12}})
	for _, refusal := range []struct {
		agent string
		what  any
		want  string
	}{
		{
			"eve",
			control.Commanded{Desired: "pause"},
			"no agent is called \"eve\"; there are: ada, bob; if it is new in fairlead.yaml, run `fairlead reload`",
		},
		{
			"bob",
			control.Commanded{Desired: "turbo"},
			`bob: cannot take wanted_unknown while resting: "turbo" is no state; take one of continuous, pause, run_once, run_cleanup [C13] (takes wanted_pause)`,
		},
		{
			"ada",
			control.Commanded{Desired: "run_once"},
			`ada: cannot take wanted_run_once while continuous: tokens_per_day 10 (12 used) of ada is reached; raise it in fairlead.yaml, or wait for the next day (UTC) [C17] (takes wanted_pause)`,
		},
		{
			"ada",
			SessionEnded{Session: "ada-7", Outcome: control.OK},
			`session ada-7 of ada: cannot take ended while none: it is over, or it never was`,
		},
		{
			"bob",
			SessionReported{Session: "bob-1", Offset: 1},
			`session bob-1 of bob: cannot take reported while none: it is over, or it never was`,
		},
	} {
		before, _ := json.Marshal(c.Team)
		_, err := c.try(refusal.agent, refusal.what)
		if err == nil || err.Error() != refusal.want {
			t.Errorf("got  %v\nwant %s", err, refusal.want)
		}
		if after, _ := json.Marshal(c.Team); string(before) != string(after) {
			t.Errorf("%s was refused but had an effect", refusal.want)
		}
	}
	if text := (&Unknown{
		What: "changed file of task",
		Name: "T1",
	}).Error(); text != `no changed file of task is called "T1": there are none` {
		t.Errorf("what fairlead.yaml does not name is %q", text)
	}
	if _, err := New(nil).Decide(Event{Agent: "ada", What: TimerFired{}}); err == nil ||
		!strings.HasSuffix(err.Error(), "there are none; add it to fairlead.yaml, then run `fairlead reload`") {
		t.Errorf("an empty team answers %v", err)
	}
	c.must("ada", SessionEnded{Session: id, Outcome: control.OK})
	c.wants("bob", "run_once")
	if _, err := c.try("bob", SessionReported{Session: "bob-1", Offset: 1}); err == nil ||
		!strings.Contains(err.Error(), "cannot take reported while opened") {
		t.Errorf("a session that was not seen yet reports: %v", err)
	}
}

// SPEC X5: nothing is deleted. An agent that was removed from the configuration stays known, keeps
// its desired state, and starts no session. If it is configured again, it continues.
func TestRemovedAgents(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.starts("ada")
	c.must("", Configured{Agents: map[string]Settings{"bob": quiet}})
	c.ends("ada", control.OK)
	c.says("ada", control.Resting, "continuous")
	var refusal *table.Refusal
	if _, err := c.try("ada", control.Commanded{Desired: "run_once", By: "human"}); !errors.As(err, &refusal) || refusal.Row != "E3" ||
		err.Error() != "ada: cannot take wanted_run_once while removed: it is no longer configured; add it to fairlead.yaml and restart [E3] (takes wanted_pause)" {
		t.Errorf("a removed agent answers %v", err)
	}
	c.must("ada", control.Started{})
	c.says("ada", control.Resting, "continuous")
	c.must("", Configured{Agents: two()})
	c.must("ada", control.Started{})
	c.says("ada", control.Continuous, "continuous")
	if past := c.Agents["ada"].Past; len(past) != 1 || past[0].ID != "ada-1" {
		t.Errorf("its sessions were forgotten: %+v", past)
	}
}

// TestRemovedWhileBackingOff checks that an agent that waits for a retry and is removed becomes
// idle, also in its file.
func TestRemovedWhileBackingOff(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.starts("ada")
	c.ends("ada", control.Failed)
	c.says("ada", control.BackingOff, "continuous")
	c.must("", Configured{Agents: map[string]Settings{"bob": quiet}})
	c.says("ada", control.Resting, "continuous")
	if at := c.Deadline(c.Agents["ada"]); !at.IsZero() {
		t.Errorf("it still waits until %s", at)
	}
}

// TestConfiguredAgain checks that a changed limit of the team (E2) and a changed setting of an
// agent (E3) are recorded.
func TestConfiguredAgain(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	if changes := c.must("", Configured{Agents: two()}); len(changes) != 0 {
		t.Errorf("an unchanged configuration causes %+v", changes)
	}
	c.must("", Configured{Limits: Limits{TokensPerDay: 5}, Agents: two()})
	if c.Limits.TokensPerDay != 5 {
		t.Errorf("the limits are %+v", c.Limits)
	}
	tired := quiet
	tired.Policy.FailuresMax = 1
	changes := c.must("", Configured{Limits: c.Limits, Agents: map[string]Settings{"ada": tired, "bob": quiet}})
	if len(changes) != 1 || changes[0].Row != "E3" || c.Agents["ada"].Control.Policy.FailuresMax != 1 {
		t.Errorf("%+v", changes)
	}
}

// TestForeignTextIsCut checks that text of agents and systems is cut to one line of valid UTF-8.
func TestForeignTextIsCut(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "run_once")
	c.starts("ada")
	c.must("ada", SessionEnded{Session: "ada-1", Outcome: control.Failed, Why: "exit \xff 1\nand a whole story"})
	if past := c.Agents["ada"].Past[0]; past.Why != "exit \uFFFD 1" {
		t.Errorf("why is %q", past.Why)
	}
	c.must("bob", control.Commanded{Desired: "run_once", By: "human", Note: strings.Repeat("ü", 5000) + "\xff"})
	if n := len(c.File(c.Agents["bob"]).Note); n > 2010 {
		t.Errorf("a note of %d bytes", n)
	}
}

// TestInternalEventsAreBugs checks that events that only package team may create count as bugs if a
// caller sends them.
func TestInternalEventsAreBugs(t *testing.T) {
	for _, what := range []any{control.Ended{}, control.Held{}, control.LimitHit{}, control.Elapsed{}, control.Adopted{}, nil, "x"} {
		func() {
			c := newCrew(t, Limits{}, two())
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "no such event") {
					t.Errorf("%T: %v", what, r)
				}
			}()
			_, _ = c.try("ada", what)
		}()
	}
}

// kept is a change as text, with its body as the journal stores it.
type kept struct {
	change.Change
	Body json.RawMessage
}

// encoded and decoded write and read a change as text.
func encoded(t testing.TB, ch change.Change) []byte {
	t.Helper()
	body, err := change.Encode(ch.Body)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(kept{ch, body})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func decoded(t testing.TB, line []byte) change.Change {
	t.Helper()
	var read kept
	if err := json.Unmarshal(line, &read); err != nil {
		t.Fatal(err)
	}
	var err error
	if read.Change.Body, err = BodyOf(read.Body); err != nil {
		t.Fatal(err)
	}
	return read.Change
}
