// Package golden compares test results with files that people have reviewed.
//
// A matrix, a table or a script with its result is easier to review as a page than as assertions. A
// person reviews the page once, and from then on the test fails when the page changes. UPDATE=1 go
// test writes the pages again; review the difference before you commit it.
//
// The one promise: a page is only written on request.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares a text with a file. With UPDATE=1 it writes the file.
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

// Stories runs every file of a pattern in testdata as a subtest with the file's name without its
// extension. play returns a script with its actual results.
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
