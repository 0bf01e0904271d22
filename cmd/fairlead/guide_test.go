package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guide is a page as a newcomer would follow it: the lines to type, in order, and a file
// where a block of it is one. What is only shown is in blocks without a language.
func guide(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	lines.WriteString("set -eu\n")
	for _, m := range regexp.MustCompile("(?ms)^```(sh|yaml)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" { // another test may have the usual port
			lines.WriteString(strings.ReplaceAll(m[2], "up --detach\n", "up --detach --listen 127.0.0.1:0\n"))
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m[2], "# "), "\n")
		lines.WriteString("mkdir ../guide && cd ../guide\ncat > " + name + " <<'END'\n" + m[2] + "END\n")
	}
	return lines.String()
}

// follow types everything that a page lets people type, in the order in which it stands there,
// in a folder with the examples. It gives the folder, and all that was seen.
func follow(t *testing.T, page string, programs ...string) (dir, seen string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	runtime := t.TempDir()
	if err := os.Chmod(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"XDG_RUNTIME_DIR=" + runtime, "NO_COLOR=1"}
	if err := os.Symlink(filepath.Join(checkout, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopDaemons(dir, env...) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*shipWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", guide(t, filepath.Join(checkout, "doc", page)))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return dir, string(out)
}

// inOrder wants these in a text, one behind the other.
func inOrder(t *testing.T, text string, wants ...string) {
	t.Helper()
	rest := text
	for _, want := range wants {
		_, behind, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("nobody says %q, or not in its place:\n%s", want, text)
			continue
		}
		rest = behind
	}
}

// Everything that doc/channels.md lets people type works as it stands, in the order in which
// it stands there, and what it says of it is what is seen.
func TestChannelGuide(t *testing.T) {
	t.Parallel() // it mostly waits
	dir, seen := follow(t, "channels.md", "git", "curl")
	for _, want := range []string{
		"gladly.", "I have written `clock`", "TURNS", "functions written:", "you are welcome.",
		"takes no part in channels", "Here I am.", `"heartbeat_ms":10000`,
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("nobody says %q:\n%s", want, seen)
		}
	}
	turns, err := os.ReadFile(filepath.Join(dir, "review", ".fairlead", "log", "turns.jsonl"))
	if err != nil || !strings.Contains(string(turns), `,"event":"state_transition","agentId":"author","from":"QUEUED","to":"ACTIVE","trigger":"Turn granted","channel":"review"`) {
		t.Errorf("the log of turns: %v\n%s", err, turns)
	}
}

// The same of doc/crew.md: a team is summoned, sleeps, wakes as itself, loses one, and
// moves to another device.
func TestCrewGuide(t *testing.T) {
	t.Parallel() // it mostly waits
	_, seen := follow(t, "crew.md", "awk")
	inOrder(t, seen,
		"8 of 8 are awake: Lyra, Kael", "julian leads: it is here", "everybody is awake",
		"I took Lyra, after the small constellation", "the blue door is locked", "session is over; the team sleeps", "wakes 8: Lyra",
		"8 of 8 are awake", "I am awake. I know who I am", "the blue door is locked", "Kael has crashed", "wakes 1: Kael", "1 of 1 are awake: Kael",
		"wrote LEAD.md, for julian", "Lyra is in the team as", "Lyra                  sleeping", "8 of 8 are awake", "I remember nothing else yet",
	)
}
