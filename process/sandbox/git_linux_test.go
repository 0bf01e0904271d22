package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Git's row is held where git works in a view. Outside of one the same repository leaves its mark, and reads the objects of another.
func TestWhole(t *testing.T) {
	a := Abilities()
	whole := Whole()
	if held := !slices.Contains(whole.Unheld, RowGit); held != (a.By == ByNamespaces) || held != whole.Git {
		t.Errorf("by %s git's row is held: %v, %v; %v", a.By, held, whole.Git, whole.Why)
	}
	if !slices.Contains(a.Unheld, RowGit) {
		t.Error("the row is held before it was tried")
	}
	for _, v := range []View{a.Apply(View{}), whole.Apply(View{})} {
		if unheld, err := trial(t.Context(), v); a.By != ByNothing && (err != nil || slices.Contains(unheld, RowGit) == v.Git) {
			t.Errorf("git's row in a session's view: %v, %v", unheld, err)
		}
	}
	dir := t.TempDir()
	script := func(line string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-ec", line, "sh"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s: %v", out, err)
		}
		return strings.TrimSpace(string(out))
	}
	secret := script(`git init -q clone; git init -q other; cd other; echo secret > file; git hash-object -w file`)
	mark := filepath.Join(dir, "mark")
	script("cd clone; "+strings.Replace(gitTrial, "! git cat-file", "git cat-file", 1)+" && echo read > ../read", mark,
		filepath.Join(dir, "other", ".git", "objects"), secret)
	for _, name := range []string{mark, filepath.Join(dir, "read")} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("outside of a view it does not work, so it proves nothing: %v", err)
		}
	}
}
