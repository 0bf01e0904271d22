package fairlead_test

import (
	"path"
	"strings"
	"testing"
)

const packageLinesMax = 7000 // of one package, without tests

// tooLong lists the packages that have more lines than packageLinesMax, each with its number. The number may only
// fall: when it does, write the new one here, or remove the package.
var tooLong = map[string]int{"git/task": 7308}

// A package with very many lines has more than one subject. Files may be as many as they like: a cap on files would only
// move lines about. Methods have no limit: one was tried, and bred wrapper types.
func TestSizes(t *testing.T) {
	r := readTree(t)
	lines := map[string]int{}
	for _, file := range r.goFiles() {
		f, dir := r.goes[file], path.Dir(file)
		if f.test || strings.HasPrefix(dir, "internal/test/") { // a harness is a test
			continue
		}
		lines[dir] += strings.Count(r.text[file], "\n")
	}
	if len(lines) < 40 {
		t.Fatalf("%d packages were found", len(lines))
	}
	check(t, "lines", lines, tooLong, packageLinesMax)
}

// check compares each count with the limit, or with its known excess.
func check(t *testing.T, what string, counts, known map[string]int, limit int) {
	t.Helper()
	for name, n := range counts {
		switch was, listed := known[name]; {
		case !listed && n > limit:
			t.Errorf("%s has %d %s, %d at most; split it by subject", name, n, what, limit)
		case listed && n > was:
			t.Errorf("%s has %d %s, and had %d; it may only shrink", name, n, what, was)
		case listed && n < was:
			t.Errorf("%s has %d %s by now; write that in place of %d, or remove it from the list", name, n, what, was)
		}
	}
	for name := range known {
		if counts[name] <= limit {
			t.Errorf("%s keeps to the limit of %d %s; remove it from the list", name, limit, what)
		}
	}
}
