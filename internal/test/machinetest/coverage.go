package machinetest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	machine "github.com/fairlead-dev/fairlead/core/table"
)

// Coverage counts which rows and pairs the tests of a package used. Use NewCoverage.
type Coverage struct {
	rows  map[string]int
	pairs map[pair]int
}

// pair is an event in a state of one table. A package with one table leaves table empty.
type pair struct{ table, state, event string }

// NewCoverage returns an empty count.
func NewCoverage() *Coverage { return &Coverage{map[string]int{}, map[pair]int{}} }

// Row counts a row by its id.
func (c *Coverage) Row(id string) { c.rows[id]++ }

// Pair counts an event in a state of a table.
func (c *Coverage) Pair(table, state, event string) { c.pairs[pair{table, state, event}]++ }

// Table is one table whose rows the tests must use. Name is empty in a package with one table.
type Table struct {
	Name string
	Rows []machine.Row
}

// Main runs the tests and exits. If all tests ran and passed, it also fails for each pair of
// tables, and for each row id in rows, that no test used.
func (c *Coverage) Main(m *testing.M, rows []string, tables ...Table) {
	flag.Parse()
	code := m.Run()
	if missing := c.Missing(rows, tables...); code == 0 && !filtered() && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "no test of this package uses:\n  %s\n", strings.Join(missing, "\n  "))
		code = 1
	}
	os.Exit(code)
}

// Missing lists the pairs of tables and the row ids that were not counted.
func (c *Coverage) Missing(rows []string, tables ...Table) []string {
	var missing []string
	for _, table := range tables {
		for _, row := range table.Rows {
			if c.pairs[pair{table.Name, row.From, row.On}] == 0 {
				missing = append(missing, strings.TrimSpace(fmt.Sprintf("%s: %s in %s %s", row.ID, row.On, row.From, table.Name)))
			}
		}
	}
	rows = slices.Clone(rows)
	slices.Sort(rows)
	for _, id := range slices.Compact(rows) {
		if c.rows[id] == 0 {
			missing = append(missing, "row "+id)
		}
	}
	return missing
}

// IDs returns the ids of the rows of tables, for Main.
func IDs(tables ...Table) []string {
	var ids []string
	for _, table := range tables {
		for _, row := range table.Rows {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// Numbered returns prefix1 to prefixN, as the specification numbers its rows.
func Numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(prefix, i+1)
	}
	return ids
}

// filtered reports whether the command line selects only some of the tests.
func filtered() bool {
	return slices.ContainsFunc([]string{"test.run", "test.skip", "test.list", "test.fuzz"}, func(name string) bool {
		return flag.Lookup(name).Value.String() != ""
	})
}
