package app

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestRunInAWorktree checks that a run with a worktree works only there. At its end the checkout is
// removed, and uncommitted changes are kept under a ref.
func TestRunInAWorktree(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	git := y.git
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: tree\nsteps:\n  - id: write\n    command: %s\n", quoted("pwd > where; echo new > made.txt; "+report(``))))
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

// git runs git in the repository.
func (y *runWorld) git(args ...string) string {
	y.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Dir = y.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		y.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestResumeWithoutItsFiles has a run of which nothing has arrived from the previous leader. A person lets it go on: that is
// refused while its branch is missing, and makes its checkout otherwise.
func TestResumeWithoutItsFiles(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: tree\nsteps:\n  - id: ask\n    human_in_the_loop: true\n    command: [\"true\"]\n  - id: write\n    needs: [ask]\n    command: %s\n", quoted("pwd > where; "+report(``))))
	y.git("init", "-q", ".")
	y.git("add", "flow.yaml")
	y.git("commit", "-qm", "first")
	y.start(view.RunFlags{Workflow: flow, RunID: "w1", GitWorktree: true, PauseForHumans: true})
	y.until("w1", "a person is asked", func(v view.RunView) bool { return v.Status == "waiting" })
	ok(y.Loop.View(t.Context(), func(now *team.Team) {
		note := now.Notes["w1"]
		note.Away = "c"
		now.Notes["w1"] = note
	}))
	tree := filepath.Join(y.dir, ".agents", "worktrees", "w1")
	ok(os.RemoveAll(tree))
	y.git("branch", "-D", "fairlead/w1")
	ok(os.RemoveAll(filepath.Join(y.dir, ".agents", "runs", "w1")))

	_, err := y.Runs.Answer(t.Context(), human, "w1", "ask", view.StepAnswer{})
	ok(err)
	y.until("w1", "the next step waits for them", func(v view.RunView) bool {
		return strings.Contains(strings.Join(v.Waits, "; "), "which led before") && v.Steps[1].Status == "RUNNING"
	})
	_, err = y.Runs.ReleaseRun(t.Context(), human, "w1", "")
	if refused, is := errors.AsType[*table.Refusal](err); !is || !strings.Contains(refused.Reason, "`git branch fairlead/w1 COMMIT`") {
		t.Errorf("without its branch: %v", err)
	}
	if v := y.until("w1", "it is shown", func(view.RunView) bool { return true }); v.Away != "c" {
		t.Errorf("it waits for %q", v.Away)
	}
	y.git("branch", "fairlead/w1")
	_, err = y.Runs.ReleaseRun(t.Context(), human, "w1", "")
	ok(err)
	if v := y.until("w1", "it completes", over); v.Status != "completed" || v.Steps[1].Attempts != 1 {
		t.Fatalf("%+v", v)
	}
	y.until("w1", "the worktree is gone", func(view.RunView) bool { _, err := os.Lstat(tree); return os.IsNotExist(err) })
	if got := y.git("show", "refs/fairlead/runs/w1:where"); got != tree {
		t.Errorf("it worked in %s, want %s", got, tree)
	}
}

// TestItemsAfterNewestFiles has a loop whose items are in a file that has not arrived from the previous leader.
func TestItemsAfterNewestFiles(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	flow := y.file("flow.yaml",
		fmt.Sprintf("name: tree\nsteps:\n  - id: ask\n    human_in_the_loop: true\n    command: [\"true\"]\n  - id: each\n    needs: [ask]\n    loop: {items_from_artifact: list.json}\n    command: %s\n  - id: beside\n    needs: [ask]\n    command: [\"true\"]\n", quoted(report(``))))
	y.git("init", "-q", ".")
	y.git("add", "flow.yaml")
	y.git("commit", "-qm", "first")
	y.start(view.RunFlags{Workflow: flow, RunID: "w1", GitWorktree: true, PauseForHumans: true})
	y.until("w1", "a person is asked", func(v view.RunView) bool { return v.Status == "waiting" })
	if err := y.Loop.View(t.Context(), func(now *team.Team) {
		note := now.Notes["w1"]
		note.Away = "c"
		now.Notes["w1"] = note
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Runs.Answer(t.Context(), human, "w1", "ask", view.StepAnswer{}); err != nil {
		t.Fatal(err)
	}
	y.until("w1", "the other step waits for its files", func(v view.RunView) bool {
		return strings.Contains(strings.Join(v.Waits, "; "), "which led before") && v.Steps[2].Status == "RUNNING"
	})
	y.file(".agents/worktrees/w1/list.json", `["one"]`)
	if _, err := y.Runs.ReleaseRun(t.Context(), human, "w1", ""); err != nil {
		t.Fatal(err)
	}
	if v := y.until("w1", "it is over", over); v.Status != "completed" {
		t.Errorf("%+v", v)
	}
}
