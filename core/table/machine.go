// Package table is the kernel of all state machines of Fairlead.
//
// A machine is a table of rules: in a state, an event leads by a rule to a state. The table is a
// nested map literal, so the compiler rejects two rules for one pair. A pair without a rule is
// refused. The same table produces the matrix that tests compare, the diagrams, and the text of
// refusals. The package uses no clock, file or lock.
//
// The one promise: a transition that is not a row of the table does not happen.
package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Rule is one row: what an event leads to in a state.
type Rule[S, A ~string] struct {
	ID  string // the SPEC row, such as C8
	To  S      // the next state; the same state if only data changes
	Do  []A    // the changes to the machine's data, in order
	Why string // the reason, if the row does not explain itself
}

// Table is a complete machine: state → event → rule.
type Table[S, E, A ~string] map[S]map[E]Rule[S, A]

// Do returns the list of a rule's acts; it shortens the table.
func Do[A ~string](acts ...A) []A { return acts }

// Look finds the rule for an event in a state, or returns a refusal.
func (t Table[S, E, A]) Look(subject string, state S, event E) (Rule[S, A], error) {
	if rule, ok := t[state][event]; ok {
		return rule, nil
	}
	return Rule[S, A]{}, &Refusal{Subject: subject, Event: string(event), State: string(state), Takes: Names(t[state])}
}

// States lists all states of the table, sources and targets.
func (t Table[S, E, A]) States() []S {
	seen := map[S]bool{}
	for from, rules := range t {
		seen[from] = true
		for _, rule := range rules {
			seen[rule.To] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Events lists all events of the table.
func (t Table[S, E, A]) Events() []E {
	seen := map[E]bool{}
	for _, rules := range t {
		for event := range rules {
			seen[event] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Row is a rule with its state and event.
type Row struct {
	ID   string   `json:"id" doc:"The id that changes in the journal name"`
	From string   `json:"from" doc:"The state before"`
	On   string   `json:"event" doc:"What happens"`
	To   string   `json:"to" doc:"The state afterwards"`
	Do   []string `json:"do" doc:"The actions of the transition, in order"`
	Why  string   `json:"why,omitempty" doc:"The reason, if the row does not explain itself"`
}

// Rows lists the rows of the table by ID (C2 before C10), then by state and event.
func (t Table[S, E, A]) Rows() []Row {
	rows := []Row{}
	for from, rules := range t {
		for event, rule := range rules {
			acts := make([]string, 0, len(rule.Do))
			for _, act := range rule.Do {
				acts = append(acts, string(act))
			}
			rows = append(rows, Row{ID: rule.ID, From: string(from), On: string(event), To: string(rule.To), Do: acts, Why: rule.Why})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(compareIDs(a.ID, b.ID), cmp.Compare(a.From, b.From), cmp.Compare(a.On, b.On))
	})
	return rows
}

// compareIDs sorts C2 before C10: by letters, then by number.
func compareIDs(a, b string) int {
	return cmp.Or(
		cmp.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")),
		cmp.Compare(len(a), len(b)),
		cmp.Compare(a, b))
}

// Matrix formats all pairs of states and events, with a dot for missing ones, for a golden file: its
// diff shows which pairs a changed row affects.
func (t Table[S, E, A]) Matrix() string {
	var out strings.Builder
	for _, event := range t.Events() {
		fmt.Fprintf(&out, "%s\n", event)
		for _, state := range t.States() {
			rule, ok := t[state][event]
			if !ok {
				fmt.Fprintf(&out, "  %-14s .\n", state)
				continue
			}
			line := fmt.Sprintf("  %-14s -> %-14s %-4s", state, rule.To, rule.ID)
			for _, act := range rule.Do {
				line += " " + string(act)
			}
			fmt.Fprintln(&out, strings.TrimRight(line, " "))
		}
	}
	return out.String()
}

// Mermaid draws the table as a Mermaid state diagram. Pairs with the same two states share an arrow;
// rows that keep the state share a loop.
func (t Table[S, E, A]) Mermaid() string {
	type arrow struct{ from, to string }
	labels := map[arrow][]string{}
	for _, row := range t.Rows() {
		between := arrow{row.From, row.To}
		label := row.ID + " " + row.On
		if !slices.Contains(labels[between], label) {
			labels[between] = append(labels[between], label)
		}
	}
	arrows := slices.SortedFunc(maps.Keys(labels), func(a, b arrow) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	var out strings.Builder
	out.WriteString("stateDiagram-v2\n")
	for _, a := range arrows {
		fmt.Fprintf(&out, "    %s --> %s: %s\n", a.from, a.to, strings.Join(labels[a], "<br/>"))
	}
	return out.String()
}

// Names lists a map's keys in order, as strings.
func Names[K ~string, V any](m map[K]V) []string {
	names := make([]string, 0, len(m))
	for key := range m {
		names = append(names, string(key))
	}
	slices.Sort(names)
	return names
}

// Earliest returns the first of some deadlines; a zero time is none.
func Earliest(times ...time.Time) (first time.Time) {
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
