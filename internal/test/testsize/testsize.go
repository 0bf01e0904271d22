// Package testsize decides how much work a test does, and how many tests of a package run at once.
//
// FAIRLEAD_LONG selects one of three sizes. Without it, `go test ./...` runs the short form of each
// test, which is meant to finish in minutes. FAIRLEAD_LONG=ci runs the forms that a change must pass
// before it is taken (.ci/run long). Any other value, for instance FAIRLEAD_LONG=1, runs the longest
// form of every test, which takes hours (.ci/run nightly). With -test.short, tests that cost most
// don't run at all; those tests check testing.Short themselves.
//
// The one promise: a longer size runs everything that a shorter size runs.
package testsize

import (
	"flag"
	"os"
	"strconv"
)

// CI reports whether at least the forms for .ci/run were asked for.
func CI() bool { return os.Getenv("FAIRLEAD_LONG") != "" }

// Long reports whether the longest forms were asked for.
func Long() bool { return CI() && os.Getenv("FAIRLEAD_LONG") != "ci" }

// Pick returns the value for the size that was asked for.
func Pick[V any](short, ci, long V) V {
	switch {
	case Long():
		return long
	case CI():
		return ci
	}
	return short
}

// Parallel lets n parallel tests run at once, for packages whose tests wait for processes more
// than they compute. A -parallel flag on the command line takes precedence. Call it in TestMain
// before m.Run.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // outside of a test binary: a bug in the caller
	}
}
