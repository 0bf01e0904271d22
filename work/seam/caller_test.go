package seam

import (
	"errors"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
)

// SPEC X10: which caller may give which order. "coder" is the agent of the orders.
func TestCallerMayOrder(t *testing.T) {
	orders := []struct {
		name string
		may  func(Caller) error
	}{
		{"start coder", func(c Caller) error { return c.MayOrder("wanted_continuous", "coder") }},
		{"release the team", func(c Caller) error { return c.MayOrder("release", "") }},
		{"lift coder's limit", func(c Caller) error { return c.MayOrderAgent("limit_lifted", "coder") }},
		{"run", func(c Caller) error { return c.MayOrderRun("resume", "r1") }},
		{"channel", func(c Caller) error { return c.MayOrderChannel("grant", "#reviews") }},
		{"crew", func(c Caller) error { return c.MayOrderCrew("wake") }},
		{"dispatch", func(c Caller) error { return c.MayOrderDispatch("end", "quay") }},
		{"answer", func(c Caller) error { return c.MayAnswer("replied", "q1") }},
		{"speak as coder", func(c Caller) error { return c.MayActAs("said", "coder") }},
	}
	for _, caller := range []struct {
		name string
		is   Caller
		may  string // one letter for each order: y or n
	}{
		{"a person or a foreign agent", Caller{}, "yyyyyyyyy"},
		{"coder itself", Caller{Session: "coder-17"}, "nnnnnnnny"},
		{"another agent", Caller{Session: "reviewer-3"}, "ynnnnnnnn"},
		{"an agent with a longer name", Caller{Session: "coder-x-3"}, "ynnnnnnnn"},
		{"a step of a run", Caller{Session: "build@r1-2"}, "nnnnnnnnn"},
		{"a step that is called like the agent", Caller{Session: "coder@r1-2"}, "nnnnnnnnn"},
		{"a process that has ended", Caller{Unknown: true}, "nnnnnnnnn"},
		{"a process that has ended, in a session", Caller{Session: "reviewer-3", Unknown: true}, "nnnnnnnnn"},
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
