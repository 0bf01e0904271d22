package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// What people type and what they read: testdata/script, one story a file.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, filepath.Join("testdata", "script"))
}

// The stories that take longest, most of them of several hosts whose daemons are killed: testdata/script/long. `.ci/run scripts` runs
// them. doc/testing.md names the scripts that keep each promise in TestScripts.
func TestLongScripts(t *testing.T) {
	t.Parallel()
	if !testsize.CI() {
		t.Skip("FAIRLEAD_LONG=ci runs them")
	}
	runScripts(t, filepath.Join("testdata", "script", "long"))
}

func runScripts(t *testing.T, dir string) {
	t.Helper()
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"version": buildVersion,
			"exits":   exits,
			"hears":   hears,
			"posted":  posted,
			"until":   until,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "boots":
			case "views": // namespaces can be made
				return sandbox.Abilities().By == sandbox.ByNamespaces, nil
			default:
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return exec.Command("unshare", "-Urm", "mount", "--bind", "/dev/null", bootID).Run() == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			runtime, err := os.MkdirTemp("", "fl") //nolint:usetesting // for its sockets: the name of a test folder may be too long
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(runtime) })
			// A story that fails half-way must not leave its daemon behind.
			env.Defer(func() { stopDaemons(env.WorkDir) })
			env.Setenv("XDG_RUNTIME_DIR", runtime)
			env.Setenv("EXAMPLES", examples)
			port := ports.Free(10)
			env.Setenv("HOST_PORT", strconv.Itoa(port))
			env.Setenv("HOST_PORT_B", strconv.Itoa(port+2)) // an engine host has two
			env.Setenv("HOST_PORT_C", strconv.Itoa(port+4))
			env.Setenv("HOST_PORT_D", strconv.Itoa(port+6))
			env.Setenv("HOST_PORT_E", strconv.Itoa(port+8))
			env.Values[mailboxKey{}] = &mailbox{}
			return nil
		},
	})
}

// bootID is where the kernel says which start of the machine this is. A host that finds another one there has restarted.
const bootID = "/proc/sys/kernel/random/boot_id"

// exits runs `exits CODE PROGRAM WORDS...` and wants exactly that exit code.
func exits(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 2 {
		ts.Fatalf("usage: exits CODE[|CODE] PROGRAM WORDS...")
	}
	err := ts.Exec(words[1], words[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v: %v", words[1:], err)
	}
	if !slices.Contains(strings.Split(words[0], "|"), strconv.Itoa(code)) {
		ts.Fatalf("%v: exit code %d, not %s", words[1:], code, words[0])
	}
}

// until runs `until 'COMMAND'`, which waits until the shell command succeeds.
func until(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 1 {
		ts.Fatalf("usage: until 'COMMAND'")
	}
	if !wait.Poll(func() bool { return ts.Exec("sh", "-c", words[0]) == nil }) {
		ts.Fatalf("it never came to: %s", words[0])
	}
}

// downWait is for a daemon to end. One that waits for sessions on a host that is away goes on waiting, and ends with them.
const downWait = 30 * time.Second

// stopDaemons ends what a story started, wherever below its folder it works.
func stopDaemons(dir string, env ...string) {
	found, _ := filepath.Glob(filepath.Join(dir, "*", ".fairlead", "daemon.json")) // the pattern is ours
	more, _ := filepath.Glob(filepath.Join(dir, ".fairlead", "daemon.json"))
	for _, path := range append(found, more...) {
		ctx, cancel := context.WithTimeout(context.Background(), downWait)
		cmd := exec.CommandContext(ctx, program, "down", "--now", "--dir", filepath.Dir(filepath.Dir(path)))
		cmd.Env = append(os.Environ(), env...)
		_ = cmd.Run() // it may be down already
		cancel()
	}
}
