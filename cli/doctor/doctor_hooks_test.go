package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/claudehook"
)

// doctor names hooks that run beside Fairlead's, and not those of dispatch.hooks.
func TestHooksBeside(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CLAUDE_PROJECT_DIR", "")
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, ".claude", "settings.json"),
		`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"rtk hook"}]}]}}`)
	if found := lookAtHooks(dir); len(found) > 0 {
		t.Errorf("Fairlead's hooks are not installed: %+v", found)
	}
	steps, err := claudehook.Install(claudehook.Project(dir, false), claudehook.Program{Path: "/usr/bin/fairlead"})
	if err != nil {
		t.Fatal(err)
	}
	if err := claudehook.Apply(steps); err != nil {
		t.Fatal(err)
	}
	found := lookAtHooks(dir)
	if len(found) != 1 || !strings.Contains(found[0].What, `"rtk hook"`) || !strings.Contains(found[0].What, "settings.json") ||
		!strings.Contains(found[0].Do, "dispatch.hooks") {
		t.Errorf("found %+v", found)
	}
	write(filepath.Join(dir, "fairlead.yaml"),
		"version: 1\nagents:\n  coder: {driver: exec, command: ['true'], workspace: w}\ndispatch: {hooks: [rtk hook]}\n")
	if found := lookAtHooks(dir); len(found) != 1 || !strings.HasPrefix(found[0].What, "no other hook") {
		t.Errorf("it is named in fairlead.yaml: %+v", found)
	}
}

// doctor looks for the user's hooks where Claude Code reads them.
func TestHooksBesideInTheConfigDir(t *testing.T) {
	home, conf, dir := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", conf)
	t.Setenv("CLAUDE_PROJECT_DIR", "")
	text := `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"rtk hook"}]}]}}`
	if err := os.WriteFile(filepath.Join(conf, "settings.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	steps, err := claudehook.Install(claudehook.User("", conf), claudehook.Program{Path: "/usr/bin/fairlead"})
	if err == nil {
		err = claudehook.Apply(steps)
	}
	if err != nil {
		t.Fatal(err)
	}
	if found := lookAtHooks(dir); len(found) != 1 || !strings.Contains(found[0].What, `"rtk hook"`) {
		t.Errorf("found %+v", found)
	}
}
