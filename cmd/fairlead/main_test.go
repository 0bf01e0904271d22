package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// program is the fairlead that the tests start: the product, built once. The test binary could play its
// part, but carries so many libraries of the tests that each of the thousands of starts took four times
// as long.
var program string

// programVar names a program that is built already, for a test binary that a test starts.
const programVar = "FAIRLEAD_TEST_PROGRAM"

// The tests that run a daemon in their own process start shims, adapters and scripted agents from the
// test binary.
func TestMain(m *testing.M) {
	shim.Intercept()
	script.Intercept()
	adapter.Intercept(cli.Protocols()...)
	testscript.Main(stage{m}, map[string]func(){
		"fairlead": func() { panic("scripts run the program that TestMain has built") },
	})
}

// stage is the tests together with the program that they start. Under the race detector the program is
// built without it, because a process that lives for a moment takes ten times as long with it. Tests that
// call underRace start one with the race detector, and with FAIRLEAD_LONG=1 all do. Such a program writes
// what it finds to a file, because most tests do not read what a daemon says at its end.
type stage struct{ m *testing.M }

func (s stage) Run() int {
	testsize.Parallel(6) // most tests wait for the processes that they start; some of these are browsers
	dir, err := os.MkdirTemp("", "fairlead-program-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "make a folder for the program that tests start: %v\n", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := provide(filepath.Join(dir, "fairlead"), testsize.Race && testsize.Long()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	reports := filepath.Join(dir, "race")
	if testsize.Race {
		os.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+reports) // else each waits a second at its end
	}
	code := s.runAtHome()
	found, _ := filepath.Glob(reports + "*") // the pattern is ours
	for _, name := range found {
		text, _ := os.ReadFile(name) // without its text it is a race all the same
		fmt.Fprintf(os.Stderr, "a program that a test started has a race:\n%s\n", text)
		code = 1
	}
	return code
}

// provide sets program, and puts it before every other fairlead on the path.
func provide(path string, race bool) error {
	if program = os.Getenv(programVar); program == "" {
		if err := buildProgram(path, race); err != nil {
			return err
		}
		program = path
	}
	return os.Setenv("PATH", filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func buildProgram(path string, race bool, flags ...string) error {
	words := append([]string{"build", "-race=" + strconv.FormatBool(race), "-ldflags=-s -w", "-o", path}, flags...)
	if said, err := exec.Command("go", append(words, ".")...).CombinedOutput(); err != nil { //nolint:gosec // a path in our own folder
		return fmt.Errorf("build the program that tests start: %w: %s", err, said)
	}
	return nil
}

// runAtHome runs the tests with an empty home folder: the settings, skills and agents of the person
// who runs the tests must not change what a test sees. The go command keeps its caches.
func (s stage) runAtHome() int {
	home, err := os.MkdirTemp("", "fairlead-home-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "make an empty home folder for the tests: %v\n", err)
		return 1
	}
	defer os.RemoveAll(home)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		if value, err := exec.Command("go", "env", name).Output(); err == nil { // without go, no test builds anything
			os.Setenv(name, strings.TrimSpace(string(value)))
		}
	}
	os.Setenv("HOME", home)
	os.Setenv(runtimedir.Var, home) // what daemons that a test kills leave behind is removed, too
	return s.m.Run()
}

var racedProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "detector", "fairlead")
	return path, buildProgram(path, true)
})

// underRace lets this test start programs with the race detector in them, if the test itself is
// built with it. The test then runs alone; without the race detector it runs in parallel.
func underRace(t *testing.T) {
	t.Helper()
	if !testsize.Race {
		t.Parallel()
		return
	}
	path, err := racedProgram()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIRLEAD_TEST_ALONE", "1") // fails beside others: they start what is named here, too
	before := program
	program = path
	t.Cleanup(func() { program = before })
}
