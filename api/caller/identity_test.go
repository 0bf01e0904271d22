package caller

import (
	"errors"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
)

// SPEC X10: which caller may give which order. "coder" is the agent of the orders.
func TestCallerMayOrder(t *testing.T) {
	orders := []struct {
		name string
		may  func(Identity) error
	}{
		{"start coder", func(c Identity) error { return c.MayOrder("wanted_continuous", "coder") }},
		{"release the team", func(c Identity) error { return c.MayOrder("release", "") }},
		{"lift coder's limit", func(c Identity) error { return c.MayOrderAgent("limit_lifted", "coder") }},
		{"run", func(c Identity) error { return c.MayOrderRun("resume", "r1") }},
		{"channel", func(c Identity) error { return c.MayOrderChannel("grant", "#reviews") }},
		{"crew", func(c Identity) error { return c.MayOrderCrew("wake") }},
		{"dispatch", func(c Identity) error { return c.MayOrderDispatch("end", "quay") }},
		{"answer", func(c Identity) error { return c.MayAnswer("replied", "q1") }},
		{"speak as coder", func(c Identity) error { return c.MayActAs("said", "coder") }},
	}
	for _, caller := range []struct {
		name string
		is   Identity
		may  string // one letter for each order: y or n
	}{
		{"a person or a foreign agent", Identity{}, "yyyyyyyyy"},
		{"coder itself", Identity{Session: "coder-17"}, "nnnnnnnny"},
		{"another agent", Identity{Session: "reviewer-3"}, "ynnnnnnnn"},
		{"an agent with a longer name", Identity{Session: "coder-x-3"}, "ynnnnnnnn"},
		{"a step of a run", Identity{Session: "build@r1-2"}, "nnnnnnnnn"},
		{"a step that is called like the agent", Identity{Session: "coder@r1-2"}, "nnnnnnnnn"},
		{"a process that has ended", Identity{Unknown: true}, "nnnnnnnnn"},
		{"a process that has ended, in a session", Identity{Session: "reviewer-3", Unknown: true}, "nnnnnnnnn"},
	} {
		for i, order := range orders {
			err := order.may(caller.is)
			if may := caller.may[i] == 'y'; may != (err == nil) {
				t.Errorf("%s, %s: %v", caller.name, order.name, err)
			}
			var no *table.Refusal
			if err != nil && (!errors.As(err, &no) || no.Row != "X10" || no.Reason == "" || no.State == "") {
				t.Errorf("%s, %s: %#v", caller.name, order.name, err)
			}
		}
	}
}
