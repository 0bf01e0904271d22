package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/acp"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
)

// The team of real programs is made as a person would make it, and its drivers accept it. The
// programs themselves are driven where they are installed, by the tests of their drivers.
func TestRealAgents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "real")
	if out, err := exec.Command("sh", filepath.Join("real-agents", "new.sh"), dir).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "fairlead doctor") {
		t.Fatalf("new.sh: %v\n%s", err, out)
	}
	bin := t.TempDir()
	for _, name := range []string{"opencode", "codex"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(dir, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Agents) != 2 || len(cfg.Notes) > 0 {
		t.Fatalf("%d agents, notes %v", len(cfg.Agents), cfg.Notes)
	}
	drivers := map[string]driver.Driver{config.DriverACP: acp.Driver{}, config.DriverCodex: codex.Driver{}}
	for _, a := range cfg.Agents {
		given := driver.Agent{
			Name: a.Name, Command: a.Command, Workspace: a.Workspace, Env: []string{"PATH=" + bin}, Model: a.Model,
			Mode: a.Mode,
		}
		if err := drivers[a.Driver].Check(given); err != nil {
			t.Error(err)
		}
		if branch := strings.TrimSpace(git(t, a.Workspace, "branch", "--show-current")); branch != a.Name {
			t.Errorf("%s works on the branch %q", a.Name, branch)
		}
	}
	if out := git(t, dir, "status", "--porcelain"); out != "" {
		t.Errorf("the new repository is not clean:\n%s", out)
	}
	check := exec.Command("sh", "check.sh")
	check.Dir = filepath.Join(dir, "coder")
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("check.sh: %v\n%s", err, out)
	}
}
