package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/read/view"
)

// evil is text that sets a terminal's title, clears its screen, or sends input in the reader's name.
const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e"

// onTerminal runs a command on a terminal, and returns its output.
func (s *rig) onTerminal(words ...string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rigWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{words[0], "--dir", s.dir}, words[1:]...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm")
	screen, err := pty.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	defer screen.Close()
	seen, _ := io.ReadAll(screen) // a terminal whose program is gone ends with an error
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%q: %v", words, err)
	}
	return string(seen), cmd.ProcessState.ExitCode()
}

// harmless says what in a text a terminal would obey.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\x00"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s shows %q: %q", what, bad, text)
		}
	}
}

// An agent's output, and the content of its file, cannot control the terminal.
func TestEvilTextOnATerminal(t *testing.T) {
	t.Parallel()
	said := base64.StdEncoding.EncodeToString([]byte("hello " + evil + "\n"))
	s := newRig(t, map[string]string{
		"fairlead.yaml":    "version: 1\nagents:\n  ada: {driver: script, script: evil.script.yaml, workspace: ada}\n",
		"evil.script.yaml": "sessions:\n  - steps:\n      - emit: !!binary " + said + "\n",
	})
	s.fairlead("once", "ada", "--wait")
	state, err := agentstate.Parse([]byte(strings.Join(s.lines("ada/agent_state.json"), "\n")))
	if err != nil {
		t.Fatal(err)
	}
	state = state.WithCommand(agentstate.Pause, agentstate.SetByHuman, "a note "+evil, time.Now().Add(time.Second))
	if err := os.WriteFile(filepath.Join(s.dir, "ada", agentstate.FileName), state.Render(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("ada", "the note is taken in", func(v view.WhyView) bool { return strings.HasPrefix(v.Agent.Note, "a note") })
	for _, words := range [][]string{{"ps"}, {"why", "ada"}, {"events"}, {"doctor"}, {"up", "--plan"}} {
		seen, _ := s.onTerminal(words...)
		harmless(t, strings.Join(words, " "), seen)
		if len(seen) == 0 {
			t.Errorf("%q shows nothing", words)
		}
	}
	out, code := s.fairlead("events", "--json")
	if code != cli.ExitDone || !strings.Contains(out, `\u001b]0;owned\u0007`) {
		t.Errorf("programs are not given what was written, as it was (exit %d)", code)
	}
}

// Unknown names are refused with a message that cannot control the terminal.
func TestEvilNames(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [\"true\"], workspace: ada}\n"})
	names := []string{
		"..", ".", "../../etc/passwd", "a/b", "/", "a\nb", "%2e%2e", "-rf", "ada\x1b[2J", evil, strings.Repeat("a", 5000),
		"ada ", "ADA", "ада",
	}
	for _, verb := range []string{"start", "stop", "once", "cleanup", "why"} {
		for _, name := range names {
			seen, code := s.onTerminal(verb, "--", name)
			what := fmt.Sprintf("%s %.20q", verb, name)
			harmless(t, what, seen)
			if code != cli.ExitFailed && code != cli.ExitUsage && code != cli.ExitRefused {
				t.Errorf("%s: exit code %d: %.200q", what, code, seen)
			}
			if len(seen) == 0 || len(seen) > 2000 {
				t.Errorf("%s: %d bytes are shown", what, len(seen))
			}
		}
	}
	if seen, code := s.onTerminal("why", "ada"); code != cli.ExitDone {
		t.Errorf("who is there is not found: %q", seen)
	}
}
