package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/shim"
)

// The test binary is all programs at once: fairlead itself, the shim, the adapter, the
// scripted agent.
func TestMain(m *testing.M) {
	shim.Intercept()
	script.Intercept()
	adapter.Intercept(cli.Protocols()...)
	if os.Getenv("FAIRLEAD_TEST_MAIN") == "1" {
		os.Unsetenv("FAIRLEAD_TEST_MAIN") // agents must not inherit it
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(stage{m}, map[string]func(){
		"fairlead": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// stage is the tests with the programs that they start. Under the race detector these are a twin
// of the test binary, built without it: all of a process that lives for a moment would else take
// ten times as long. Races between what the tests do with one daemon are looked for where the
// tests have asked for it, and everywhere with FAIRLEAD_LONG=1; what such a program reports is
// kept in a file, since nobody reads what a daemon says at its end.
type stage struct{ m *testing.M }

func (s stage) Run() int {
	testsize.Parallel(3) // most tests wait for the processes that they start; some of these are browsers
	if !raced {
		return s.runAtHome()
	}
	dir, err := os.MkdirTemp("", "fairlead-twin-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "make room for the programs that tests start: %v\n", err)
		return 1
	}
	defer os.RemoveAll(dir)
	reports := filepath.Join(dir, "race")
	os.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+reports) // else each waits a second at its end
	if os.Getenv("FAIRLEAD_LONG") == "" {
		if err := playTwin(dir); err != nil {
			fmt.Fprintf(os.Stderr, "the programs that tests start have the race detector in them, and are slow: %v\n", err)
		}
	}
	code := s.runAtHome()
	found, _ := filepath.Glob(reports + "*") // the pattern is ours
	for _, name := range found {
		text, _ := os.ReadFile(name) // without its words it is a race all the same
		fmt.Fprintf(os.Stderr, "a program that a test started has a race:\n%s\n", text)
		code = 1
	}
	return code
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
	return s.m.Run()
}

// playTwin builds this test binary without the race detector, and lets the tests start that one.
func playTwin(dir string) error {
	twin, bin := filepath.Join(dir, "fairlead.test"), filepath.Join(dir, "bin")
	if said, err := exec.Command("go", "test", "-race=false", "-c", "-o", twin, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("build them without it: %w: %s", err, said)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	if err := os.Link(twin, filepath.Join(bin, "fairlead")); err != nil {
		return err
	}
	os.Args[0] = twin
	return os.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// underRace lets this test start programs with the race detector in them, if the test itself is
// built with it. The test then runs alone; without the race detector it runs in parallel.
func underRace(t *testing.T) {
	t.Helper()
	if !raced {
		t.Parallel()
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIRLEAD_TEST_ALONE", "1") // fails beside others: they start what is named here, too
	twin := os.Args[0]
	os.Args[0] = self
	t.Cleanup(func() { os.Args[0] = twin })
}
