// Package attacks runs tables of attempts to do what SECURITY.md says cannot be done.
//
// An attempt names the row of SECURITY.md that it is about. It has two halves: the act that has to be refused, and the
// same act where it is permitted. A server that refuses everything passes the first half and fails the second.
//
// The one promise: a table with fewer attempts than it has to have, with two attempts of one name, or about a threat
// that SECURITY.md does not list, fails.
package attacks

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Attempt is one attempt on a system S.
type Attempt[S any] struct {
	Name    string
	Threat  string                   // the first cell of a row of SECURITY.md
	Try     func(t *testing.T, on S) // fails the test if the attempt gets through
	Allowed func(t *testing.T, on S) // the same act where it is permitted; fails the test if it is refused
}

// Run makes every attempt of a table on a system of its own: first the act that is refused, then the permitted one.
func Run[S any](t *testing.T, least int, system func(t *testing.T) S, table []Attempt[S]) {
	t.Helper()
	Check(t, least, table)
	for _, a := range table {
		t.Run(a.Name, func(t *testing.T) {
			on := system(t)
			a.Try(t, on)
			a.Allowed(t, on)
		})
	}
}

// Check fails the test if a table is too short or names something twice or wrongly.
func Check[S any](t *testing.T, least int, table []Attempt[S]) {
	t.Helper()
	threats := Threats(t)
	seen := map[string]bool{}
	for _, a := range table {
		if seen[a.Name] {
			t.Errorf("two attempts are called %q", a.Name)
		}
		seen[a.Name] = true
		if !slices.Contains(threats, a.Threat) {
			t.Errorf("%s: SECURITY.md has no row with the threat %q; its rows are: %s", a.Name, a.Threat, strings.Join(threats, " | "))
		}
		if a.Try == nil || a.Allowed == nil {
			t.Errorf("%s: an attempt needs both halves", a.Name)
		}
	}
	if len(table) < least {
		t.Errorf("%d attempts, and there have to be %d", len(table), least)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// row is a row of a table with four cells: threat, what holds it, systems, tests.
var row = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| [^|]+ \| [^|]+ \|$`)

// Threats returns the first cells of the rows of SECURITY.md that name tests.
func Threats(t testing.TB) (threats []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		threats = append(threats, m[1])
	}
	return threats
}

// root is the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above the test's folder: %v", err)
	return ""
}
