package team

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// TestRunWaitsForOthers checks that no step of a run starts or requests a slot before all runs that
// it waits for have completed.
func TestRunWaitsForOthers(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("first", RunSettings{}, "one ada")
	c.runs("second", RunSettings{}, "one bob")
	c.runs("both", RunSettings{After: []string{"first", "second"}}, "one ada", "two !")
	c.steps("both", "one:PENDING two:PENDING")
	if why := c.StepWaits("both", "two"); why != "it waits until first and second has completed" {
		t.Errorf("it waits for %q", why)
	}
	if len(c.Agents["ada"].Queue) > 0 {
		t.Errorf("a step that may not start is queued: %+v", c.Agents["ada"].Queue)
	}
	c.stepStarts("first", "one")
	c.does("first", "one", good, control.OK)
	c.steps("both", "one:PENDING two:PENDING")

	// A cancelled run blocks until it is resumed and has completed. It is not archived meanwhile.
	c.stepStarts("second", "one")
	c.ofRun("second", workflow.CancelAsked{By: "ann"})
	c.does("second", "one", nil, control.Failed)
	c.steps("both", "one:PENDING two:PENDING")
	if _, err := c.event(Event{Run: "second", What: RunArchived{}}); err == nil ||
		!strings.Contains(err.Error(), "run both waits until it has completed") {
		t.Errorf("archived: %v", err)
	}
	c.ofRun("second", workflow.ResumeAsked{By: "ann", From: "one"})
	c.stepStarts("second", "one")
	c.does("second", "one", good, control.OK)
	c.steps("both", "one:RUNNING two:RUNNING")
	c.replays()

	for _, after := range []string{"none", "fourth"} {
		asked := RunBegun{
			Asked:    workflow.RunAsked{ID: "fourth", Plan: plan("one ada"), Options: often, By: "ann"},
			Settings: RunSettings{After: []string{after}},
		}
		if _, err := c.event(Event{Run: "fourth", What: asked}); err == nil || !strings.Contains(err.Error(), "no such run") {
			t.Errorf("after %s: %v", after, err)
		}
	}
	many := RunBegun{
		Asked:    workflow.RunAsked{ID: "fourth", Plan: plan("one ada"), Options: often, By: "ann"},
		Settings: RunSettings{After: make([]string, afterMax+1)},
	}
	if _, err := c.event(Event{Run: "fourth", What: many}); err == nil || !strings.Contains(err.Error(), "16 are possible") {
		t.Errorf("too many: %v", err)
	}
}
