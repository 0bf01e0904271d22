// Package machine is the kernel that all state machines of Fairlead stand on.
//
// A machine is a table: from a state, on an event, by a rule, to a state. The
// table is a nested map literal, so there is one place to read what may happen,
// the compiler refuses a second rule for a pair, and what is absent is refused.
// From the same table come the matrix that tests compare, the diagram that people
// read and the words of a refusal. Nothing here knows a clock, a file or a lock.
//
// The one promise: what is not a row of the table does not happen.
package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rule is one row: what an event leads to in a state.
type Rule[S, A ~string] struct {
	ID  string // the SPEC row, as in C8
	To  S      // the state afterwards; the state before, where nothing but data changes
	Do  []A    // what the machine does with its data on the way, in order
	Why string // the reason, where the row does not explain itself
}

// Table is a whole machine: state → event → rule.
type Table[S, E, A ~string] map[S]map[E]Rule[S, A]

// Do makes the list of a rule's acts; it only saves a line of type names in a table.
func Do[A ~string](acts ...A) []A { return acts }

// Look finds the rule for an event in a state, or says why there is none.
func (t Table[S, E, A]) Look(subject string, state S, event E) (Rule[S, A], error) {
	if rule, ok := t[state][event]; ok {
		return rule, nil
	}
	return Rule[S, A]{}, &Refusal{Subject: subject, Event: string(event), State: string(state), Takes: Names(t[state])}
}

// States lists every state that the table names, as a source or as a target.
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

// Events lists every event that some state takes.
func (t Table[S, E, A]) Events() []E {
	seen := map[E]bool{}
	for _, rules := range t {
		for event := range rules {
			seen[event] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Row is a rule with the pair that it stands for.
type Row struct {
	ID   string   `json:"id"`
	From string   `json:"from"`
	On   string   `json:"event"`
	To   string   `json:"to"`
	Do   []string `json:"do"`
	Why  string   `json:"why,omitempty"`
}

// Rows lists the table row by row: by id (C2 before C10), then state, then event.
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

// compareIDs orders C2 before C10: by letters, then by number.
func compareIDs(a, b string) int {
	return cmp.Or(
		cmp.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")),
		cmp.Compare(len(a), len(b)),
		cmp.Compare(a, b))
}

// Matrix prints every pair of a state and an event, absent ones as a dot, for a golden file:
// whoever adds or removes a row sees in the diff which pairs he changed.
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

// Mermaid draws the table as a Mermaid state diagram. Pairs that lead between the
// same two states share an arrow; rows that stay where they are share a loop.
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

// Names lists a map's keys in order, as plain strings.
func Names[K ~string, V any](m map[K]V) []string {
	names := make([]string, 0, len(m))
	for key := range m {
		names = append(names, string(key))
	}
	slices.Sort(names)
	return names
}
