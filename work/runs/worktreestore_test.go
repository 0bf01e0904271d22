package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/worktree/store"
	"github.com/fairlead-dev/fairlead/read/view"
)

// borrows is what a clone borrows, and where it fetches from.
func (y *gitYard) borrows(clone string) (alternates, origin string) {
	y.t.Helper()
	text, err := os.ReadFile(filepath.Join(clone, ".git", "objects", "info", "alternates"))
	if err != nil {
		y.t.Fatal(err)
	}
	return strings.TrimSpace(string(text)), y.git(clone, "config", "remote.origin.url")
}

func (y *gitYard) change(dir, text string) {
	y.t.Helper()
	y.write(dir, "changed.txt", text)
	y.commit(dir, text)
}

// A run's clone shares Fairlead's copy of the repository, fetches from it, and has what the copy lacks; so does one that is made again.
func TestCloneOfFairleadsCopy(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	base := y.git(y.dir, "rev-parse", "main")
	y.git(y.dir, "branch", "private")
	y.git(y.dir, "checkout", "-q", "--detach")
	y.change(y.dir, "on no branch")
	loose := y.git(y.dir, "rev-parse", "HEAD")
	y.git(y.dir, "checkout", "-q", "main")
	req := y.make("r1", view.RunFlags{WorktreeRef: loose})
	clone, ours := req.how.Worktree, store.Of(y.dir).Dir
	is := func(when string) {
		t.Helper()
		alternates, origin := y.borrows(clone)
		if alternates != filepath.Join(ours, "objects") || origin != ours {
			t.Errorf("%s it borrows %q and fetches from %q, and not from %s", when, alternates, origin, ours)
		}
		y.git(clone, "fetch", "-q", "origin", "main")
		if got := y.git(clone, "rev-parse", "FETCH_HEAD"); got != base {
			t.Errorf("%s its main is at %s, and not at %s", when, got, base)
		}
	}
	is("new,")
	if head := y.git(clone, "rev-parse", "HEAD"); head != loose {
		t.Errorf("it is at %s, and not at %s", head, loose)
	}
	if got := y.git(clone, "for-each-ref", "--format=%(refname)", "refs/remotes"); got != "refs/remotes/origin/main" {
		t.Errorf("it has the branches %s", got)
	}
	y.change(y.dir, "newer")
	base = y.git(y.dir, "rev-parse", "main")
	y.git(y.dir, "checkout", "-q", "--detach")
	if err := y.engine.refresh(t.Context(), y.dir, ""); err != nil {
		t.Fatal(err)
	}
	is("refreshed,")
	y.change(clone, "by the run")
	y.write(clone, "loose.txt", "not committed")
	done := y.git(clone, "rev-parse", "HEAD")
	y.end(req)
	y.gone(clone)
	y.git(y.dir, "checkout", "-q", "main")
	y.change(y.dir, "newest")
	base = y.git(y.dir, "rev-parse", "main")
	if err := y.engine.reviveWorktree(t.Context(), "r1", y.dir, req.how); err != nil {
		t.Fatal(err)
	}
	is("made again,")
	if head := y.git(clone, "rev-parse", "HEAD"); head != done {
		t.Errorf("made again, it is at %s, and not at %s", head, done)
	}
	y.git(clone, "fsck", "--full")
}

// A run in another repository has a copy of that one, and the copy of the workspace's has nothing of it.
func TestCloneOfAnotherRepository(t *testing.T) {
	t.Parallel()
	y, other := newGitYard(t), newGitYard(t)
	other.change(other.dir, "of the other one")
	head := other.git(other.dir, "rev-parse", "main")
	other.engine = y.engine
	req := other.make("r1", view.RunFlags{})
	alternates, origin := y.borrows(req.how.Worktree)
	above := filepath.Join(y.dir, ".fairlead", store.OthersDir)
	if filepath.Dir(origin) != above || alternates != filepath.Join(origin, "objects") {
		t.Errorf("it borrows %q and fetches from %q, and not from a copy in %s", alternates, origin, above)
	}
	if got := y.git(origin, "rev-parse", "main"); got != head {
		t.Errorf("the copy is at %s, and not at %s", got, head)
	}
	if _, err := os.Lstat(store.Of(y.dir).Dir); err == nil {
		t.Error("there is a copy of the workspace's repository")
	}
	y.change(req.how.Worktree, "by the run")
	if left := other.bring(req); left != "" {
		t.Errorf("the branch was left: %s", left)
	}
}

// The copy has the branch that a run begins with, too.
func TestCloneOfABranch(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	y.git(y.dir, "branch", "release")
	req := y.make("r1", view.RunFlags{WorktreeRef: "release"})
	if got := y.git(req.how.Worktree, "for-each-ref", "--format=%(refname)",
		"refs/remotes"); got != "refs/remotes/origin/main\nrefs/remotes/origin/release" {
		t.Errorf("it has the branches %s", got)
	}
}

// A run's folder of a larger repository is of that repository.
func TestCloneForAFolder(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	y.write(y.dir, "below/a.txt", "a")
	y.commit(y.dir, "a folder")
	req := &runRequest{id: "r1", repo: filepath.Join(y.dir, "below")}
	if err := y.engine.makeWorktree(t.Context(), req, view.RunFlags{}); err != nil {
		t.Fatal(err)
	}
	if _, origin := y.borrows(req.how.Worktree); origin != store.Of(y.dir).Dir {
		t.Errorf("it fetches from %s", origin)
	}
	y.fails(req.how.Worktree, "push", "-q", y.dir, "HEAD:main")
}
