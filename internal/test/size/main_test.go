package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{
		"":                                 0,
		"package a // a comment":           2,
		"package a\n\nvar x = `a\nb`\n":    6,
		"package a; var x = 1 + 2\n":       9,
		"package a\nfunc f() { return }\n": 9,
	} {
		if got := goTokens([]byte(text)); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
	for text, want := range map[string]int{
		"":                               0,
		"// nothing\n/* more\n */":       0,
		"let a = 'b // c';":              5,
		"a => `${b} ${c}`":               3,
		"<!-- x --><p class=\"y\">":      6,
		".a { color: red } /* { } */":    7,
		"if (a === 1.5 && b?.c) return;": 12,
	} {
		if got := pageTokens([]byte(text)); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go":                   "package a\n\nvar x = 1\n",
		"a/a_test.go":              "package a\n",
		"b/c/c.go":                 "package c\n",
		"b/journaltest/x.go":       "package journaltest\n",
		"internal/test/x/x.go":     "package x\n",
		"a/testdata/y.go":          "package y\n",
		"ui/static/app.js":         "let a = 1;",
		"doc/not-of-the-page.html": "<p>",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var out strings.Builder
	if err := run(&out, dir, 1); err != nil {
		t.Fatal(err)
	}
	const want = `        8 tokens of the product
        6 tokens of tests
        5 tokens of the page
        2 packages of the product
        6 a
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}
