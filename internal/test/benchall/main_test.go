package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const printed = `goos: linux
BenchmarkFlip-2   	      14	        18.78 flip/bare-sync	      6196 µs/flip
PASS
`

// TestTable checks the medians, the range of the ratio, and the comparison with the aim, from the
// output of test programs.
func TestTable(t *testing.T) {
	t.Parallel()
	m := &measured{syncs: []time.Duration{3000, 1000, 2000}, values: map[string][]float64{}}
	for _, ratio := range []string{"18.78", "5.25", "6.5"} {
		m.take("app", []byte(strings.Replace(printed, "18.78", ratio, 1)))
	}
	m.take("api/server", []byte(strings.Replace(printed, "18.78", "1", 1)))
	runs := matching(regexp.MustCompile("^flip in the file"))
	var out strings.Builder
	m.print(&out, runs, time.Minute)
	want := "| flip in the file to the answer in the file | 6.20 ms/flip | 6.50 flip/bare-sync, 5.25 to 18.8 | 6.00: missed | 3 |\n"
	if len(runs) != 1 || !strings.HasSuffix(out.String(), want) || !strings.Contains(out.String(), "f is 2µs") {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	if left := matching(regexp.MustCompile("no such row")); len(left) > 0 {
		t.Errorf("%+v", left)
	}
}

// TestRowsExist checks that every row names an existing benchmark that its test program runs.
func TestRowsExist(t *testing.T) {
	t.Parallel()
	for _, r := range table() {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", r.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
		for _, w := range r.rows {
			name, _, _ := strings.Cut(w.bench, "/")
			if !strings.Contains(code.String(), "func "+name+"(") {
				t.Errorf("%s: %s has no %s", w.what, r.pkg, name)
			}
			if main, _, _ := strings.Cut(r.bench, "/"); !regexp.MustCompile(main).MatchString(name) {
				t.Errorf("%s: %s is not run by %s", w.what, name, r.bench)
			}
		}
	}
}
