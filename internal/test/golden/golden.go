// Package golden compares test results with files that people have reviewed.
//
// A matrix, a table or a story with its result is easier to review as a page than as assertions. A
// person reviews the page once, and from then on the test fails when the page changes. UPDATE=1 go
// test writes the pages again; review the difference before you commit it.
//
// The promise: a page is only written on request.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares a text with a file, or with UPDATE=1 makes the file so.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // as public as the source beside it
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file) //nolint:gosec // a test's own page
	if err != nil {
		t.Fatalf("%v; UPDATE=1 go test writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs; if it is meant, UPDATE=1 go test renews it, and read the diff:\n%s", file, diff)
	}
}

// Stories plays every file of a pattern below testdata, a subtest each, called like the file
// without its ending. play gives a story back with the results that it really had.
func Stories(t *testing.T, pattern string, play func(t *testing.T, story string) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories %s: %v", pattern, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, filepath.Ext(name)), func(t *testing.T) {
			story, err := os.ReadFile(file) //nolint:gosec // the same
			if err != nil {
				t.Fatal(err)
			}
			Check(t, file, play(t, string(story)))
		})
	}
}
