package machinetest

import (
	"slices"
	"strings"
	"testing"

	machine "github.com/fairlead-dev/fairlead/core/table"
)

func TestMissing(t *testing.T) {
	c := NewCoverage()
	table := Table{Rows: []machine.Row{{ID: "A1", From: "open", On: "shut"}, {ID: "A2", From: "open", On: "locked"}}}
	c.Row("A1")
	c.Pair("", "open", "shut")
	want := []string{"A2: locked in open", "row A2"}
	if got := c.Missing(IDs(table), table); !slices.Equal(got, want) {
		t.Errorf("missing %q, want %q", got, want)
	}
	if got := c.Missing(nil, Table{Name: "of runs", Rows: table.Rows[:1]}); len(got) != 1 {
		t.Errorf("a pair of one table counts for another: %q", got)
	}
}

func TestPlay(t *testing.T) {
	var out strings.Builder
	play := func(script string) string {
		return Play(script, &out, func(line string) bool { out.WriteString("> " + line + "\n"); return line != "quiet" },
			func() { out.WriteString("end\n") })
	}
	got := play("# a comment\none\n----\nold result\n\nquiet\n")
	if want := "# a comment\none\n----\n> one\nend\n\nquiet\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := play(got); again != got {
		t.Errorf("played again: %q", again)
	}
}

func TestFields(t *testing.T) {
	got := Fields(`says "two words" why="two more" {"a":1} open"`)
	if want := []string{"says", "two words", "why=two more", `{"a":1}`, `open"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNext(t *testing.T) {
	at, words := Next(Noon, []string{"13:00:05", "tick"})
	if at.Format("15:04:05") != "13:00:05" || len(words) != 1 {
		t.Errorf("got %s %q", at, words)
	}
	if at, words = Next(Noon, []string{"tick"}); at.Sub(Noon).Seconds() != 1 || len(words) != 1 {
		t.Errorf("got %s %q", at, words)
	}
}
