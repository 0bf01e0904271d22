package team

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// TestShellIsRecorded checks that a person's shell is one record of its agent or of its run (E7), and changes nothing else.
func TestShellIsRecorded(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{Wrapped: true}, "pack !")
	by := change.Actor{Kind: "human", ID: "anna"}
	for _, at := range []struct{ agent, run, entity string }{{"ada", "", "agent/ada"}, {"", "r", "run/r"}} {
		before, _ := json.Marshal(c.Team)
		for _, what := range []Shell{ShellOpened, ShellEnded} {
			changes, err := c.Decide(Event{At: time.Unix(9, 0), Actor: by, Agent: at.agent, Run: at.run, What: what})
			if err != nil || len(changes) != 1 {
				t.Fatalf("%s of %s: %v, %v", what, at.entity, changes, err)
			}
			if ch := changes[0]; ch.Entity != at.entity || ch.Row != "E7" || ch.Trigger != string(what) || ch.Actor != by {
				t.Errorf("%s of %s is %+v", what, at.entity, ch)
			}
			c.Apply(changes[0])
		}
		if after, _ := json.Marshal(c.Team); string(after) != string(before) {
			t.Errorf("a shell of %s changes the team:\n%s\n%s", at.entity, before, after)
		}
	}
	if _, err := c.Decide(Event{Agent: "eve", What: ShellOpened}); !errors.As(err, new(*Unknown)) {
		t.Errorf("of an agent that there is not: %v", err)
	}
}
