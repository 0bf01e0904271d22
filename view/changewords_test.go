package view

import (
	"cmp"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// Every event of every machine is said in plain words, on the page and by `fairlead events` alike.
func TestEveryChangeHasWords(t *testing.T) {
	named := map[string]string{"lead": "presence", "message": "turn"} // the machines that changes name
	for _, m := range Machines() {
		for _, row := range m.Rows {
			if changeWords[cmp.Or(named[m.Name], m.Name)][row.On] == "" {
				t.Errorf("%s: %s (%s) has no words", m.Name, row.On, row.ID)
			}
		}
	}
	golden.Check(t, filepath.Join("..", "ui", "static", "history", "wordtable.js"), ChangeWordsScript())
	for _, c := range [][6]string{
		{"session", "started", "opened", "running", "coder-1", "session coder-1 started"},
		{"session", "lost", "running", "none", "", "the session was lost with the machine"},
		{"team", "config_read", "", "3 agents", "", "config read: 3 agents"},
		{"team", "config_read", "same", "same", "", "config read"},
	} {
		if got := ChangeWords(c[0], c[1], c[2], c[3], c[4]); got != c[5] {
			t.Errorf("%v: %q", c, got)
		}
	}
}
