// Command size prints how large Fairlead is: tokens of the product, of the tests and of the page, packages, and the largest packages.
//
//	go run ./internal/test/size [-n 20] [FOLDER]
//
// A token of Go is one that go/scanner gives, comments and automatic semicolons aside, so that long lines and short names gain
// nothing. Tests are _test.go files and the folders of [testFolders]. A token of the page is a word, a number, a string or a
// sign of JavaScript, CSS and HTML outside of comments. Files that git does not list are not counted.
//
// The one promise: the same commit gives the same numbers, with any width of lines and any length of names and texts.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testFolders hold code that only tests use, wherever they lie.
var testFolders = []string{"internal/test", "drivertest", "journaltest", "policytest"}

// pageWord is one token of the page; a match that begins with a comment's sign is none.
var pageWord = regexp.MustCompile("(?s)" + strings.Join([]string{
	`/\*.*?\*/`, `<!--.*?-->`, `//[^\n]*`,
	"`(?:\\\\.|[^`\\\\])*`", `"(?:\\.|[^"\\\n])*"`, `'(?:\\.|[^'\\\n])*'`,
	`[\p{L}_$][\p{L}\p{N}_$]*`, `\p{N}[\p{L}\p{N}.]*`, `=>|===|!==|==|!=|<=|>=|&&|\|\||\?\?|\?\.|\.\.\.|\+\+|--`, `\S`,
}, "|"))

// sizes are what was counted.
type sizes struct {
	product, tests, page int
	packages             map[string]int // tokens of the product, by folder
}

func main() {
	most := flag.Int("n", 20, "how many of the largest packages are printed")
	flag.Parse()
	if err := run(os.Stdout, cmp.Or(flag.Arg(0), "."), *most); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, folder string, most int) error {
	list := exec.Command("git", "-C", folder, "ls-files", "-z", "--", "*.go", "*.js", "*.css", "*.html")
	list.Stderr = os.Stderr
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", folder, err)
	}
	s := sizes{packages: map[string]int{}}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		s.add(name, text)
	}
	s.print(out, most)
	return nil
}

// add counts one file by its name from the root folder.
func (s *sizes) add(name string, text []byte) {
	switch {
	case path.Ext(name) != ".go" && strings.HasPrefix(name, "ui/static/"):
		s.page += pageTokens(text)
	case path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/"): // neither product nor page
	case isTest(name):
		s.tests += goTokens(text)
	default:
		n := goTokens(text)
		s.product += n
		s.packages[path.Dir(name)] += n
	}
}

func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(testFolders, func(folder string) bool {
		return strings.Contains("/"+name, "/"+folder+"/")
	})
}

func (s *sizes) print(out io.Writer, most int) {
	fmt.Fprintf(out, "%9d tokens of the product\n%9d tokens of tests\n%9d tokens of the page\n%9d packages of the product\n",
		s.product, s.tests, s.page, len(s.packages))
	type count struct {
		name   string
		tokens int
	}
	var all []count
	for name, n := range s.packages {
		all = append(all, count{name, n})
	}
	slices.SortFunc(all, func(a, b count) int { return cmp.Or(b.tokens-a.tokens, strings.Compare(a.name, b.name)) })
	for _, c := range all[:min(most, len(all))] {
		fmt.Fprintf(out, "%9d %s\n", c.tokens, c.name)
	}
}

// goTokens counts the tokens of a Go file. What cannot be parsed counts as far as it goes.
func goTokens(text []byte) (n int) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(text)), text, func(token.Position, string) {}, 0)
	for {
		switch _, tok, literal := s.Scan(); {
		case tok == token.EOF:
			return n
		case tok == token.SEMICOLON && literal == "\n": // the scanner's own
		default:
			n++
		}
	}
}

func pageTokens(text []byte) (n int) {
	for _, word := range pageWord.FindAll(text, -1) {
		if !bytes.HasPrefix(word, []byte("/*")) && !bytes.HasPrefix(word, []byte("//")) && !bytes.HasPrefix(word, []byte("<!--")) {
			n++
		}
	}
	return n
}
