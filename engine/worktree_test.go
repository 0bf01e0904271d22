package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/machine"
)

// gitYard is a repository with one commit, and an engine that does nothing but log.
type gitYard struct {
	t      *testing.T
	dir    string
	engine *Engine
	logged bytes.Buffer
}

// newGitYard makes one in which git knows nobody's name, and has hooks that spoil everything.
func newGitYard(t *testing.T) *gitYard {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &gitYard{t: t, dir: dir}
	y.engine = &Engine{log: slog.New(slog.NewTextHandler(&y.logged, nil))}
	y.git(dir, "init", "-q", "-b", "main")
	y.write(dir, "kept.txt", "as it was\n")
	y.write(dir, "changed.txt", "before\n")
	y.write(dir, "deleted.txt", "I go\n")
	y.write(dir, "sub/inner.txt", "inner\n")
	y.write(dir, ".gitignore", "*.ignored\nout/\n")
	y.commit(dir, "begin")
	y.git(dir, "config", "user.useConfigOnly", "true") // and there is no name: an ordinary commit fails
	for _, hook := range []string{"pre-commit", "post-checkout", "reference-transaction", "commit-msg"} {
		y.write(dir, ".git/hooks/"+hook, "#!/bin/sh\necho spoiled by "+hook+" >&2\nexit 1\n")
		if err := os.Chmod(filepath.Join(dir, ".git/hooks", hook), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return y
}

func (y *gitYard) git(dir string, args ...string) string {
	y.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		y.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (y *gitYard) commit(dir, text string) {
	y.t.Helper()
	y.git(dir, "add", "-A")
	y.git(dir, "-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "commit", "-q", "-m", text)
}

func (y *gitYard) write(dir, name, text string) {
	y.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
}

// make has a run's worktree made.
func (y *gitYard) make(id string, flags RunFlags) *runRequest {
	y.t.Helper()
	req := &runRequest{id: id, repo: y.dir}
	if err := y.engine.makeWorktree(y.t.Context(), req, flags); err != nil {
		y.t.Fatal(err)
	}
	return req
}

func (y *gitYard) end(req *runRequest) worktreeEnd {
	y.t.Helper()
	end, err := y.engine.endWorktree(y.t.Context(), req.id, req.repo, req.how)
	if err != nil {
		y.t.Fatal(err)
	}
	return end
}

// holds fails where a commit does not hold a file with these bytes.
func (y *gitYard) holds(ref, path, want string) {
	y.t.Helper()
	cmd := exec.Command("git", "cat-file", "blob", ref+":"+path)
	cmd.Dir = y.dir
	got, err := cmd.Output()
	if err != nil || string(got) != want {
		y.t.Errorf("%s:%s holds %q (%v), not %q", ref, path, got, err, want)
	}
}

func (y *gitYard) gone(path string) {
	y.t.Helper()
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"+filepath.Base(path)+"*"))
	if _, err := os.Lstat(path); err == nil || len(left) > 0 {
		y.t.Errorf("%s is there still, or something of it: %q", path, left)
	}
	if list := y.git(y.dir, "worktree", "list"); strings.Contains(list, path) {
		y.t.Errorf("git still knows it:\n%s", list)
	}
}

func TestWorktreeIsMade(t *testing.T) {
	y := newGitYard(t)
	t.Setenv("GIT_DIR", "/nowhere") // as a daemon has that a hook started
	req := &runRequest{id: "r1", repo: y.dir}
	err := y.engine.makeWorktree(t.Context(), req, RunFlags{})
	os.Unsetenv("GIT_DIR")
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(y.dir, ".agents/worktrees/r1")
	if req.how.Worktree != want || req.how.Workdir != want || workedOn(y.dir, req.how) != want {
		t.Errorf("it is at %q and works in %q, not %s", req.how.Worktree, req.how.Workdir, want)
	}
	if branch := y.git(want, "symbolic-ref", "--short", "HEAD"); branch != "fairlead/r1" {
		t.Errorf("it is on %s", branch)
	}
	if dirty := y.git(y.dir, "status", "--porcelain"); dirty != "" {
		t.Errorf("the repository shows it as its own:\n%s", dirty)
	}
	if err := y.engine.dropWorktree(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	y.gone(want)
	y.make("r1", RunFlags{WorktreeRef: "main", WorktreeRoot: "elsewhere", WorktreeBranch: "topic/one"}) // the branch is free again, too
}

// A fairlead that works on a folder of a larger repository works on that folder of the checkout.
func TestWorktreeOfAFolder(t *testing.T) {
	y := newGitYard(t)
	req := &runRequest{id: "r1", repo: filepath.Join(y.dir, "sub")}
	if err := y.engine.makeWorktree(t.Context(), req, RunFlags{}); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(req.how.Worktree, "sub"); req.how.Workdir != want || workedOn(req.repo, req.how) != want {
		t.Errorf("it works in %q, on %q, not %s", req.how.Workdir, workedOn(req.repo, req.how), want)
	}
	if end := y.end(req); !end.Removed {
		t.Errorf("it stays: %+v", end)
	}
}

func TestWorktreeIsRefused(t *testing.T) {
	y := newGitYard(t)
	y.make("there", RunFlags{})
	bare, empty := t.TempDir(), t.TempDir()
	y.git(empty, "init", "-q")
	y.write(y.dir, "fresh/file", "in no commit")
	for _, c := range []struct {
		name, repo, id string
		flags          RunFlags
		want           string
	}{
		{"no repository", bare, "r", RunFlags{}, "git init"},
		{"no commit", empty, "r", RunFlags{}, "is no commit here"},
		{"the branch is there", y.dir, "r", RunFlags{WorktreeBranch: "main"}, "there is a branch main already"},
		{"the place is taken", y.dir, "there", RunFlags{WorktreeBranch: "other"}, "there is something at"},
		{"an unknown ref", y.dir, "r", RunFlags{WorktreeRef: "nosuch"}, "nosuch is no commit here"},
		{"a ref that is an option", y.dir, "r", RunFlags{WorktreeRef: "--output=x"}, "is no name"},
		{"a branch that is an option", y.dir, "r", RunFlags{WorktreeBranch: "-d"}, "is no name"},
		{"a branch that is none", y.dir, "r", RunFlags{WorktreeBranch: "a..b"}, "git takes no ref"},
		{"a branch under a branch", y.dir, "r", RunFlags{WorktreeBranch: "main/x"}, "cannot be made"},
		{"a run that is no ref", y.dir, "r.lock", RunFlags{}, "git takes no ref"},
		{"a run that climbs", y.dir, "../r", RunFlags{}, "choose another --run-id"},
		{"a folder in no commit", filepath.Join(y.dir, "fresh"), "r", RunFlags{}, "is not in HEAD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo, err := filepath.EvalSymlinks(c.repo)
			if err != nil {
				t.Fatal(err)
			}
			req := &runRequest{id: c.id, repo: repo}
			err = y.engine.makeWorktree(t.Context(), req, c.flags)
			var no *machine.Refusal
			if !errors.As(err, &no) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, and not %q", err, c.want)
			}
			if req.how.Worktree != "" {
				t.Error("it was made all the same")
			}
		})
	}
	t.Run("a link", func(t *testing.T) {
		y := newGitYard(t)
		y.write(y.dir, ".agents/x", "")
		if err := os.Symlink(t.TempDir(), filepath.Join(y.dir, ".agents/worktrees")); err != nil {
			t.Fatal(err)
		}
		if err := y.engine.makeWorktree(t.Context(), &runRequest{id: "r", repo: y.dir}, RunFlags{}); err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("it follows a link: %v", err)
		}
	})
	t.Run("no git", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if err := y.engine.makeWorktree(t.Context(), &runRequest{id: "r", repo: y.dir}, RunFlags{}); err == nil || !strings.Contains(err.Error(), "install git") {
			t.Errorf("without git it says %v", err)
		}
	})
}

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
		"staged.txt": "then written over\n", "sub/inner.txt": "git was told not to look\n", "run.sh": "#!/bin/sh\n", "link": "/etc/nothing here",
		"readonly/file.ignored": "in a folder that cannot be written",
	} {
		y.holds(ref, path, want)
	}
	y.holds(ref+"^2", "lost.txt", "staged, and then deleted\n")
	y.holds(ref+"^2", "staged.txt", "staged first\n")
	if modes := y.git(y.dir, "ls-tree", ref, "run.sh", "link", "deleted.txt", "lost.txt"); strings.Count(modes, "\n") != 1 || !strings.Contains(modes, "100755") || !strings.Contains(modes, "120000") {
		y.t.Errorf("the tree is wrong:\n%s", modes)
	}
}

func TestWorktreeEndKeepsEverything(t *testing.T) {
	y := newGitYard(t)
	// Filters would change what is kept, and one fails.
	y.git(y.dir, "config", "core.autocrlf", "input")
	y.git(y.dir, "config", "filter.broken.clean", "false")
	y.git(y.dir, "config", "filter.broken.required", "true")
	y.write(y.dir, ".git/info/attributes", "new.txt filter=broken\n")
	req := y.make("r1", RunFlags{})
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
	if again := y.end(req); again != end {
		t.Errorf("once more it is %+v, not %+v", again, end)
	}
	y.git(y.dir, "fsck", "--strict", "--no-dangling")
}

// A run that goes on has everything again; what it is kept as then holds what was kept before.
func TestWorktreeComesBack(t *testing.T) {
	for _, taken := range []bool{false, true} {
		y := newGitYard(t)
		req := y.make("r1", RunFlags{})
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
		for path, want := range map[string]string{"changed.txt": "after\n", "new.txt": "untracked\n", "out/result": "ignored, with its folder", "sub/inner.txt": "git was told not to look\n"} {
			if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(text) != want {
				t.Errorf("%s is %q now (%v)", path, text, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "deleted.txt")); err == nil {
			t.Error("what was deleted came back")
		}
		head, _ := exec.Command("git", "-C", dir, "symbolic-ref", "--short", "-q", "HEAD").Output()
		if on := strings.TrimSpace(string(head)); (on == "fairlead/r1") == taken {
			t.Errorf("it is on branch %q; somebody else has it: %v", on, taken)
		}
		y.write(dir, "more.txt", "of the second time")
		end := y.end(req)
		y.holds(end.Ref, "more.txt", "of the second time")
		y.holds(end.Ref, "new.txt", "untracked\n")
		y.git(y.dir, "merge-base", "--is-ancestor", first, end.Ref)
		y.gone(dir)
	}
}

func TestWorktreeStays(t *testing.T) {
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
			y.write(dir, "mod/file", "git does not look here")
		}, "a submodule in it: mod"},
		"a merge half done": {func(y *gitYard, dir string) {
			y.git(dir, "checkout", "-q", "-b", "side")
			y.write(dir, "changed.txt", "side\n")
			y.commit(dir, "side")
			y.git(dir, "checkout", "-q", "fairlead/r1")
			y.write(dir, "changed.txt", "ours\n")
			y.commit(dir, "ours")
			_ = exec.Command("git", "-C", dir, "-c", "core.hooksPath="+os.DevNull, "-c", "user.name=A", "-c", "user.email=a@example.com", "merge", "-q", "side").Run()
		}, "a merge"},
		"its own .git is gone": {func(y *gitYard, dir string) {
			if err := os.Remove(filepath.Join(dir, ".git")); err != nil {
				y.t.Fatal(err)
			}
		}, "no worktree any more"},
		"a repository took its place": {func(y *gitYard, dir string) {
			if err := os.Remove(filepath.Join(dir, ".git")); err != nil {
				y.t.Fatal(err)
			}
			y.git(dir, "init", "-q")
		}, "no worktree any more"},
		"locked": {func(y *gitYard, dir string) { y.git(y.dir, "worktree", "lock", dir) }, "locked"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newGitYard(t)
			req := y.make("r1", RunFlags{})
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
		req := y.make("r1", RunFlags{WorktreeKeep: true})
		if end := y.end(req); end.Removed || end.Stays == "" {
			t.Errorf("it ended as %+v", end)
		}
	})
}

// Whatever a crash leaves is found by the next call, and nothing of it is lost.
func TestWorktreeEndAfterACrash(t *testing.T) {
	kept := func(y *gitYard, w *checkout) {
		files, err := walkTree(y.t.Context(), w.git.dir)
		if err == nil {
			err = w.keep(y.t.Context(), files)
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
	for name, crash := range map[string]func(y *gitYard, w *checkout){
		"it was kept":          kept,
		"it was moved aside":   func(y *gitYard, w *checkout) { kept(y, w); moved(y, w.git.dir, aside(w.git.dir, leavingSuffix)) },
		"it was to be deleted": func(y *gitYard, w *checkout) { kept(y, w); moved(y, w.git.dir, aside(w.git.dir, goneSuffix)) },
		"it was half deleted": func(y *gitYard, w *checkout) {
			kept(y, w)
			moved(y, w.git.dir, aside(w.git.dir, goneSuffix))
			os.RemoveAll(filepath.Join(aside(w.git.dir, goneSuffix), "new.txt"))
		},
		"git had forgotten it too": func(y *gitYard, w *checkout) {
			kept(y, w)
			moved(y, w.git.dir, aside(w.git.dir, goneSuffix))
			y.git(y.dir, "worktree", "prune")
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newGitYard(t)
			req := y.make("r1", RunFlags{})
			untidy(y, req.how.Worktree)
			crash(y, &checkout{id: req.id, repo: git{req.repo}, git: git{req.how.Worktree}})
			if end := y.end(req); !end.Removed || end.Ref == "" {
				t.Fatalf("it ended as %+v", end)
			}
			isUntidy(y, keptRefs+"r1")
			y.gone(req.how.Worktree)
		})
	}
}

// What is written while it is kept is not deleted.
func TestWorktreeIsStillWrittenTo(t *testing.T) {
	y := newGitYard(t)
	req := y.make("r1", RunFlags{})
	dir := req.how.Worktree
	y.write(dir, "new.txt", "long enough")
	w := &checkout{id: req.id, repo: git{req.repo}, git: git{dir}}
	files, err := walkTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	y.write(dir, "new.txt", "shorter")
	var stay stays
	if err := w.keep(t.Context(), files); !errors.As(err, &stay) {
		t.Errorf("a file that shrank is kept: %v", err)
	}
	if ref, err := w.keptBefore(t.Context()); ref != "" || err != nil {
		t.Errorf("half a commit is there: %s, %v", ref, err)
	}
	if dumps, _ := filepath.Glob(filepath.Join(y.dir, ".git/fast_import_crash_*")); len(dumps) > 0 {
		t.Errorf("git left %q", dumps)
	}
}

func TestWorktreeOfNoCommit(t *testing.T) {
	y := newGitYard(t)
	req := y.make("r1", RunFlags{})
	dir := req.how.Worktree
	y.git(dir, "checkout", "-q", "--orphan", "fresh")
	y.write(dir, "new.txt", "untracked\n")
	end := y.end(req)
	if !end.Removed {
		t.Fatalf("it ended as %+v", end)
	}
	y.holds(end.Ref, "new.txt", "untracked\n")
	y.holds(end.Ref, "kept.txt", "as it was\n")
	if err := y.engine.reviveWorktree(t.Context(), req.id, req.repo, req.how); err == nil || !strings.Contains(err.Error(), "had no commit") {
		t.Errorf("it came back: %v", err)
	}
}

func TestGitPath(t *testing.T) {
	for path, want := range map[string]string{"a b": `"a b"`, "a\"\\\n": `"a\"\\\012"`, "é\xff": "\"é\xff\""} {
		if got := gitPath(path); got != want {
			t.Errorf("%q is quoted as %s, not %s", path, got, want)
		}
	}
}
