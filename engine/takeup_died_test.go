package engine

import (
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// A program that died in the middle of its work is gone on with, whether its adapter could still say so
// or died with it; one that failed by itself begins anew.
func TestTakesUpWhatDied(t *testing.T) {
	for name, c := range map[string]struct {
		stop *team.Stop
		want bool
	}{
		"all died":         {nil, true},
		"the program died": {&team.Stop{Reason: "died"}, true},
		"it failed":        {&team.Stop{Reason: "failed"}, false},
	} {
		a := &team.Agent{Past: []team.Session{{ID: "a-1", For: forControl, Outcome: control.Failed, Stop: c.stop}}}
		got, cut, _ := takesUp(a, &team.Session{ID: "a-2", For: forControl}, &team.Conversation{Session: "a-1", For: forControl}, config.ResumeInterrupted)
		if got != c.want || cut != c.want {
			t.Errorf("%s: %t, cut %t; want %t", name, got, cut, c.want)
		}
	}
}
