package dispatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// why names the user's hooks that Claude Code calls for MAIN's shell commands.
func TestOtherHooks(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	if got := otherHooks(t.TempDir(), true); len(got) > 0 {
		t.Errorf("there are none: %+v", got)
	}
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude", "settings.json"),
		[]byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"rtk hook"}]}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, boxed := range []bool{true, false} {
		if got := otherHooks(t.TempDir(), boxed); len(got) != 1 || got[0].Holds != boxed || !strings.Contains(got[0].Text, `"rtk hook"`) {
			t.Errorf("in a sandbox %v: %+v", boxed, got)
		}
	}
}
