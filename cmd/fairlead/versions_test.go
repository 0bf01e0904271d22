package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// versions are the programs of other versions that scripts use, by what they differ in.
var versions sync.Map

// buildVersion runs `version VARIABLE VERSION [PACKAGE=PROTOCOL]...`: it sets a variable to the product, built with this
// version and with other numbers of the protocols of packages, such as process/shim=3.
func buildVersion(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 2 {
		ts.Fatalf("usage: version VARIABLE VERSION [PACKAGE=PROTOCOL]...")
	}
	build, _ := versions.LoadOrStore(strings.Join(words[1:], " "), sync.OnceValues(func() (string, error) {
		folder := "version-" + strings.ReplaceAll(strings.Join(words[1:], "-"), "/", ".") // scripts run side by side
		path := filepath.Join(filepath.Dir(program), folder, "fairlead")
		const module = "github.com/fairlead-dev/fairlead/"
		flags := "-s -w -X " + module + "internal/version.given=" + words[1]
		for _, word := range words[2:] {
			pkg, number, _ := strings.Cut(word, "=")
			if _, err := os.Stat(filepath.Join("..", "..", pkg)); err != nil {
				return "", err // the linker says nothing about a package that is not there
			}
			flags += " -X " + module + pkg + ".protocol=" + number
		}
		return path, buildProgram(path, false, "-ldflags", flags)
	}))
	path, err := build.(func() (string, error))()
	ts.Check(err)
	ts.Setenv(words[0], path)
}
