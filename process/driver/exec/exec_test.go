package exec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/exec"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Main(m)) }

func sh(line string) driver.Agent {
	return driver.Agent{Name: "coder", Command: []string{"sh", "-c", line, "agent"}}
}

func TestDriver(t *testing.T) {
	work := driver.Session{ID: "coder-17", Kind: driver.Work, Prompt: "never seen by a command", Attempt: 1}
	tidy := driver.Session{ID: "coder-18", Kind: driver.Cleanup, Attempt: 1}
	drivertest.Run(t, exec.Driver{},
		drivertest.Case{
			Name: "Success", Agent: sh("echo Running session...; echo Session complete >&2"), Session: work,
			Facts: []string{"said Running session...", "said Session complete"}, OK: true,
		},
		drivertest.Case{Name: "Failure", Agent: sh("printf half; exit 3"), Session: work, Facts: []string{"said half"}},
		drivertest.Case{Name: "Signal", Agent: sh("kill -9 $$"), Session: work},
		drivertest.Case{
			Name: "Cleanup", Agent: sh(`echo "$@"`), Session: tidy,
			Facts: []string{"said --cleanup-session"}, OK: true,
		},
		drivertest.Case{
			Name: "Names", Agent: sh(`echo $FAIRLEAD_AGENT $FAIRLEAD_SESSION $FAIRLEAD_SESSION_KIND; pwd >/dev/null; cat`), Session: work,
			Facts: []string{"said coder coder-17 session"}, OK: true,
		},
		drivertest.Case{
			Name: "Turn", Agent: sh(`echo $FAIRLEAD_SESSION_KIND $FAIRLEAD_CHANNEL $FAIRLEAD_TURN; cat; echo TURN_COMPLETE`), OK: true,
			Session: driver.Session{
				ID: "coder-19", Kind: driver.Turn, Prompt: "it is your turn\nto speak", Attempt: 1, Channel: "reviews",
				Turn: 7,
			},
			Facts: []string{"said turn reviews 7", "said it is your turn", "said to speak", "said TURN_COMPLETE"},
		},
		drivertest.Case{
			Name: "Task", Agent: sh(`cat`), OK: true, // the task of a dispatch
			Session: driver.Session{ID: "coder-21", Kind: driver.Work, Prompt: "write it", Attempt: 1, PromptIsTask: true},
			Facts:   []string{"said write it"},
		},
		drivertest.Case{
			Name: "Aside", Agent: sh(`echo "${FAIRLEAD_TURN-none}"; exec >/dev/null 2>&1; true`), OK: true, // it does not read its input
			Session: driver.Session{
				ID: "coder-20", Kind: driver.Turn, Prompt: strings.Repeat("x", 256<<10), Attempt: 1,
				Channel: "reviews",
			},
			Facts: []string{"said none"},
		},
		drivertest.Case{Name: "LongLine", Agent: sh(`head -c 3000000 /dev/zero | tr '\0' x; echo; echo after`), Session: work, OK: true},
	)
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("agent.sh", 0o755)
	write("notes.txt", 0o644)
	for _, c := range []struct {
		command string
		fault   string // part of the error; empty: none
	}{
		{"sh", ""},
		{"./agent.sh", ""},
		{filepath.Join(dir, "agent.sh"), ""},
		{"no-such-program-7c1f", "not in the PATH"},
		{"./nothing.sh", "no such file"},
		{"./notes.txt", "not executable"},
		{"./", "is a folder"},
		{"a\x00b", "NUL"},
		{"", "has no command"},
	} {
		err := exec.Driver{}.Check(driver.Agent{Name: "coder", Workspace: dir, Command: []string{c.command}})
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%q: %v", c.command, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q: got %v, want %q in it", c.command, err, c.fault)
		}
	}
	for workspace, ok := range map[string]bool{
		filepath.Join(dir, "not yet there"): true, filepath.Join(dir, "notes.txt"): false,
		"": false,
	} {
		err := exec.Driver{}.Check(driver.Agent{Name: "coder", Workspace: workspace, Command: []string{"sh"}})
		if (err == nil) != ok {
			t.Errorf("workspace %q: %v", workspace, err)
		}
	}
}

// TestAgentsOwnPath checks that a program is looked up in the PATH of the agent's configuration.
func TestAgentsOwnPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my-agent"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := exec.Driver{}.Launch(driver.Agent{Name: "coder", Workspace: dir, Command: []string{"my-agent"}, Env: []string{"PATH=" + dir}},
		driver.Session{})
	if err != nil || l.Argv[0] != filepath.Join(dir, "my-agent") {
		t.Errorf("%v %v", l.Argv, err)
	}
}

func TestNoInput(t *testing.T) {
	w := &drivertest.Recording{}
	c := exec.Driver{}.Converse(driver.Agent{}, driver.Session{}, w)
	if !errors.Is(c.Prompt(t.Context(), "hello"), driver.ErrNoInput) || !errors.Is(c.Cancel(t.Context()), driver.ErrNoInput) ||
		len(w.Sent) > 0 {
		t.Errorf("a command received input: %q", w.Sent)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte("Running session...\r\nhalf"), 3)
	f.Add([]byte("\xff\n\n\x00"), 1)
	f.Fuzz(func(t *testing.T, output []byte, piece int) {
		drivertest.Check(t, exec.Driver{}, output, piece)
	})
}
