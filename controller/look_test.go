package controller

import (
	"testing"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
)

// A look in the batch of a change sees what the controllers have noted of the change, too: for example, that a file
// has to be written.
func TestLookSeesWhatFollowsFromAChange(t *testing.T) {
	e, next := commandsLoop(t)
	noted := false
	e.Register(loop.Hooks{Spread: func(*loop.Touched) { noted = true }})
	saw := false
	if err := e.Step(t.Context(), []loop.Request{{Event: next(0)}, {Look: func(tm *team.Team) {
		if noted {
			saw = tm.Agents["a0"] != nil
		}
	}}}); err != nil {
		t.Fatal(err)
	}
	if !saw {
		t.Error("it saw the team before that")
	}
}
