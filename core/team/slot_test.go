package team

import (
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
)

// SPEC X8: the hold prevents all starts, survives a restart, and lets running sessions finish. A
// session that was opened and not started is withdrawn.
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
		t.Errorf("a second hold causes %+v", changes)
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
		t.Errorf("a second release causes %+v", changes)
	}
}

// SPEC J1: one session at a time. While one is open no other one is opened, and its start is the
// same action each time the actions are derived.
func TestOneSessionAtATime(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	if !slices.ContainsFunc(slices.Collect(c.Actions(c.Agents["ada"])), func(action Action) bool { return action.Key == "start/ada-1" }) {
		t.Errorf("its session has no start action: %+v", slices.Collect(c.Actions(c.Agents["ada"])))
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
			t.Error("a second session does not count as a bug")
		}
	}()
	a := *c.Agents["ada"]
	_ = (&decision{team: c.Team}).openSession(&a, Session{Kind: control.Work, For: ForControl})
}

// SPEC J2, with only control requesting sessions: a pause ends no session and lets no further one
// begin. Hold and limits stop every requester.
func TestPauseStopsControlSessions(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	c.wants("ada", "pause")
	if ok, why := c.MayStart("ada", "ada-1", c.at); ok || why != "desired_state is pause now" {
		t.Errorf("a paused agent may start: %v, %q", ok, why)
	}
	// Every machine may request the slot. Control cannot pause a session of another machine.
	turn := *c.Agents["ada"].Session
	turn.For = Purpose{Kind: "turn"}
	c.Agents["ada"].Session = &turn
	if ok, why := c.MayStart("ada", "ada-1", c.at); !ok {
		t.Errorf("pause stops a turn: %s", why)
	}
	c.must("", HoldAsked{})
	if ok, _ := c.MayStart("ada", "ada-1", c.at); ok {
		t.Error("hold does not stop a turn")
	}
}

// SPEC J5: the badge depends only on current_state.
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

// C14 with a second signal: sessions and programs that were begun are ended.
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
		t.Errorf("a third signal causes %+v", changes)
	}
	if c.Idle() {
		t.Error("idle, with sessions open")
	}
	c.ends("ada", control.Failed)
	c.ends("bob", control.Withdrawn)
	c.ends("dora", control.OK)
	if !c.Idle() {
		t.Error("not idle although no session is open")
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

// TestProgramNoLongerConfigured checks that a program that is no longer configured is ended, and
// that Fairlead's loop then runs the agent.
func TestProgramNoLongerConfigured(t *testing.T) {
	program := quiet
	program.Policy.Foreign, program.Policy.Program = true, true
	c := newCrew(t, Limits{}, map[string]Settings{"dora": program})
	c.starts("dora")
	c.wants("dora", "continuous")
	c.must("", Configured{Agents: map[string]Settings{"dora": quiet}})
	if s := c.Agents["dora"].Session; s.Ending != "its program is no longer configured" {
		t.Errorf("it still runs: %+v", s)
	}
	c.ends("dora", control.OK)
	c.says("dora", control.Continuous, "continuous")
	if s := c.Agents["dora"].Session; s.Kind != control.Work {
		t.Errorf("the open session is %+v", s)
	}
}
