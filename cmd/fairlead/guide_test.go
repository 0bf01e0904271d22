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

// guide is the script of a guide: its `sh` blocks in order, and a file for each `yaml` block, whose
// first line is a comment with the file's name. Blocks without a language are only shown.
func guide(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	lines.WriteString("set -eu\n")
	for _, m := range regexp.MustCompile("(?ms)^```(sh|yaml)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" {
			lines.WriteString(onAnyPort(m[2]))
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m[2], "# "), "\n")
		lines.WriteString("mkdir ../guide && cd ../guide\ncat > " + name + " <<'END'\n" + m[2] + "END\n")
	}
	return lines.String()
}

// onAnyPort lets daemons listen on a free port: another test may use the default one.
func onAnyPort(commands string) string {
	return strings.ReplaceAll(commands, "up --detach\n", "up --detach --listen 127.0.0.1:0\n")
}

// guidePlace is a folder with the examples, in which the commands of a page run.
type guidePlace struct {
	dir, checkout string
	env           []string
}

// newGuidePlace skips the test if one of the programs that the page uses is missing. Daemons that the
// page starts are stopped when the test ends.
func newGuidePlace(t *testing.T, programs ...string) guidePlace {
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
	dir, runtime := t.TempDir(), t.TempDir()
	if err := os.Chmod(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(checkout, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	p := guidePlace{dir: dir, checkout: checkout, env: []string{"XDG_RUNTIME_DIR=" + runtime, "NO_COLOR=1"}}
	t.Cleanup(func() { stopDaemons(dir, p.env...) })
	return p
}

// run executes commands in a folder and returns their output.
func (p guidePlace) run(t *testing.T, folder, commands string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*rigWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", commands)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// follow runs all commands of a guide, in order. It returns the folder and the output.
func follow(t *testing.T, page string, programs ...string) (dir, seen string) {
	t.Helper()
	p := newGuidePlace(t, programs...)
	out, err := p.run(t, p.dir, guide(t, filepath.Join(p.checkout, "doc", page)))
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return p.dir, out
}

// inOrder fails unless a text contains all of these, in this order.
func inOrder(t *testing.T, text string, wants ...string) {
	t.Helper()
	rest := text
	for _, want := range wants {
		_, behind, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("the output lacks %q after what precedes it:\n%s", want, text)
			continue
		}
		rest = behind
	}
}

// Every command of doc/channels.md works as it is written, in order, and has the effect that the page describes.
func TestChannelGuide(t *testing.T) {
	t.Parallel() // it mostly waits
	dir, seen := follow(t, "channels.md", "git", "curl")
	for _, want := range []string{
		"gladly.", "I have written `clock`", "TURNS", "functions written:", "you are welcome.",
		"takes no part in channels", "Here I am.", `"heartbeat_ms":10000`,
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the output lacks %q:\n%s", want, seen)
		}
	}
	turns, err := os.ReadFile(filepath.Join(dir, "review", ".fairlead", "log", "turns.jsonl"))
	if err != nil ||
		!strings.Contains(string(turns),
			`,"event":"state_transition","agentId":"author","from":"QUEUED","to":"ACTIVE","trigger":"Turn granted","channel":"review"`) {
		t.Errorf("the log of turns: %v\n%s", err, turns)
	}
}
