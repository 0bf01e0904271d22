package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
)

func driven() []setup.AgentProgram {
	return slices.DeleteFunc(slices.Clone(setup.AgentPrograms), func(p setup.AgentProgram) bool { return p.Driver == "" })
}

// What init writes for a program loads without a word, and names a page that is there.
func TestInitEntriesLoad(t *testing.T) {
	t.Parallel()
	teams := [][]setup.AgentProgram{driven()}
	for _, p := range driven() {
		teams = append(teams, []setup.AgentProgram{p})
	}
	for _, team := range teams {
		cfg, err := config.Parse(config.FileName, t.TempDir(), setup.TeamFile(team), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Errorf("%s: %v", setup.ShownNames(team), err)
			continue
		}
		if len(cfg.Agents) != len(team) || len(cfg.Notes) > 0 {
			t.Errorf("%s: %d agents, notes %v", setup.ShownNames(team), len(cfg.Agents), cfg.Notes)
		}
		for i, a := range cfg.Agents {
			if a.Driver != team[i].Driver || !slices.Equal(a.Command, team[i].Command) {
				t.Errorf("%s has driver %s and command %q", a.Name, a.Driver, a.Command)
			}
		}
	}
	for _, p := range setup.AgentPrograms {
		if _, err := os.Stat(filepath.Join("..", "..", "doc", "agents", p.Page)); err != nil {
			t.Errorf("%s: %v", p.Title, err)
		}
		if (p.Driver == "") == (p.Hint == "") {
			t.Errorf("%s has a driver and a hint, or neither", p.Title)
		}
	}
}

// A person chooses agents by number or name, gets an error for an unknown choice, and may choose none.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	found := driven()[:3]
	for typed, want := range map[string]string{
		"\n": "", "1\n": "opencode", "qwen\n": "qwen", "3, 1\n": "claude opencode", "1 1 opencode\n": "opencode", "2": "qwen",
		"7\n0\nx\n-1\n2\n": "qwen", " \t\r\n": "",
	} {
		var out bytes.Buffer
		a := &cli.App{Out: &out}
		chosen, err := setup.AskAgents(a, found, strings.NewReader(typed))
		names := make([]string, 0, len(chosen))
		for _, p := range chosen {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v; not %q", typed, got, err, want)
		}
		if missed := strings.Count(out.String(), "There is no"); typed == "7\n0\nx\n-1\n2\n" && missed != 4 {
			t.Errorf("%q: it is said %d times that it is not in the list", typed, missed)
		}
	}
	a := &cli.App{Out: io.Discard}
	if _, err := setup.AskAgents(a, found, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "--agent") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := setup.AskAgents(a, found, strings.NewReader(strings.Repeat("x\n", setup.AnswerBytesMax))); err == nil {
		t.Error("who never says anything that is in the list is asked for ever")
	}
}

// On a terminal it asks; the answer is on the team.
func TestInitOnATerminal(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "opencode"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if len(setup.OfferedIn(bin)) == 0 {
		t.Fatal("this build offers nothing")
	}
	cmd := command("init", "--dir", dir)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }), "PATH="+bin)
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	said := readUntil(t, terminal, "Which are to be on the team?", cmd)
	if !strings.Contains(said, "1  opencode") {
		t.Errorf("it offers %q", said)
	}
	if _, err := io.WriteString(terminal, "1\n"); err != nil {
		t.Fatal(err)
	}
	readUntil(t, terminal, "fairlead once opencode", cmd)
	_ = cmd.Wait() // what it has said is enough
	text, err := os.ReadFile(filepath.Join(dir, config.FileName))
	if err != nil || !strings.Contains(string(text), "command: [opencode, acp]") {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, string(config.StarterScript))); err == nil {
		t.Error("the scripted agent is there too")
	}
}

// readUntil reads what a terminal shows until a word stands there.
func readUntil(t *testing.T, terminal io.Reader, word string, cmd *exec.Cmd) string {
	t.Helper()
	stop := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() }) // then the read ends, and says what was there
	defer stop.Stop()
	var said strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(said.String(), word); {
		n, err := terminal.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("it does not say %q: %v\n%s", word, err, said.String())
		}
	}
	return said.String()
}
