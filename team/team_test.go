package team

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
)

// seen counts what Decide really emitted in this package's tests.
var seen = struct {
	rows  map[string]int
	pairs map[string]int // of the session's table
}{map[string]int{}, map[string]int{}}

func note(ch Change) {
	seen.rows[ch.Row]++
	if ch.Machine == "session" {
		seen.pairs[ch.From+" "+ch.Trigger]++
	}
}

// TestMain fails when a row that team owns was never taken.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			os.Exit(code)
		}
	}
	var missing []string
	for _, row := range []string{"X8", "C14", "E1", "E2", "E3", "J1"} {
		if seen.rows[row] == 0 {
			missing = append(missing, "row "+row)
		}
	}
	for _, row := range SessionTable.Rows() {
		if seen.pairs[row.From+" "+row.On] == 0 {
			missing = append(missing, fmt.Sprintf("%s: %s in %s", row.ID, row.On, row.From))
		}
	}
	if code == 0 && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "never taken by any test of this package:\n  %s\n", strings.Join(missing, "\n  "))
		code = 1
	}
	os.Exit(code)
}

// crew is a team for stories that are told step by step.
type crew struct {
	*Team
	t  *testing.T
	at time.Time
}

// quiet is an agent that says nothing of itself.
var quiet = Settings{Driver: "script", Policy: control.Policy{FailuresMax: 5, BackoffFirst: time.Second, BackoffMax: time.Minute}}

func newCrew(t *testing.T, limits Limits, agents map[string]Settings) *crew {
	c := &crew{Team: New(identity), t: t, at: noon}
	c.must("", DaemonStarted{BootID: "boot"})
	c.must("", Configured{Limits: limits, Agents: agents})
	for _, name := range c.Names() {
		c.must(name, control.FileGone{})
		c.must(name, control.Started{})
	}
	return c
}

// try decides and applies, a second later.
func (c *crew) try(agent string, what any) ([]Change, error) {
	c.at = c.at.Add(time.Second)
	changes, err := c.Decide(Event{At: c.at, Actor: Actor{Kind: "human", ID: "test"}, Agent: agent, What: what})
	for _, ch := range changes {
		note(ch)
		c.Apply(ch)
	}
	return changes, err
}

func (c *crew) must(agent string, what any) []Change {
	c.t.Helper()
	changes, err := c.try(agent, what)
	if err != nil {
		c.t.Fatalf("%T: %v", what, err)
	}
	return changes
}

func (c *crew) wants(agent, desired string) []Change {
	c.t.Helper()
	return c.must(agent, control.Commanded{Desired: desired, By: "human", Note: "note"})
}

func (c *crew) session(agent string) string {
	c.t.Helper()
	if c.Agents[agent].Session == nil {
		c.t.Fatalf("%s has no session", agent)
	}
	return c.Agents[agent].Session.ID
}

func (c *crew) starts(agent string) string {
	c.t.Helper()
	id := c.session(agent)
	c.must(agent, SessionStarted{Session: id, PID: 1})
	return id
}

func (c *crew) ends(agent string, how control.Outcome) []Change {
	c.t.Helper()
	return c.must(agent, SessionEnded{Session: c.session(agent), Outcome: how, Why: "so"})
}

// says compares where an agent is with what is expected of it.
func (c *crew) says(agent string, state control.State, desired string) {
	c.t.Helper()
	if got := c.Agents[agent].Control; got.State != state || c.File(c.Agents[agent]).Desired != desired {
		c.t.Errorf("%s is %s and wants %s; want %s and %s", agent, got.State, c.File(c.Agents[agent]).Desired, state, desired)
	}
}

func two() map[string]Settings { return map[string]Settings{"ada": quiet, "bob": quiet} }

// SPEC X1: deciding changes nothing, and the same changes give the same team, through JSON too.
func TestDecideThenApply(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	before, _ := json.Marshal(c.Team)
	first, err := c.Decide(Event{At: noon, Agent: "ada", What: control.Commanded{Desired: "continuous", By: "human"}})
	if err != nil {
		t.Fatal(err)
	}
	second, _ := c.Decide(Event{At: noon, Agent: "ada", What: control.Commanded{Desired: "continuous", By: "human"}})
	after, _ := json.Marshal(c.Team)
	if string(before) != string(after) {
		t.Error("deciding changed the team")
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("asked twice, it says two things:\n%s", diff)
	}
}

// The clock that asks may be local and monotonic; the journal's is neither.
func TestTimesAreTheJournals(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	here := time.FixedZone("here", 3600)
	changes, err := c.Decide(Event{At: time.Now().In(here), Agent: "ada", What: control.Commanded{Desired: "run_once", By: "human"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range changes {
		line, _ := json.Marshal(ch)
		var read Change
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatal(err)
		}
		if ch != read && !cmp.Equal(ch, read, cmp.Comparer(func(a, b time.Time) bool { return a == b })) {
			t.Errorf("read back, it is another change:\n%s", cmp.Diff(ch, read))
		}
	}
}

// SPEC X4: refusals say what was asked, what the state is, why, and what would be taken.
func TestRefusals(t *testing.T) {
	tired := quiet
	tired.Limits.TokensPerDay = 10
	c := newCrew(t, Limits{}, map[string]Settings{"ada": tired, "bob": quiet})
	c.wants("ada", "continuous")
	id := c.starts("ada")
	c.must("ada", SessionReported{Session: id, Offset: 1, Usage: Usage{InputTokens: 12}})
	for _, refusal := range []struct {
		agent string
		what  any
		want  string
	}{
		{"eve", control.Commanded{Desired: "pause"}, `no agent is called "eve"; there are: ada, bob`},
		{"bob", control.Commanded{Desired: "turbo"}, `bob: cannot take wanted_unknown while resting: "turbo" is no state; take one of continuous, pause, run_once, run_cleanup [C13] (takes wanted_pause)`},
		{"ada", control.Commanded{Desired: "run_once"}, `ada: cannot take wanted_run_once while continuous: tokens_per_day 10 (12 used) of ada is reached; raise it in fairlead.yaml, or wait for the next day (UTC) [C17] (takes wanted_pause)`},
		{"ada", SessionEnded{Session: "ada-7", Outcome: control.OK}, `session ada-7 of ada: cannot take ended while none: it is over, or it never was`},
		{"bob", SessionReported{Session: "bob-1", Offset: 1}, `session bob-1 of bob: cannot take reported while none: it is over, or it never was`},
	} {
		before, _ := json.Marshal(c.Team)
		_, err := c.try(refusal.agent, refusal.what)
		if err == nil || err.Error() != refusal.want {
			t.Errorf("got  %v\nwant %s", err, refusal.want)
		}
		if after, _ := json.Marshal(c.Team); string(before) != string(after) {
			t.Errorf("%s was refused, and changed something", refusal.want)
		}
	}
	if _, err := New(nil).Decide(Event{Agent: "ada", What: TimerFired{}}); err == nil || !strings.HasSuffix(err.Error(), "there are none; add it to fairlead.yaml") {
		t.Errorf("an empty team says %v", err)
	}
	c.must("ada", SessionEnded{Session: id, Outcome: control.OK})
	c.wants("bob", "run_once")
	if _, err := c.try("bob", SessionReported{Session: "bob-1", Offset: 1}); err == nil || !strings.Contains(err.Error(), "cannot take reported while opened") {
		t.Errorf("a session that was not seen yet reports: %v", err)
	}
}

// SPEC X5: nothing is deleted. An agent that is configured no more is known still, keeps
// its wish, starts nothing, and says so; configured again it goes on.
func TestRemovedAgents(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.starts("ada")
	c.must("", Configured{Agents: map[string]Settings{"bob": quiet}})
	c.ends("ada", control.OK)
	c.says("ada", control.Resting, "continuous")
	var refusal *machine.Refusal
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

// An agent that waits for its next try and is removed comes to rest, also in its file.
func TestRemovedWhileBackingOff(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.starts("ada")
	c.ends("ada", control.Failed)
	c.says("ada", control.BackingOff, "continuous")
	c.must("", Configured{Agents: map[string]Settings{"bob": quiet}})
	c.says("ada", control.Resting, "continuous")
	if at := c.Deadline(c.Agents["ada"]); !at.IsZero() {
		t.Errorf("it waits still, until %s", at)
	}
}

// SPEC X8: the hold stops everything from starting, survives a restart, and lets what is
// under way finish; what was opened and not started is withdrawn.
func TestHold(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.starts("ada")
	c.wants("bob", "run_once")
	c.must("", HoldAsked{Note: "lunch"})
	if ok, why := c.MayStart("bob", "bob-1", c.at); ok || why != "the team is held" {
		t.Errorf("bob may start: %v, %q", ok, why)
	}
	c.ends("bob", control.Withdrawn)
	c.says("bob", control.Resting, "run_once")
	c.says("ada", control.Continuous, "continuous")
	if changes := c.must("", HoldAsked{}); len(changes) != 0 {
		t.Errorf("held twice, it says %+v", changes)
	}
	c.must("", DaemonStarted{BootID: "boot"})
	if h := c.Hold; !h.On || h.Note != "lunch" || h.By != "test" {
		t.Errorf("after a restart the hold is %+v", h)
	}
	c.must("ada", SessionAdopted{Session: "ada-1", PID: 1})
	c.must("ada", control.Started{})
	c.must("bob", control.Started{})
	c.ends("ada", control.OK)
	c.says("ada", control.Resting, "continuous")
	c.must("", ReleaseAsked{})
	c.says("ada", control.Continuous, "continuous")
	c.says("bob", control.RunOnce, "run_once")
	if changes := c.must("", ReleaseAsked{}); len(changes) != 0 {
		t.Errorf("released twice, it says %+v", changes)
	}
}

// SPEC X9: the team's sum stops everybody, also who had a limit of his own reached before.
func TestLimitOfTheTeam(t *testing.T) {
	tired := quiet
	tired.Limits.TokensPerDay = 10
	c := newCrew(t, Limits{CostPerDayUSD: 5}, map[string]Settings{"ada": tired, "bob": quiet, "cleo": quiet})
	for _, name := range c.Names() {
		c.wants(name, "continuous")
		c.starts(name)
	}
	c.must("ada", SessionReported{Session: "ada-1", Offset: 10, Usage: Usage{OutputTokens: 10}})
	if s := c.Agents["ada"].Session; s.Ending != "limit reached: tokens_per_day 10 (10 used) of ada" {
		t.Errorf("ada goes on: %+v", s)
	}
	if c.Agents["bob"].Session.Ending != "" {
		t.Error("bob is ended for ada's limit")
	}
	c.must("ada", SessionReported{Session: "ada-1", Offset: 20, Usage: Usage{CostUSD: 5.5}})
	for _, name := range []string{"bob", "cleo"} {
		if s := c.Agents[name].Session; s.Ending != "limit reached: cost_per_day_usd 5 (5.50 used) of the team" {
			t.Errorf("%s goes on: %+v", name, s)
		}
		c.ends(name, control.Failed)
		c.says(name, control.Resting, "pause")
		if f := c.File(c.Agents[name]); f.By != "agent" || f.Note != "limit reached: cost_per_day_usd 5 (5.50 used) of the team" {
			t.Errorf("its file says %+v", f)
		}
		if past := c.Agents[name].Past[0]; past.Outcome != control.Cancelled {
			t.Errorf("what ended by order is called %+v", past)
		}
	}
	c.at = c.at.Add(24 * time.Hour)
	c.wants("bob", "run_once")
	c.says("bob", control.RunOnce, "run_once")
}

// SPEC X9: the wall-clock of a session, the shorter of the agent's and the team's.
func TestLimitOfTheSession(t *testing.T) {
	slow := quiet
	slow.Limits.Session = time.Hour
	c := newCrew(t, Limits{Session: 10 * time.Minute}, map[string]Settings{"ada": slow, "bob": quiet})
	c.wants("ada", "continuous")
	if at := c.Deadline(c.Agents["ada"]); !at.IsZero() {
		t.Errorf("the clock of a session runs before its process does: %s", at)
	}
	c.starts("ada")
	deadline := c.Deadline(c.Agents["ada"])
	if want := c.at.Add(10 * time.Minute); !deadline.Equal(want) {
		t.Fatalf("the deadline is %s, want %s", deadline, want)
	}
	if changes := c.must("ada", TimerFired{}); len(changes) != 0 {
		t.Errorf("an early timer says %+v", changes)
	}
	c.at = deadline
	c.must("ada", TimerFired{})
	if s := c.Agents["ada"].Session; s.Ending != "limit reached: session 10m0s" || s.Now {
		t.Errorf("it goes on: %+v", s)
	}
	want := []Todo{{Key: "end/ada-1/false", Do: EndSession, Agent: "ada", Session: *c.Agents["ada"].Session}}
	if diff := cmp.Diff(want, c.Todo(c.Agents["ada"])[:1]); diff != "" {
		t.Error(diff)
	}
	c.ends("ada", control.OK)
	c.says("ada", control.Resting, "pause")
}

// Reports are counted once (X9), and what no agent can have used is not counted at all.
func TestUsageIsCountedOnce(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.starts("ada")
	report := SessionReported{Session: id, Offset: 10, Usage: Usage{InputTokens: 7, CostUSD: 0.5, Day: "1999-01-01"}}
	c.must("ada", report)
	for _, again := range []int64{10, 9, 0, -5} {
		report.Offset = again
		if changes := c.must("ada", report); len(changes) != 0 {
			t.Errorf("the report at %d was counted again", again)
		}
	}
	c.must("ada", SessionReported{Session: id, Offset: 11, Usage: Usage{InputTokens: -3, OutputTokens: math.MinInt64, CostUSD: math.NaN()}})
	c.must("ada", SessionReported{Session: id, Offset: 12, Usage: Usage{CostUSD: -1}})
	want := Usage{Day: "2026-11-20", InputTokens: 7, CostUSD: 0.5}
	if c.Agents["ada"].Usage != want || c.Usage != want {
		t.Errorf("counted are %+v and %+v, want %+v", c.Agents["ada"].Usage, c.Usage, want)
	}
	for offset := range int64(4) {
		c.must("ada", SessionReported{Session: id, Offset: 20 + offset, Usage: Usage{InputTokens: math.MaxInt64, CostUSD: math.Inf(1)}})
	}
	if u := c.Usage; u.InputTokens < 0 || math.IsInf(u.CostUSD, 0) {
		t.Errorf("the sum ran over: %+v", u)
	}
	if _, err := json.Marshal(c.Team); err != nil {
		t.Error(err)
	}
}

// SPEC J1: one session at a time. While one is open nothing opens another, and the errand
// of starting it is the same errand however often it is asked for.
func TestOneSessionAtATime(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	if !slices.ContainsFunc(c.Todo(c.Agents["ada"]), func(todo Todo) bool { return todo.Key == "start/ada-1" }) {
		t.Errorf("its session is not to be started: %+v", c.Todo(c.Agents["ada"]))
	}
	for _, desired := range []string{"run_once", "run_cleanup", "continuous"} {
		for _, ch := range c.wants("ada", desired) {
			if ch.Row == "J1" {
				t.Errorf("%s opens a second session", desired)
			}
		}
	}
	c.starts("ada")
	c.must("ada", control.Started{})
	if got := c.session("ada"); got != "ada-1" {
		t.Errorf("open is %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second session at one time is no bug")
		}
	}()
	a := *c.Agents["ada"]
	(&draft{team: c.Team}).open(&a, control.Work)
}

// SPEC J2, as far as there is one machine that asks for sessions: pause ends no session and
// lets no further one begin; hold and limits stop whoever asked.
func TestPauseStopsControlSessions(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.wants("ada", "pause")
	if ok, why := c.MayStart("ada", "ada-1", c.at); ok || why != "desired_state is pause now" {
		t.Errorf("a paused agent may start: %v, %q", ok, why)
	}
	// The seat is for whoever asks; a session of another machine is not control's to pause.
	turn := *c.Agents["ada"].Session
	turn.For = "turn"
	c.Agents["ada"].Session = &turn
	if ok, why := c.MayStart("ada", "ada-1", c.at); !ok {
		t.Errorf("pause stops a turn: %s", why)
	}
	c.must("", HoldAsked{})
	if ok, _ := c.MayStart("ada", "ada-1", c.at); ok {
		t.Error("hold does not stop a turn")
	}
}

// SPEC J5: the badge follows from current_state alone, whatever else is the case.
func TestBadgeFollowsTheFile(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	badge := func() string { return control.Badge(c.File(c.Agents["ada"]).Current) }
	if badge() != "IDLE" {
		t.Error("at rest it is not IDLE")
	}
	c.wants("ada", "run_cleanup")
	if badge() != "RUNNING" {
		t.Error("opened, and not RUNNING")
	}
	c.ends("ada", control.CannotStart)
	if badge() != "IDLE" {
		t.Error("over, and not IDLE")
	}
}

// What ends is what was begun: C14 with a second signal, for sessions and programs.
func TestStop(t *testing.T) {
	program := quiet
	program.Policy.Foreign, program.Policy.Program = true, true
	c := newCrew(t, Limits{}, map[string]Settings{"ada": quiet, "bob": quiet, "dora": program})
	c.wants("ada", "run_once")
	c.starts("ada")
	c.wants("bob", "run_once")
	c.starts("dora")
	c.must("", StopAsked{})
	if c.Agents["ada"].Session.Ending != "" || c.Agents["dora"].Session.Ending == "" {
		t.Errorf("a session is ended (%q), or a program is not (%q)", c.Agents["ada"].Session.Ending, c.Agents["dora"].Session.Ending)
	}
	if ok, why := c.MayStart("bob", "bob-1", c.at); ok || why != "fairlead stops" {
		t.Errorf("bob may start: %v, %q", ok, why)
	}
	c.must("", StopAsked{Now: true})
	if s := c.Agents["ada"].Session; s.Ending != "fairlead was asked to stop" || !s.Now {
		t.Errorf("a second signal ends nothing: %+v", s)
	}
	if changes := c.must("", StopAsked{Now: true}); len(changes) != 0 {
		t.Errorf("a third signal says %+v", changes)
	}
	if c.Idle() {
		t.Error("idle, with sessions open")
	}
	c.ends("ada", control.Failed)
	c.ends("bob", control.Withdrawn)
	c.ends("dora", control.OK)
	if !c.Idle() {
		t.Error("not idle, and nothing is open")
	}
	c.says("ada", control.Resting, "pause")
	c.says("bob", control.Resting, "run_once")
	if f := c.File(c.Agents["ada"]); f.Note != "run_once was ended: fairlead was asked to stop" {
		t.Errorf("the note says %q", f.Note)
	}
	c.must("", DaemonStarted{})
	if c.Stopping || c.Epoch != 2 {
		t.Errorf("started again: stopping %v, epoch %d", c.Stopping, c.Epoch)
	}
}

// A program that is configured no more is ended, and then the loop is ours.
func TestProgramConfiguredNoMore(t *testing.T) {
	program := quiet
	program.Policy.Foreign, program.Policy.Program = true, true
	c := newCrew(t, Limits{}, map[string]Settings{"dora": program})
	c.starts("dora")
	c.wants("dora", "continuous")
	c.must("", Configured{Agents: map[string]Settings{"dora": quiet}})
	if s := c.Agents["dora"].Session; s.Ending != "its program is no longer configured" {
		t.Errorf("it runs on: %+v", s)
	}
	c.ends("dora", control.OK)
	c.says("dora", control.Continuous, "continuous")
	if s := c.Agents["dora"].Session; s.Kind != control.Work {
		t.Errorf("open is %+v", s)
	}
}

// A used-up day keeps a foreign loop's program down until the next one, without a timer
// that fires for ever.
func TestProgramWaitsForTheNextDay(t *testing.T) {
	program := quiet
	program.Policy.Foreign, program.Policy.Program = true, true
	program.Limits.CostPerDayUSD = 1
	c := newCrew(t, Limits{}, map[string]Settings{"dora": program})
	id := c.starts("dora")
	c.must("dora", SessionReported{Session: id, Offset: 1, Usage: Usage{CostUSD: 2}})
	c.ends("dora", control.Failed)
	tomorrow := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if at := c.Deadline(c.Agents["dora"]); !at.Equal(tomorrow) {
		t.Fatalf("it waits until %s, want %s", at, tomorrow)
	}
	c.must("dora", TimerFired{})
	c.at = tomorrow
	c.must("dora", TimerFired{})
	if c.session("dora") != "dora-2" {
		t.Error("it does not start on the next day")
	}
}

// A limit of the team that changes is noted (E2), and so is an agent's setting (E3).
func TestConfiguredAnew(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	if changes := c.must("", Configured{Agents: two()}); len(changes) != 0 {
		t.Errorf("nothing is new, and it says %+v", changes)
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

// What agents and systems say is cut to a line, and to what JSON can hold.
func TestWordsOfOthersAreCut(t *testing.T) {
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

// Events that only team may make are bugs from outside, and are called so.
func TestInsideEventsAreNotTakenFromOutside(t *testing.T) {
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
