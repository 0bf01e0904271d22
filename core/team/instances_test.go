package team

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
)

var ownFolder = RunSettings{OwnFolder: true}

// threeAdas returns a team whose agent ada has three instances.
func threeAdas(t *testing.T, limits Limits) *crewWorld {
	t.Helper()
	many := quiet
	many.Instances, many.Limits = 3, limits
	return newCrew(t, Limits{}, map[string]Settings{"ada": many, "bob": quiet})
}

// slots checks the work in each slot of ada, the lowest first.
func (c *crewWorld) slots(want ...string) {
	c.t.Helper()
	var got []string
	for _, s := range c.Agents["ada"].Sessions() {
		got = append(got, sessionLabel(s)+" in "+string(rune('0'+s.Slot)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("the slots of ada:\n%s", diff)
	}
}

// SPEC J1, instances: one session for each slot. Control uses slot 0. Steps of runs with their own
// folder use any slot. A waiting request names those before it.
func TestInstances(t *testing.T) {
	c := threeAdas(t, Limits{})
	changes := c.runs("T1", ownFolder, "work ada")
	if got := rows(changes[len(changes)-1:]); got != "session/ada/1 J1 none>opened" {
		t.Errorf("the step takes %s", got)
	}
	c.wants("ada", "continuous")
	c.runs("T2", ownFolder, "work ada")
	c.runs("T3", ownFolder, "work ada")
	c.slots("control (ada-2) in 0", "run/T1/work (ada-1) in 1", "run/T2/work (ada-3) in 2")
	if why := c.StepWaits("T3", "work"); why != "it waits in the queue behind control (ada-2), run/T1/work (ada-1), run/T2/work (ada-3)" {
		t.Errorf("T3: %s", why)
	}
	c.starts("ada")
	c.stepStarts("T2", "work")
	c.does("T2", "work", good, control.OK)
	c.slots("control (ada-2) in 0", "run/T1/work (ada-1) in 1", "run/T3/work (ada-4) in 2")
	c.runs("T4", ownFolder, "work ada")
	c.ends("ada", control.OK) // control has another session to run, but T4 was first
	c.slots("run/T4/work (ada-5) in 0", "run/T1/work (ada-1) in 1", "run/T3/work (ada-4) in 2")
	c.runs("T5", ownFolder, "work ada")
	c.stepStarts("T1", "work")
	c.does("T1", "work", good, control.OK) // control was first, and needs slot 0
	c.slots("run/T4/work (ada-5) in 0", "run/T5/work (ada-6) in 1", "run/T3/work (ada-4) in 2")
	c.runs("T6", ownFolder, "work ada")
	c.stepStarts("T4", "work")
	c.does("T4", "work", good, control.OK)
	c.slots("control (ada-7) in 0", "run/T5/work (ada-6) in 1", "run/T3/work (ada-4) in 2")
	if n := len(c.Agents["ada"].Past); n != 4 || c.Agents["ada"].Opened != 7 {
		t.Errorf("%d sessions have ended", n)
	}
}

// TestOneInstance checks that an agent without instances has one slot, also for runs with their own
// folder.
func TestOneInstance(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("T1", ownFolder, "work ada")
	c.runs("T2", ownFolder, "work ada")
	c.slots("run/T1/work (ada-1) in 0")
	if why := c.StepWaits("T2", "work"); why != "it waits in the queue behind run/T1/work (ada-1)" {
		t.Errorf("T2: %s", why)
	}
}

// TestInstancesDoNotShareAFolder checks that two sessions never work in the same folder: a run in
// the agent's workspace uses slot 0, and a run has one session of the agent at a time.
func TestInstancesDoNotShareAFolder(t *testing.T) {
	c := threeAdas(t, Limits{})
	c.runs("r", RunSettings{}, "one ada", "two ada")
	c.slots("run/r/one (ada-1) in 0")
	if why := c.StepWaits("r",
		"two"); why != "it waits in the queue behind run/r/one (ada-1); its run has no folder of its own, so only the first of the sessions of ada may do it" {
		t.Errorf("r: %s", why)
	}
	c.runs("T1", ownFolder, "one ada", "two ada")
	c.slots("run/r/one (ada-1) in 0", "run/T1/one (ada-2) in 1")
	if why := c.StepWaits("T1", "two"); why != "it waits for run/T1/one (ada-2), which works in the same folder" {
		t.Errorf("T1: %s", why)
	}
	c.stepStarts("r", "one")
	c.does("r", "one", good, control.OK) // the second step of r waited longer
	c.slots("run/r/two (ada-3) in 0", "run/T1/one (ada-2) in 1")
	c.stepStarts("T1", "one")
	c.does("T1", "one", good, control.OK)
	c.slots("run/r/two (ada-3) in 0", "run/T1/two (ada-4) in 1")
}

// TestFewerInstances checks that sessions finish and no new ones begin after a person has lowered
// the number.
func TestFewerInstances(t *testing.T) {
	c := threeAdas(t, Limits{})
	for _, id := range []string{"T1", "T2", "T3", "T4"} {
		c.runs(id, ownFolder, "work ada")
	}
	c.slots("run/T3/work (ada-3) in 0", "run/T1/work (ada-1) in 1", "run/T2/work (ada-2) in 2")
	for _, id := range []string{"T1", "T2", "T3"} {
		c.stepStarts(id, "work")
	}
	fewer := quiet
	fewer.Instances = 2
	c.must("", Configured{Agents: map[string]Settings{"ada": fewer, "bob": quiet}})
	c.does("T3", "work", good, control.OK)
	c.slots("run/T1/work (ada-1) in 1", "run/T2/work (ada-2) in 2")
	c.wants("ada", "run_once")
	if why := c.ControlWaits("ada"); why != "it waits in the queue behind run/T1/work (ada-1), run/T2/work (ada-2), run/T4/work" {
		t.Errorf("control: %s", why)
	}
	c.does("T2", "work", good, control.OK)
	c.slots("run/T4/work (ada-4) in 0", "run/T1/work (ada-1) in 1")
	fewer.Instances = 0
	c.must("", Configured{Agents: map[string]Settings{"ada": fewer, "bob": quiet}})
	c.stepStarts("T4", "work")
	c.does("T4", "work", good, control.OK)
	c.slots("run/T1/work (ada-1) in 1")
	c.does("T1", "work", good, control.OK)
	c.slots("control (ada-5) in 0")
}

// TestInstancesShareUsage checks that the data of an agent counts for all of its sessions.
func TestInstancesShareUsage(t *testing.T) {
	c := threeAdas(t, Limits{CostPerDayUSD: 10})
	c.wants("ada", "continuous")
	c.runs("T1", ownFolder, "work ada")
	c.runs("T2", ownFolder, "work ada")
	control0, extra := c.starts("ada"), c.sit("T2", "work").ID
	c.must("ada", TokenGiven{Session: extra, Hash: "h"})
	c.stepStarts("T1", "work")
	c.stepStarts("T2", "work")
	if hashes := c.sit("T2", "work").TokenHashes; len(hashes) != 1 || c.sit("T1", "work").TokenHashes != nil {
		t.Errorf("the token belongs to %v", hashes)
	}
	c.must("ada", ConversationNamed{Session: extra, Conversed: Conversed{ID: "c2"}})
	if conversation := c.Agents["ada"].Conversations[ForStep("T2", "work")]; conversation == nil || conversation.ID != "c2" || conversation.Session != extra {
		t.Errorf("its conversation is %+v", conversation)
	}
	ask := question.Ask{Question: question.Question{
		Kind: question.Permission, Agent: "ada", Session: extra, Ask: "1", Tool: "Bash", Call: "rm",
		Options: []question.Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}},
	}, Verdict: question.Verdict{Rule: "deny Bash(rm)"}}
	c.must("", ask)
	if s := c.sit("T2", "work"); s.Denied != 1 || c.Agents["ada"].Session.Denied != 0 {
		t.Errorf("%d calls were denied in slot %d", s.Denied, s.Slot)
	}
	c.must("ada", SessionReported{Session: extra, Offset: 5, Usage: change.Usage{CostUSD: 6}})
	c.must("ada", SessionReported{Session: control0, Offset: 5, Usage: change.Usage{CostUSD: 3}})
	if a := c.Agents["ada"]; a.Usage.CostUSD != 9 || a.Days[0].Sessions != 3 || c.Notes["T2"].Usage.CostUSD != 6 {
		t.Errorf("usage: %+v, %+v", a.Usage, c.Notes["T2"])
	}
	c.runs("T3", ownFolder, "work ada")
	// X9: the limit applies to all its sessions together
	c.must("ada", SessionReported{Session: extra, Offset: 9, Usage: change.Usage{CostUSD: 2}})
	c.steps("T1", "work:FAILED")
	c.steps("T2", "work:FAILED")
	for _, s := range c.Agents["ada"].Sessions() {
		if s.Ending == "" {
			t.Errorf("%s continues over the limit", s.ID)
		}
	}
	c.ends("ada", control.OK)
	c.says("ada", control.Resting, "pause")
}

// R1: no slot begins a session during the provider's limit, and an instance that succeeds does not
// lift it.
func TestInstancesWaitForTheProvider(t *testing.T) {
	c := threeAdas(t, Limits{})
	for _, id := range []string{"T1", "T2", "T3", "T4"} {
		c.runs(id, ownFolder, "work ada")
	}
	for _, id := range []string{"T1", "T2", "T3"} {
		c.stepStarts(id, "work")
	}
	until := c.at.Add(time.Hour)
	limited := func(id string, until time.Time) {
		t.Helper()
		c.must("ada", SessionEnded{Session: c.sit(id, "work").ID, Outcome: control.RateLimited, Why: "429", Until: until})
	}
	limited("T2", until)
	c.slots("run/T3/work (ada-3) in 0", "run/T1/work (ada-1) in 1")
	limited("T3", time.Time{}) // an estimate does not shorten the provider's time
	if l := c.Agents["ada"].Limited; !l.Until.Equal(until) || l.Times != 1 || !l.Stated {
		t.Errorf("it waits %+v", l)
	}
	c.does("T1", "work", good, control.OK)
	if l := c.Agents["ada"].Limited; !l.Until.Equal(until) {
		t.Errorf("a session that ended well lifts the limit: %+v", l)
	}
	c.slots()
	if why := c.StepWaits("T4", "work"); !strings.HasPrefix(why, "it waits in the queue behind its provider: rate limited until") {
		t.Errorf("T4: %s", why)
	}
	c.at = until
	c.must("ada", TimerFired{})
	if n := len(c.Agents["ada"].Sessions()); n != 3 {
		t.Errorf("%d sessions begin after it", n)
	}
}

// TestInstancesStop checks that the hold, a disabled agent, a time limit and a stop apply to every
// slot.
func TestInstancesStop(t *testing.T) {
	c := threeAdas(t, Limits{Session: time.Hour})
	c.must("", Configured{
		Agents: map[string]Settings{"ada": c.Agents["ada"].Settings}, Turns: map[string]channel.AgentSettings{"ada": {}},
		Channels: map[string]Channel{"reviews": {Settings: channel.DefaultSettings(), Agents: []string{"ada"}}},
	})
	c.must("", HoldAsked{})
	c.runs("T1", ownFolder, "work ada")
	c.slots()
	c.must("", ReleaseAsked{})
	c.slots("run/T1/work (ada-1) in 1")
	if ok, why := c.MayStart("ada", "ada-1", c.at); !ok {
		t.Errorf("it may not start: %s", why)
	}
	c.must("", HoldAsked{})
	if ok, why := c.MayStart("ada", "ada-1", c.at); ok || why != "the team is held" {
		t.Errorf("under a hold it may start: %v, %s", ok, why)
	}
	c.must("", ReleaseAsked{})
	c.must("", channel.DisableAsked{Agent: "ada"})
	c.runs("T2", ownFolder, "work ada")
	c.slots("run/T1/work (ada-1) in 1")
	c.must("", channel.EnableAsked{Agent: "ada"})
	c.slots("run/T1/work (ada-1) in 1", "run/T2/work (ada-2) in 2")
	c.stepStarts("T1", "work")
	c.stepStarts("T2", "work")
	if at := c.Deadline(c.Agents["ada"]); !at.Equal(c.sit("T1", "work").StartedAt.Add(time.Hour)) {
		t.Errorf("next deadline %s", at)
	}
	c.at = c.at.Add(time.Hour)
	c.must("ada", TimerFired{})
	if s := c.sit("T1", "work"); s.Ending == "" {
		t.Errorf("its time limit has passed, but it continues: %+v", s)
	}
	if _, err := c.try("ada", EndAsked{}); err == nil ||
		!strings.Contains(err.Error(), "its sessions do step work of run T1, step work of run T2; cancel one") {
		t.Errorf("the order to end returns %v", err)
	}
	c.must("", StopAsked{})
	c.must("", StopAsked{Now: true})
	for _, s := range c.Agents["ada"].Sessions() {
		if !s.Now || s.Slot == 0 {
			t.Errorf("it is not to end now: %+v", s)
		}
	}
	if c.Idle() {
		t.Error("idle, with sessions in slots above 0")
	}
}

// TestInstancesAreAdopted checks that a restart finds the sessions of all slots, and that a
// snapshot has them.
func TestInstancesAreAdopted(t *testing.T) {
	c := threeAdas(t, Limits{})
	c.wants("ada", "run_once")
	c.runs("T1", ownFolder, "work ada")
	c.runs("T2", ownFolder, "work ada")
	c.starts("ada")
	c.stepStarts("T1", "work")
	text, err := json.Marshal(c.Team)
	if err != nil {
		t.Fatal(err)
	}
	again := New(nil)
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Agents["ada"], again.Agents["ada"], cmpopts.IgnoreUnexported(Agent{})); diff != "" {
		t.Errorf("the snapshot holds another agent:\n%s", diff)
	}
	c.must("", DaemonStarted{})
	c.must("ada", SessionAdopted{Session: "ada-2", PID: 7})
	if s := c.sit("T1", "work"); s.PID != 7 || c.Agents["ada"].Session.PID == 7 {
		t.Errorf("adopted is %+v", s)
	}
	c.must("ada", SessionEnded{Session: "ada-3", Outcome: control.Lost, AtStart: true})
	if s := c.sit("T2", "work"); s.ID != "ada-4" || s.Slot != 2 { // another attempt
		t.Errorf("lost, and now %+v", s)
	}
}

// A task that goes on, because it was sent back or told something, is before the tasks that were not begun. What is not a task keeps its
// place.
func TestBegunTasksFirst(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	team := *c.Team
	team.Notes = map[string]RunMeta{}
	for _, run := range []string{"T1", "T2", "T3", "T4"} {
		team.Notes[run] = RunMeta{Settings: ownFolder}
	}
	for name, tc := range map[string]struct {
		queue []Request
		is    Request
		at    int
	}{
		"begun": {
			[]Request{
				{For: ForControl},
				{For: ForStep("r", "a"), N: 1},
				{For: ForStep("T1", "work"), N: 2},
				{For: ForStep("T2", "work"), N: 1},
				{For: ForControl},
			},
			Request{For: ForStep("T3", "work"), N: 3},
			3,
		},
		"not begun":          {[]Request{{For: ForStep("T2", "work"), N: 1}}, Request{For: ForStep("T3", "work"), N: 1}, 1},
		"not a task":         {[]Request{{For: ForStep("T2", "work"), N: 1}}, Request{For: ForStep("r", "a"), N: 4}, 1},
		"control":            {[]Request{{For: ForStep("T2", "work"), N: 1}}, Request{For: ForControl}, 1},
		"nothing waits":      {nil, Request{For: ForStep("T3", "work"), N: 3}, 0},
		"only begun ones do": {[]Request{{For: ForStep("T1", "work"), N: 2}}, Request{For: ForStep("T3", "work"), N: 3}, 1},
	} {
		a := *team.Agents["ada"]
		a.Queue = tc.queue
		d := &decision{team: &team}
		if err := d.request(&a, tc.is); err != nil {
			t.Fatal(err)
		}
		if len(a.Queue) != len(tc.queue)+1 || a.Queue[tc.at].For != tc.is.For {
			t.Errorf("%s: %v", name, a.Queue)
		}
	}
}
