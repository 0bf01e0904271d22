package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// Every event of every machine is said in plain words, on the page and by `fairlead events` alike.
func TestEveryChangeHasWords(t *testing.T) {
	named := map[string]string{"lead": "crew", "message": "turn"} // the machines that changes name
	for _, m := range append(Machines(), hostMachine()) {
		for _, row := range m.Rows {
			if changeWords[cmp.Or(named[m.Name], m.Name)][row.On] == "" {
				t.Errorf("%s: %s (%s) has no words", m.Name, row.On, row.ID)
			}
		}
	}
	// Changes that no table of a machine makes.
	made := regexp.MustCompile(`d\.(?:(setAgent)\(name, "[a-z]+", "[a-z]+"|(?:note|setLimited|setTeam)\([^"\n]*"[A-Z]+\d+"), "([a-z_]+)"`)
	files, err := filepath.Glob(filepath.Join("..", "..", "core", "team", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(source), -1) {
			found++
			if changeWords["team"][m[2]] == "" && changeWords["run"][m[2]] == "" {
				t.Errorf("%s: %s has no words", file, m[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d changes were found in the source of team", found)
	}
	golden.Check(t, filepath.Join("..", "..", "ui", "static", "history", "wordtable.js"), wordTable())
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

// wordTable is changeWords for Mission Control: ui/static/history/wordtable.js.
func wordTable() string {
	table, err := json.MarshalIndent(changeWords, "", "  ") // sorted by key
	if err != nil {
		panic(err) // the table is a map of strings
	}
	return fmt.Sprintf(`// Code generated from read/view/changewords.go by UPDATE=1 go test ./read/view; DO NOT EDIT.

/** What happened, by machine and event. {s} is replaced by the session. @type {Record<string, Record<string, string>>} */
export const CHANGE_WORDS = %s;
`, table)
}
