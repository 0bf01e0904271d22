package main

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// answers runs a command on a terminal and answers its question; without an answer it must ask none. It returns what the terminal
// shows, and the exit code.
func (s *rig) answers(answer string, words ...string) (string, int) {
	s.t.Helper()
	cmd := command(append([]string{words[0], "--dir", s.dir}, words[1:]...)...)
	cmd.Env = append(cmd.Env, "NO_COLOR=1", "TERM=xterm")
	terminal, err := pty.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	defer terminal.Close()
	said := ""
	if answer != "" {
		said = readUntil(s.t, terminal, "[y/N]", cmd)
		if _, err := io.WriteString(terminal, answer); err != nil {
			s.t.Fatal(err)
		}
	}
	rest, _ := io.ReadAll(terminal) // a terminal whose program is gone ends with an error
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.t.Fatalf("%q: %v", words, err)
	}
	if said += string(rest); answer == "" && strings.Contains(said, "[y/N]") {
		s.t.Errorf("%q asks: %s", words, said)
	}
	return said, cmd.ProcessState.ExitCode()
}

// On a terminal, reload and up show what an agent has changed and ask. Only a yes counts, each time.
func TestGoverningQuestionsOnATerminal(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: exec, command: [sh, work.sh], workspace: ., sandbox: auto}\n",
		"work.sh":       "n=$(grep -c intruder fairlead.yaml); echo \"  intruder$n: {driver: exec, command: ['true'], workspace: w$n}\" >> fairlead.yaml\n",
	})
	obeyed := func(name string, want bool) {
		t.Helper()
		if out := s.must("ps", "--json"); strings.Contains(out, `"name":"`+name+`"`) != want {
			t.Fatalf("%s is obeyed: %v, want %v: %s", name, !want, want, out)
		}
	}
	changed := func() {
		t.Helper()
		s.must("once", "coder")
		wait.Until(t, "the change waits for a person", func() bool {
			return strings.Contains(s.must("inbox"), "\nconfig  ") || strings.HasPrefix(s.must("inbox"), "config  ")
		})
		wait.Until(t, "the agent has ended", func() bool { return strings.Contains(s.must("ps"), "IDLE") })
	}
	again := func(answer string) {
		t.Helper()
		s.must("down")
		_ = s.daemon.Wait()
		said, code := s.answers(answer, "up", "--detach", "--listen", "127.0.0.1:0")
		if code != cli.ExitDone || !strings.Contains(said, "ready http") {
			t.Fatalf("up ends with %d: %s", code, said)
		}
		if no := strings.Contains(said, "stays in force until `fairlead reload --governing"); no != (answer != "" && answer != "yes\n") {
			t.Fatalf("after the answer %q up says: %s", answer, said)
		}
		if answer != "" && (!strings.Contains(said, "they were changed: fairlead.yaml") || !strings.Contains(said, "+  intruder")) {
			t.Errorf("up does not show the change: %s", said)
		}
	}

	changed()
	for _, no := range []string{"n\n", "\n", "yess\n", "\x04"} {
		if said, code := s.answers(no, "reload"); code != cli.ExitRefused || !strings.Contains(said, "they were changed: fairlead.yaml") ||
			!strings.Contains(said, "+  intruder0") {
			t.Errorf("after %q reload ends with %d: %s", no, code, said)
		}
		obeyed("intruder0", false)
	}
	if said, code := s.answers("", "reload", "--json"); code != cli.ExitRefused {
		t.Errorf("reload --json ends with %d: %s", code, said)
	}
	for _, no := range []string{"n\n", "\x04"} {
		again(no)
		obeyed("intruder0", false)
	}
	if said, code := s.answers("y\n", "reload"); code != cli.ExitDone || !strings.Contains(said, "intruder0") {
		t.Errorf("after a yes reload ends with %d: %s", code, said)
	}
	obeyed("intruder0", true)
	again("") // nothing waits: it does not ask

	changed()
	again("no\n")
	obeyed("intruder1", false)
	again("yes\n")
	obeyed("intruder1", true)
	again("")
}
