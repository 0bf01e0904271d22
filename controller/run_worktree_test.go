package controller

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/view"
)

// TestRunInAWorktree checks that a run with a worktree works only there. At its end the checkout is
// removed, and uncommitted changes are kept under a ref.
func TestRunInAWorktree(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
		cmd.Dir = y.dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	flow := y.file("flow.yaml", fmt.Sprintf("name: tree\nsteps:\n  - id: write\n    command: %s\n", quoted("pwd > where; echo new > made.txt; "+report(``))))
	git("init", "-q", ".")
	git("add", "flow.yaml")
	git("commit", "-qm", "first")
	y.start(view.RunFlags{Workflow: flow, RunID: "w1", GitWorktree: true})
	if view := y.until("w1", "it completes", over); view.Status != "completed" {
		t.Fatalf("%+v", view)
	}
	tree := filepath.Join(y.dir, ".agents", "worktrees", "w1")
	y.until("w1", "the worktree is gone", func(view.RunView) bool { _, err := os.Lstat(tree); return os.IsNotExist(err) })
	if _, err := os.Lstat(filepath.Join(y.dir, "made.txt")); err == nil {
		t.Error("it wrote into the repository itself")
	}
	if got := git("show", "refs/fairlead/runs/w1:made.txt"); got != "new" {
		t.Errorf("kept: %q", got)
	}
	if got := git("show", "refs/fairlead/runs/w1:where"); got != tree {
		t.Errorf("it worked in %s, want %s", got, tree)
	}
}
