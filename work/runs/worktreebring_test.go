package runs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/read/view"
)

// bring brings the branch of a run into the repository, and returns why it was left.
func (y *gitYard) bring(req *runRequest) string {
	y.t.Helper()
	left, err := y.engine.bring(y.t.Context(), y.engine.clone(req.id, req.repo, req.how))
	if err != nil {
		y.t.Fatal(err)
	}
	return left
}

// fails has git fail.
func (y *gitYard) fails(dir string, args ...string) {
	y.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err == nil {
		y.t.Errorf("git %q succeeds: %s", args, out)
	}
}

func (y *gitYard) work(dir, name string) string {
	y.t.Helper()
	y.write(dir, name, name)
	y.commit(dir, name)
	return y.git(dir, "rev-parse", "HEAD")
}

// The branch of a run is moved in the repository only if that is a step forward that takes nothing from a person.
func TestBringBranch(t *testing.T) {
	t.Parallel()
	const branch = "topic/one"
	for name, c := range map[string]struct {
		before func(y *gitYard, dir string)             // after one commit was brought
		want   func(y *gitYard, was, tip string) string // where the branch is then; empty: it is not there
		why    string                                   // why it was left; empty: it was not
	}{
		"it goes on": {nil, func(_ *gitYard, _, tip string) string { return tip }, ""},
		"a person has it, and nothing else": {
			func(y *gitYard, _ string) { y.git(y.dir, "branch", "mine", branch) }, func(_ *gitYard, _, tip string) string { return tip },
			"",
		},
		"a person has a commit on it": {func(y *gitYard, _ string) {
			y.git(y.dir, "checkout", "-q", branch)
			y.work(y.dir, "mine")
			y.git(y.dir, "checkout", "-q", "main")
		}, func(y *gitYard, _, _ string) string {
			return y.git(y.dir, "log", "-1", "--format=%H", "--all", "--grep=^mine$")
		}, "git merge"},
		"a person is on it": {
			func(y *gitYard, _ string) { y.git(y.dir, "checkout", "-q", branch) }, func(_ *gitYard, was, _ string) string { return was },
			"merge --ff-only",
		},
		"a person has deleted it": {
			func(y *gitYard, _ string) { y.git(y.dir, "branch", "-q", "-D", branch) },
			func(_ *gitYard, _, tip string) string { return tip }, "",
		},
		"a branch has taken its place": {func(y *gitYard, _ string) {
			y.git(y.dir, "branch", "-q", "-D", branch)
			y.git(y.dir, "branch", "topic")
		}, func(*gitYard, string, string) string { return "" }, "git does not move it"},
		"the agent has another history": {
			func(_ *gitYard, _ string) {}, func(_ *gitYard, was, _ string) string { return was },
			"git merge",
		},
		"the agent has deleted it": {
			func(_ *gitYard, _ string) {}, func(_ *gitYard, was, _ string) string { return was },
			"no branch of this name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newGitYard(t)
			req := y.make("r1", view.RunFlags{WorktreeBranch: branch})
			dir := req.how.Worktree
			first := y.git(y.dir, "rev-parse", branch)
			if left := y.bring(req); left != "" || y.git(y.dir, "rev-parse", branch) != first {
				t.Errorf("without a commit: %q", left)
			}
			was := y.work(dir, "one")
			if left := y.bring(req); left != "" || y.git(y.dir, "rev-parse", branch) != was {
				t.Fatalf("the first commit: %q", left)
			}
			if c.before != nil {
				c.before(y, dir)
			}
			if name == "the agent has another history" {
				y.git(dir, "reset", "-q", "--hard", "HEAD^")
			}
			tip := y.work(dir, "two")
			if name == "the agent has deleted it" {
				y.git(dir, "checkout", "-q", "--detach")
				y.git(dir, "branch", "-q", "-D", branch)
			}
			for range 2 {
				if left := y.bring(req); (left == "") != (c.why == "") || !strings.Contains(left, c.why) {
					t.Errorf("left: %q", left)
				}
				at := y.git(y.dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
				if want := c.want(y, was, tip); at != want {
					t.Errorf("it is at %s, not at %s", at, want)
				}
			}
			end := y.end(req)
			if !end.Removed || (end.Left == "") != (c.why == "") {
				t.Errorf("it ended as %+v", end)
			}
			y.holds(end.Ref, "two", "two") // whatever became of the branch
		})
	}
}

// A branch that a person has moved back or deleted stays so until there are new commits.
func TestBringNothingNew(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"branch", "-q", "-D", "fairlead/r1"}, {"branch", "-q", "--force", "fairlead/r1", "fairlead/r1^"}} {
		y := newGitYard(t)
		req := y.make("r1", view.RunFlags{})
		y.work(req.how.Worktree, "one")
		y.bring(req)
		y.git(y.dir, args...)
		was := y.git(y.dir, "for-each-ref", "refs/heads")
		if left := y.bring(req); left != "" || y.git(y.dir, "for-each-ref", "refs/heads") != was {
			t.Errorf("%q: it is moved again, or said: %q", args, left)
		}
		y.work(req.how.Worktree, "two")
		y.bring(req)
		y.holds("fairlead/r1", "two", "two")
	}
}

// The machine goes down at one call of git; the next engine brings the branch.
func TestBringKilledAnywhere(t *testing.T) {
	for n, over := 1, false; !over; n += testsize.Pick(2, 1, 1) {
		t.Run(fmt.Sprint("call=", n), func(t *testing.T) {
			y := newGitYard(t)
			req := y.make("r1", view.RunFlags{})
			tip := y.work(req.how.Worktree, "one")
			path := os.Getenv("PATH")
			calls := gitWrapper(t, fmt.Sprintf("[ $N = %d ] && kill -9 $$", n))
			_, err := y.engine.bring(t.Context(), y.engine.clone(req.id, req.repo, req.how))
			if over = calls() < n; over != (err == nil) {
				t.Errorf("git was called %d times and was killed at call %d; it says %v", calls(), n, err)
			}
			t.Setenv("PATH", path)
			if left := y.bring(req); left != "" {
				t.Errorf("left: %q", left)
			}
			if at := y.git(y.dir, "rev-parse", "fairlead/r1"); at != tip {
				t.Errorf("it is at %s, not at %s", at, tip)
			}
		})
	}
}

// Other branches, tags and stashes of the clone are kept when it is removed, and are there again when it comes back.
func TestOtherRefsAreKept(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	req := y.make("r1", view.RunFlags{})
	dir := req.how.Worktree
	who := []string{"-c", "user.name=A", "-c", "user.email=a@example.com"}
	y.git(dir, "checkout", "-q", "-b", "aside")
	aside := y.work(dir, "aside")
	y.git(dir, "tag", "mark")
	y.git(dir, "checkout", "-q", "fairlead/r1")
	for _, name := range []string{"first", "second"} {
		y.write(dir, "changed.txt", name)
		y.git(dir, append(who, "stash", "-q")...)
	}
	stash := y.git(dir, "rev-parse", "stash@{0}")
	end := y.end(req)
	if !end.Removed {
		t.Fatalf("it ended as %+v", end)
	}
	y.holds("refs/fairlead/clones/r1/refs/heads/aside", "aside", "aside")
	y.holds("refs/fairlead/clones/r1/refs/tags/mark", "aside", "aside")
	y.holds("refs/fairlead/clones/r1/refs/stash", "changed.txt", "second")
	y.holds("refs/fairlead/clones/r1/stashes/1", "changed.txt", "first")
	if branches := y.git(y.dir, "branch", "--list", "aside"); branches != "" {
		t.Errorf("the repository has %q", branches)
	}
	if err := y.engine.reviveWorktree(t.Context(), req.id, req.repo, req.how); err != nil {
		t.Fatal(err)
	}
	if y.git(dir, "rev-parse", "aside") != aside || y.git(dir, "rev-parse", "stash") != stash {
		t.Error("the branch or the stash did not come back")
	}
}

// A clone has who commits, what git does with line endings, and what it ignores, as the repository has them; it pushes nowhere.
func TestCloneIsLikeTheRepository(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	y.git(y.dir, "config", "user.name", "Ann")
	y.git(y.dir, "config", "user.email", "ann@example.com")
	y.git(y.dir, "config", "core.autocrlf", "true")
	y.write(y.dir, ".git/info/exclude", "*.mine\n")
	dir := y.make("r1", view.RunFlags{}).how.Worktree
	if text, err := os.ReadFile(filepath.Join(dir, "kept.txt")); err != nil || string(text) != "as it was\r\n" {
		t.Errorf("it holds %q (%v)", text, err)
	}
	y.write(dir, "x.mine", "")
	if dirty := y.git(dir, "status", "--porcelain"); dirty != "" {
		t.Errorf("git shows %q", dirty)
	}
	y.git(dir, "commit", "-q", "--allow-empty", "-m", "as Ann")
	if by := y.git(dir, "log", "-1", "--format=%an %ae"); by != "Ann ann@example.com" {
		t.Errorf("it is by %s", by)
	}
	y.git(dir, "fetch", "-q", "origin", "main")
	before := y.git(y.dir, "for-each-ref")
	for _, to := range []string{"origin", filepath.Join(y.dir, ".git"), "../../../.git"} {
		y.fails(dir, "push", "-q", to, "HEAD:main")
	}
	if now := y.git(y.dir, "for-each-ref"); now != before {
		t.Errorf("a push has moved\n%s\nto\n%s", before, now)
	}
}
