package runs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// untidy leaves work of every kind in a checkout.
func untidy(y *gitYard, dir string) {
	y.t.Helper()
	y.write(dir, "changed.txt", "after\n")
	if err := os.Remove(filepath.Join(dir, "deleted.txt")); err != nil {
		y.t.Fatal(err)
	}
	y.write(dir, "new.txt", "untracked\n")
	y.write(dir, "deep/er/new.bin", "\x00\xff\r\n\x00 binary")
	y.write(dir, "notes.ignored", "a secret of the build")
	y.write(dir, "out/result", "ignored, with its folder")
	y.write(dir, "odd \"name\"\n\té\\.txt", "odd")
	y.write(dir, "staged.txt", "staged first\n")
	y.git(dir, "add", "staged.txt")
	y.write(dir, "staged.txt", "then written over\n")
	y.write(dir, "lost.txt", "staged, and then deleted\n")
	y.git(dir, "add", "lost.txt")
	if err := os.Remove(filepath.Join(dir, "lost.txt")); err != nil {
		y.t.Fatal(err)
	}
	y.git(dir, "update-index", "--assume-unchanged", "sub/inner.txt")
	y.write(dir, "sub/inner.txt", "git was told not to look\n")
	y.git(dir, "rm", "-q", "--cached", "kept.txt")
	y.write(dir, "run.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		y.t.Fatal(err)
	}
	if err := os.Symlink("/etc/nothing here", filepath.Join(dir, "link")); err != nil {
		y.t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		y.t.Fatal(err)
	}
	y.write(dir, "readonly/file.ignored", "in a folder that cannot be written")
	if err := os.Chmod(filepath.Join(dir, "readonly"), 0o500); err != nil {
		y.t.Fatal(err)
	}
}

func isUntidy(y *gitYard, ref string) {
	y.t.Helper()
	for path, want := range map[string]string{
		"kept.txt": "as it was\n", "changed.txt": "after\n", "new.txt": "untracked\n", "deep/er/new.bin": "\x00\xff\r\n\x00 binary",
		"notes.ignored": "a secret of the build", "out/result": "ignored, with its folder", "odd \"name\"\n\té\\.txt": "odd",
		"staged.txt": "then written over\n", "sub/inner.txt": "git was told not to look\n", "run.sh": "#!/bin/sh\n",
		"link":                  "/etc/nothing here",
		"readonly/file.ignored": "in a folder that cannot be written",
	} {
		y.holds(ref, path, want)
	}
	y.holds(ref+"^2", "lost.txt", "staged, and then deleted\n")
	y.holds(ref+"^2", "staged.txt", "staged first\n")
	if modes := y.git(y.dir, "ls-tree", ref, "run.sh", "link", "deleted.txt", "lost.txt"); strings.Count(modes, "\n") != 1 ||
		!strings.Contains(modes, "100755") || !strings.Contains(modes, "120000") {
		y.t.Errorf("the tree is wrong:\n%s", modes)
	}
}

func TestWorktreeEndKeepsEverything(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	// Filters would change what is kept, and one fails.
	y.git(y.dir, "config", "core.autocrlf", "input")
	y.git(y.dir, "config", "filter.broken.clean", "false")
	y.git(y.dir, "config", "filter.broken.required", "true")
	y.write(y.dir, ".git/info/attributes", "new.txt filter=broken\n")
	req := y.make("r1", view.RunFlags{})
	dir := req.how.Worktree
	y.write(dir, "mine.txt", "committed")
	y.git(dir, "add", "mine.txt")
	y.git(dir, "-c", "user.name=Agent", "-c", "user.email=agent@example.com", "commit", "-q", "-m", "work")
	head := y.git(dir, "rev-parse", "HEAD")
	untidy(y, dir)
	index := y.git(y.dir, "status", "--porcelain")
	end := y.end(req)
	if !end.Removed || end.Ref != "refs/fairlead/runs/r1" {
		t.Fatalf("it ended as %+v\n%s", end, y.logged.String())
	}
	isUntidy(y, end.Ref)
	y.holds(end.Ref, "mine.txt", "committed")
	if parent := y.git(y.dir, "rev-parse", end.Ref+"^1"); parent != head || y.git(y.dir, "rev-parse", "fairlead/r1") != head {
		t.Errorf("the commit is on %s, and its branch was at %s", parent, head)
	}
	if !strings.Contains(y.logged.String(), "kept_as=refs/fairlead/runs/r1") {
		t.Errorf("the log does not say where it is:\n%s", y.logged.String())
	}
	y.gone(dir)
	if now := y.git(y.dir, "status", "--porcelain"); now != index {
		t.Errorf("the repository's own index was touched:\n%s\n%s", index, now)
	}
	if again := y.end(req); !again.Removed || again.Ref != "" {
		t.Errorf("once more it is %+v", again)
	}
	y.git(y.dir, "fsck", "--strict", "--no-dangling")
}

// A run that goes on has everything again; what it is kept as then holds what was kept before.
func TestWorktreeComesBack(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		y := newGitYard(t)
		req := y.make("r1", view.RunFlags{})
		dir := req.how.Worktree
		untidy(y, dir)
		first := y.git(y.dir, "rev-parse", y.end(req).Ref)
		if taken {
			y.git(y.dir, "checkout", "-q", "fairlead/r1") // by a person, to look at it
		}
		for range 2 {
			if err := y.engine.reviveWorktree(t.Context(), req.id, req.repo, req.how); err != nil {
				t.Fatal(err)
			}
		}
		for path, want := range map[string]string{
			"changed.txt": "after\n", "new.txt": "untracked\n",
			"out/result": "ignored, with its folder", "sub/inner.txt": "git was told not to look\n",
		} {
			if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(text) != want {
				t.Errorf("%s is %q now (%v)", path, text, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "deleted.txt")); err == nil {
			t.Error("what was deleted came back")
		}
		head, _ := exec.Command("git", "-C", dir, "symbolic-ref", "--short", "-q", "HEAD").Output()
		if on := strings.TrimSpace(string(head)); on != "fairlead/r1" {
			t.Errorf("it is on branch %q; a person has it, too: %v", on, taken)
		}
		y.write(dir, "more.txt", "of the second time")
		end := y.end(req)
		y.holds(end.Ref, "more.txt", "of the second time")
		y.holds(end.Ref, "new.txt", "untracked\n")
		y.git(y.dir, "merge-base", "--is-ancestor", first, end.Ref)
		y.gone(dir)
	}
}

func (y *gitYard) remove(path string) {
	y.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		y.t.Fatal(err)
	}
}

// A repository that took the place of the clone's is the agent's, too, and all of it is kept.
func TestWorktreeBegunAnew(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	req := y.make("r1", view.RunFlags{})
	dir := req.how.Worktree
	y.remove(filepath.Join(dir, ".git"))
	y.git(dir, "init", "-q")
	y.write(dir, "mine.txt", "committed\n")
	y.commit(dir, "mine")
	y.write(dir, "new.txt", "untracked\n")
	end := y.end(req)
	if !end.Removed || !strings.Contains(end.Left, "no branch of this name") {
		t.Fatalf("it ended as %+v", end)
	}
	y.holds(end.Ref, "new.txt", "untracked\n")
	y.holds(end.Ref+"^1", "mine.txt", "committed\n")
}

func TestWorktreeStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(y *gitYard, dir string)
		why   string
	}{
		"a repository inside": {func(y *gitYard, dir string) {
			y.write(dir, "nested/file", "of its own")
			y.git(filepath.Join(dir, "nested"), "init", "-q")
		}, "nested"},
		"a repository in an ignored folder": {func(y *gitYard, dir string) {
			y.write(dir, "out/nested/file", "of its own")
			y.git(filepath.Join(dir, "out/nested"), "init", "-q")
		}, "out/nested"},
		"a submodule": {func(y *gitYard, dir string) {
			y.git(dir, "submodule", "add", "-q", y.dir, "mod")
		}, "submodule"},
		"a submodule that lost its .git": {func(y *gitYard, dir string) {
			y.git(dir, "update-index", "--add", "--cacheinfo", "160000,"+y.git(dir, "rev-parse", "HEAD")+",mod")
			y.git(dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "mod")
			y.write(dir, "mod/file", "git does not look here")
		}, "a submodule in it: mod"},
		"a merge half done": {func(y *gitYard, dir string) {
			y.git(dir, "checkout", "-q", "-b", "side")
			y.write(dir, "changed.txt", "side\n")
			y.commit(dir, "side")
			y.git(dir, "checkout", "-q", "fairlead/r1")
			y.write(dir, "changed.txt", "ours\n")
			y.commit(dir, "ours")
			_ = exec.Command("git", "-C", dir, "-c", "core.hooksPath="+os.DevNull, "-c", "user.name=A", "-c", "user.email=a@example.com",
				"merge", "-q", "side").Run()
		}, "a merge"},
		"its own .git is gone": {func(y *gitYard, dir string) {
			y.remove(filepath.Join(dir, ".git"))
		}, "no longer a clone"},
		"a file took the place of its .git": {func(y *gitYard, dir string) {
			y.remove(filepath.Join(dir, ".git"))
			y.write(dir, ".git", "gitdir: "+filepath.Join(y.dir, ".git")+"\n")
		}, "no longer a clone"},
		"a link took the place of its .git": {func(y *gitYard, dir string) {
			y.remove(filepath.Join(dir, ".git"))
			if err := os.Symlink(filepath.Join(y.dir, ".git"), filepath.Join(dir, ".git")); err != nil {
				y.t.Fatal(err)
			}
		}, "no longer a clone"},
		"its index is broken":   {func(y *gitYard, dir string) { y.write(dir, ".git/index", "DIRC and more") }, "its index cannot be read"},
		"its index is in parts": {func(y *gitYard, dir string) { y.git(dir, "update-index", "--split-index") }, "its index is in parts"},
		"its commits are broken": {func(y *gitYard, dir string) {
			y.write(dir, ".git/refs/heads/fairlead/r1", strings.Repeat("1", 40)+"\n")
		}, "its commits cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newGitYard(t)
			req := y.make("r1", view.RunFlags{})
			y.write(req.how.Worktree, "new.txt", "untracked\n")
			c.spoil(y, req.how.Worktree)
			end := y.end(req)
			if end.Removed || !strings.Contains(end.Stays, c.why) {
				t.Errorf("it ended as %+v, and should stay for %q", end, c.why)
			}
			if text, err := os.ReadFile(filepath.Join(req.how.Worktree, "new.txt")); err != nil || string(text) != "untracked\n" {
				t.Errorf("new.txt is %q (%v)", text, err)
			}
		})
	}
	t.Run("asked for", func(t *testing.T) {
		y := newGitYard(t)
		req := y.make("r1", view.RunFlags{WorktreeKeep: true})
		if end := y.end(req); end.Removed || end.Stays == "" {
			t.Errorf("it ended as %+v", end)
		}
	})
}

// Whatever a crash leaves is found by the next call, and nothing of it is lost.
func TestWorktreeEndAfterACrash(t *testing.T) {
	t.Parallel()
	kept := func(y *gitYard, w *worktree.Checkout) {
		files, err := worktree.WalkTree(y.t.Context(), w.Dir)
		if err == nil {
			err = w.Keep(y.t.Context(), files)
		}
		if err != nil {
			y.t.Fatal(err)
		}
	}
	moved := func(y *gitYard, from, to string) {
		if err := os.Rename(from, to); err != nil {
			y.t.Fatal(err)
		}
	}
	for name, crash := range map[string]func(y *gitYard, w *worktree.Checkout){
		"it was kept": kept,
		"it was moved aside": func(y *gitYard, w *worktree.Checkout) {
			kept(y, w)
			moved(y, w.Dir, worktree.Aside(w.Dir, worktree.LeavingSuffix))
		},
		"it was to be deleted": func(y *gitYard, w *worktree.Checkout) {
			kept(y, w)
			moved(y, w.Dir, worktree.Aside(w.Dir, worktree.GoneSuffix))
		},
		"it was half deleted": func(y *gitYard, w *worktree.Checkout) {
			kept(y, w)
			moved(y, w.Dir, worktree.Aside(w.Dir, worktree.GoneSuffix))
			os.RemoveAll(filepath.Join(worktree.Aside(w.Dir, worktree.GoneSuffix), "new.txt"))
		},
		"git had forgotten it too": func(y *gitYard, w *worktree.Checkout) {
			kept(y, w)
			moved(y, w.Dir, worktree.Aside(w.Dir, worktree.GoneSuffix))
			y.git(y.dir, "worktree", "prune")
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newGitYard(t)
			req := y.make("r1", view.RunFlags{})
			untidy(y, req.how.Worktree)
			crash(y, &worktree.Checkout{Id: req.id, Repo: worktree.Git{Dir: req.repo}, Dir: req.how.Worktree, Branch: "fairlead/r1"})
			if end := y.end(req); !end.Removed || end.Ref == "" {
				t.Fatalf("it ended as %+v", end)
			}
			isUntidy(y, worktree.KeptRefs+"r1")
			y.gone(req.how.Worktree)
		})
	}
}

// What is written while it is kept is not deleted.
func TestWorktreeIsStillWrittenTo(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	req := y.make("r1", view.RunFlags{})
	dir := req.how.Worktree
	y.write(dir, "new.txt", "long enough")
	w := &worktree.Checkout{Id: req.id, Repo: worktree.Git{Dir: req.repo}, Dir: dir, Branch: "fairlead/r1"}
	files, err := worktree.WalkTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	y.write(dir, "new.txt", "shorter")
	var stay worktree.Stays
	if err := w.Keep(t.Context(), files); !errors.As(err, &stay) {
		t.Errorf("a file that shrank is kept: %v", err)
	}
	if refs := y.git(y.dir, "for-each-ref", worktree.KeptRefs); refs != "" {
		t.Errorf("half a commit is there: %s", refs)
	}
	if dumps, _ := filepath.Glob(filepath.Join(y.dir, ".git/fast_import_crash_*")); len(dumps) > 0 {
		t.Errorf("git left %q", dumps)
	}
}

func TestWorktreeOfNoCommit(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	req := y.make("r1", view.RunFlags{})
	dir := req.how.Worktree
	y.git(dir, "checkout", "-q", "--orphan", "fresh")
	y.write(dir, "new.txt", "untracked\n")
	end := y.end(req)
	if !end.Removed {
		t.Fatalf("it ended as %+v", end)
	}
	y.holds(end.Ref, "new.txt", "untracked\n")
	y.holds(end.Ref, "kept.txt", "as it was\n")
	if err := y.engine.reviveWorktree(t.Context(), req.id, req.repo, req.how); err == nil ||
		!strings.Contains(err.Error(), "had no commit") {
		t.Errorf("it came back: %v", err)
	}
}

func TestGitPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"a b": `"a b"`, "a\"\\\n": `"a\"\\\012"`, "é\xff": "\"é\xff\""} {
		if got := worktree.GitPath(path); got != want {
			t.Errorf("%q is quoted as %s, not %s", path, got, want)
		}
	}
}

// gitWrapper puts a program before git that runs a shell script first, with N the number of the call.
func gitWrapper(t *testing.T, script string) (calls func() int) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	text := "#!/bin/sh\necho >> '" + count + "'\nN=$(wc -l < '" + count + "')\n" + script + "\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() int {
		lines, _ := os.ReadFile(count)
		return len(lines)
	}
}

// The machine goes down at one call of git (with FAIRLEAD_LONG=ci at each of them in turn, else at
// every third); the next engine finishes, and all is kept.
func TestWorktreeEndKilledAnywhere(t *testing.T) {
	for n, over := 1, false; !over; n += testsize.Pick(3, 1, 1) {
		t.Run(fmt.Sprint("call=", n), func(t *testing.T) {
			y := newGitYard(t)
			req := y.make("r1", view.RunFlags{})
			untidy(y, req.how.Worktree)
			path := os.Getenv("PATH")
			calls := gitWrapper(t, fmt.Sprintf("[ $N = %d ] && kill -9 $$", n))
			_, err := y.engine.endWorktree(t.Context(), req.id, req.repo, req.how)
			if over = calls() < n; over != (err == nil) {
				t.Errorf("git was called %d times and was killed at call %d; it says %v", calls(), n, err)
			}
			t.Setenv("PATH", path)
			y.end(req)
			isUntidy(y, worktree.KeptRefs+"r1")
			y.gone(req.how.Worktree)
		})
	}
}

// Another program writes into the worktree after it was kept and before it is removed.
func TestWorktreeIsWrittenToAtTheEnd(t *testing.T) {
	y := newGitYard(t)
	req := y.make("r1", view.RunFlags{})
	dir := req.how.Worktree
	y.write(dir, "new.txt", "before")
	path := os.Getenv("PATH")
	gitWrapper(t, `case "$*" in *rev-parse*refs/fairlead/runs/r1*) printf after > '`+dir+`/late.txt';; esac`)
	end := y.end(req)
	if end.Removed || !strings.Contains(end.Stays, "another process still works there") {
		t.Errorf("it ended as %+v", end)
	}
	t.Setenv("PATH", path)
	if end = y.end(req); !end.Removed {
		t.Errorf("it ended as %+v", end)
	}
	y.holds(end.Ref, "late.txt", "after")
	y.holds(end.Ref, "new.txt", "before")
}
