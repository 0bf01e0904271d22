package team

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/table"
)

// TestEndAsked checks that a person can end one session: with a grace period at the first request
// and without one at the second. An agent whose desired state is pause stays paused.
func TestEndAsked(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"ada": quiet, "bob": quiet})
	refused := func(agent, words string) {
		t.Helper()
		_, err := c.try(agent, EndAsked{})
		var no *table.Refusal
		if !errors.As(err, &no) || !strings.Contains(no.Error(), words) {
			t.Errorf("%s: %v; want a refusal with %q", agent, err, words)
		}
	}
	refused("ada", "no session of it runs")

	c.wants("ada", "continuous")
	c.starts("ada")
	c.wants("ada", "pause")
	for _, now := range []bool{false, true} {
		c.must("ada", EndAsked{})
		if s := c.Agents["ada"].Session; s.Ending != "ended by test" || s.Now != now {
			t.Errorf("asked: %q, now %v; want %v", s.Ending, s.Now, now)
		}
	}
	if changes := c.must("ada", EndAsked{}); len(changes) != 0 {
		t.Errorf("asked a third time: %v", changes)
	}
	c.ends("ada", control.Failed)
	if a := c.Agents["ada"]; a.Session != nil || a.Control.State != control.Resting || a.Past[len(a.Past)-1].Outcome != control.Cancelled {
		t.Errorf("after its end: %+v", a)
	}

	// An agent whose desired state is continuous is started again, because the order is for one
	// session.
	c.wants("bob", "continuous")
	first := c.starts("bob")
	c.must("bob", EndAsked{})
	c.ends("bob", control.Failed)
	if second := c.session("bob"); second == first || c.Agents["bob"].Control.Failures != 0 {
		t.Errorf("%s after %s, %d failures", second, first, c.Agents["bob"].Control.Failures)
	}
}

// TestEndAskedOfStep checks that a step's session can only be ended by a command on its run.
func TestEndAskedOfStep(t *testing.T) {
	c := newCrew(t, Limits{}, map[string]Settings{"ada": quiet})
	c.runs("r1", RunSettings{}, "build ada")
	_, err := c.try("ada", EndAsked{})
	if err == nil || !strings.Contains(err.Error(), "fairlead run cancel r1 build") {
		t.Errorf("%v", err)
	}
}
