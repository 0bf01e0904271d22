package server

import (
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/change"
)

// What an agent did is in changes of several machines.
func TestChangeAbout(t *testing.T) {
	for _, c := range []struct {
		entity, machine, actor, data string
		want                         bool
	}{
		{"session/coder", "session", "", "", true},
		{"session/coder/2", "session", "", "", true},
		{"control/coder", "control", "", "{", true},
		{"question/q1", "question", "", `{"question":{"question":{"agent":"coder"}}}`, true},
		{"question/q1", "question", "", `{`, false},
		{"channel/quay", "turn", "", `{"turn":{"agent":"coder"}}`, true},
		{"run/r1", "workflow", "coder", `{}`, true},
		{"session/ada", "session", "ada", `{"turn":{"agent":"coder"}}`, false},
		{"session/coder-2", "session", "", "", false},
		{"run/coder", "run", "", `7`, false},
	} {
		ch := api.Change{Entity: c.entity, Machine: c.machine, Actor: change.Actor{Kind: "agent", ID: c.actor}, Data: api.Raw(c.data)}
		if ch.About("coder") != c.want || !ch.About("") {
			t.Errorf("%+v: %t", ch, !c.want)
		}
	}
}
