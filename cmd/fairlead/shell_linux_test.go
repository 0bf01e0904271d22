package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

const shellTeam = "version: 1\nagents:\n  coder: {driver: exec, command: ['true'], workspace: coder, sandbox: workspace, env: {SHELL: /bin/bash}}\n"

// shellRig is a team in whose agent's view shells are opened.
func shellRig(t *testing.T) *rig {
	t.Helper()
	if sandbox.Abilities().By != sandbox.ByNamespaces {
		t.Skip("this machine makes no views")
	}
	return newRig(t, map[string]string{"fairlead.yaml": shellTeam})
}

// nothingLeft waits until what was made for shells is gone.
func (s *rig) nothingLeft() {
	s.t.Helper()
	wait.Until(s.t, "what was made for the shell is gone", func() bool {
		left, err := os.ReadDir(filepath.Join(s.dir, ".fairlead", "tmp"))
		_, made := os.Lstat(filepath.Join(s.dir, "coder", ".claude"))
		return (err == nil && len(left) == 0 || errors.Is(err, os.ErrNotExist)) && errors.Is(made, os.ErrNotExist)
	})
}

// A shell on a terminal has one of its own: it has the size of the person's, follows it, and has job control. Its exit code is the
// command's.
func TestShellOnATerminal(t *testing.T) {
	t.Parallel()
	s := shellRig(t)
	cmd := command("shell", "coder", "--dir", s.dir)
	cmd.Env = append(cmd.Env, "TERM=vt220")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	say := func(text, want string) {
		t.Helper()
		if _, err := io.WriteString(screen, text); err != nil {
			t.Fatal(err)
		}
		readUntil(t, screen, want, cmd)
	}
	readUntil(t, screen, "in the view of coder", cmd)
	say("PS1=; PS0=; bind 'set enable-bracketed-paste off'; stty -echo; echo re''ady\n", "ready\r\n")
	say("stty size; echo $TERM\n", "40 100\r\nvt220\r\n")
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 41, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	say("until test \"$(stty size)\" = '41 101'; do :; done; echo follo''wed\n", "followed\r\n")
	say("sh -c 'echo u''p; exec sleep 600'\n", "up\r\n")
	say("\x03", "")
	say("echo after=$?\n", "after=130")
	say("sh -c 'echo u''p; exec sleep 600'\n", "up\r\n")
	say("\x1a", "Stopped")
	say("test -t 0 && echo o''n > /dev/tty\n", "on\r\n")
	if _, err := io.WriteString(screen, "exec sh -c 'exit 9'\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(screen) // a terminal whose program is gone ends with an error
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("it ended with %v", err)
	}
	s.nothingLeft()
}

// Whatever ends the command ends the view, and what was made for it is removed: by the daemon, or by the next one.
func TestShellIsKilled(t *testing.T) {
	t.Parallel()
	s := shellRig(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		later  bool // there is no daemon when the command ends
	}{
		"killed": {syscall.SIGKILL, false}, "terminated": {syscall.SIGTERM, false}, "killed without a daemon": {syscall.SIGKILL, true},
	} {
		cmd := command("shell", "coder", "--dir", s.dir, "--", "sh", "-c", "echo here; mkdir at-work; exec sleep 600")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		readUntil(t, out, "here\n", cmd)
		wait.Until(t, "the command writes", func() bool { return os.Remove(filepath.Join(s.dir, "coder", "at-work")) == nil })
		if _, err := os.Lstat(filepath.Join(s.dir, "coder", ".claude")); err != nil {
			t.Errorf("%s: nothing was made for the view: %v", name, err)
		}
		inside := childrenOf(t, cmd.Process.Pid)
		if c.later {
			s.must("down")
			_ = s.daemon.Wait()
		}
		_ = cmd.Process.Signal(c.signal)
		if err := cmd.Wait(); !errors.As(err, new(*exec.ExitError)) {
			t.Errorf("%s: %v", name, err)
		}
		wait.Until(t, "the processes of the view are gone", func() bool {
			for _, pid := range inside {
				if state := processState(pid); state != "" && state != "Z" {
					return false
				}
			}
			return len(inside) > 0
		})
		if c.later {
			s.up()
		}
		s.nothingLeft()
	}
	opened, ended := 0, 0
	for line := range strings.Lines(s.must("events")) {
		if strings.Contains(line, "opened a shell in its view") {
			opened++
		}
		if strings.Contains(line, "shell in its view ended") {
			ended++
		}
	}
	if opened != 3 || ended != 3 {
		t.Errorf("the journal has %d shells, and %d ends", opened, ended)
	}
}

// What is written into fairlead.yaml in a shell is a question to the person, as after a session.
func TestShellThatGoverns(t *testing.T) {
	t.Parallel()
	if sandbox.Abilities().By != sandbox.ByNamespaces {
		t.Skip("this machine makes no views")
	}
	s := newRig(t,
		map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: exec, command: ['true'], workspace: ., sandbox: workspace}\n"})
	add := command("shell", "coder", "--dir", s.dir, "--", "sh", "-c",
		"echo '  eve: {driver: exec, command: [touch, owned], workspace: eve}' >> fairlead.yaml")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wait.Until(t, "the change waits for a person", func() bool { return strings.Contains(s.must("inbox"), "config  ") })
	if out, code := s.fairlead("reload"); code != cli.ExitRefused {
		t.Errorf("it is obeyed without a yes: %d %s", code, out)
	}
}

// childrenOf are the children of a process.
func childrenOf(t *testing.T, pid int) (found []string) {
	t.Helper()
	lists, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, strings.Fields(string(text))...)
	}
	return found
}

// processState is the letter for the state of a process; empty: there is none.
func processState(pid string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}
