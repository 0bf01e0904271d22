package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/core/table"
)

// gitYard is a repository with one commit, and an engine that does nothing but log.
type gitYard struct {
	t      *testing.T
	dir    string
	engine *Controller
	logged bytes.Buffer
}

// newGitYard returns a yard in which git has no user name, and in which every hook fails.
func newGitYard(t *testing.T) *gitYard {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &gitYard{t: t, dir: dir}
	y.engine = &Controller{log: slog.New(slog.NewTextHandler(&y.logged, nil)), opts: outside.Options{Config: &config.Config{Dir: dir}}}
	y.write(dir, ".fairlead/.gitignore", "*\n") // as Fairlead makes it
	yardOnce.Do(func() { yardFiles = y.fill() })
	for path, file := range yardFiles {
		to := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, file.data, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	y.git(dir, "status", "-s") // the copied files have new times: the index learns them
	return y
}

// yardFiles is the repository of each yard by path. git makes it once, since each of its dozen
// processes costs as much as all of the copies.
var (
	yardOnce  sync.Once
	yardFiles map[string]yardFile
)

type yardFile struct {
	data []byte
	mode fs.FileMode
}

// fill makes the repository of a yard, and returns its files.
func (y *gitYard) fill() map[string]yardFile {
	y.t.Helper()
	dir := filepath.Join(y.dir, ".first")
	y.git(y.dir, "init", "-q", "-b", "main", dir)
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
			y.t.Fatal(err)
		}
	}
	files := map[string]yardFile{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".sample") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = yardFile{data, info.Mode()}
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		y.t.Fatal(err)
	}
	return files
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
func (y *gitYard) make(id string, flags view.RunFlags) *runRequest {
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
}

func TestWorktreeIsMade(t *testing.T) {
	y := newGitYard(t)
	t.Setenv("GIT_DIR", "/nowhere") // as a daemon has that a hook started
	req := &runRequest{id: "r1", repo: y.dir}
	err := y.engine.makeWorktree(t.Context(), req, view.RunFlags{})
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
	// the branch is free again, too
	other := y.make("r1", view.RunFlags{WorktreeRef: "main", WorktreeRoot: "elsewhere", WorktreeBranch: "topic/one"})
	away := y.make("r2", view.RunFlags{WorktreeRoot: t.TempDir()})
	for _, c := range []struct {
		how  howRun
		want bool
	}{
		{howRun{}, false},
		{req.how, false},
		{other.how, false},
		{away.how, true},
		{howRun{Task: &howTask{Tree: want}}, false},
		{howRun{Task: &howTask{Tree: y.dir + "-2/tree"}}, true},
	} {
		if got := isOutside(y.dir, c.how); got != c.want {
			t.Errorf("%+v is outside: %t", c.how, got)
		}
	}
}

// A fairlead that works on a folder of a larger repository works on that folder of the checkout.
func TestWorktreeOfAFolder(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	req := &runRequest{id: "r1", repo: filepath.Join(y.dir, "sub")}
	if err := y.engine.makeWorktree(t.Context(), req, view.RunFlags{}); err != nil {
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
	y.make("there", view.RunFlags{})
	bare, empty := t.TempDir(), t.TempDir()
	y.git(empty, "init", "-q")
	y.write(y.dir, "fresh/file", "in no commit")
	for _, c := range []struct {
		name, repo, id string
		flags          view.RunFlags
		want           string
	}{
		{"no repository", bare, "r", view.RunFlags{}, "git init"},
		{"no commit", empty, "r", view.RunFlags{}, "is no commit here"},
		{"the branch is there", y.dir, "r", view.RunFlags{WorktreeBranch: "main"}, "there is a branch main already"},
		{"the place is taken", y.dir, "there", view.RunFlags{WorktreeBranch: "other"}, "there is something at"},
		{"an unknown ref", y.dir, "r", view.RunFlags{WorktreeRef: "nosuch"}, "nosuch is no commit here"},
		{"a ref that is an option", y.dir, "r", view.RunFlags{WorktreeRef: "--output=x"}, "is no name"},
		{"a branch that is an option", y.dir, "r", view.RunFlags{WorktreeBranch: "-d"}, "is no name"},
		{"a branch that is none", y.dir, "r", view.RunFlags{WorktreeBranch: "a..b"}, "git accepts no ref named"},
		{"a branch under a branch", y.dir, "r", view.RunFlags{WorktreeBranch: "main/x"}, "cannot be made"},
		{"a run that is no ref", y.dir, "r.lock", view.RunFlags{}, "git accepts no ref named"},
		{"a run that climbs", y.dir, "../r", view.RunFlags{}, "choose another --run-id"},
		{"a folder in no commit", filepath.Join(y.dir, "fresh"), "r", view.RunFlags{}, "is not in HEAD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo, err := filepath.EvalSymlinks(c.repo)
			if err != nil {
				t.Fatal(err)
			}
			req := &runRequest{id: c.id, repo: repo}
			err = y.engine.makeWorktree(t.Context(), req, c.flags)
			var no *table.Refusal
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
		if err := y.engine.makeWorktree(t.Context(), &runRequest{id: "r", repo: y.dir}, view.RunFlags{}); err == nil ||
			!strings.Contains(err.Error(), "is a symbolic link") {
			t.Errorf("it follows a link: %v", err)
		}
	})
	t.Run("no git", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if err := y.engine.makeWorktree(t.Context(), &runRequest{id: "r", repo: y.dir}, view.RunFlags{}); err == nil ||
			!strings.Contains(err.Error(), "install git") {
			t.Errorf("without git it says %v", err)
		}
	})
}

// The checkout was removed by hand: the run's own branch still exists and is used. Without the
// branch the resume fails with an error that says so.
func TestWorktreeTakenAwayByHand(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	req := y.make("r1", view.RunFlags{WorktreeKeep: true})
	dir := req.how.Worktree
	y.remove(dir)
	revive := func() error { return y.engine.reviveWorktree(t.Context(), req.id, req.repo, req.how) }
	if err := revive(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "kept.txt")); err != nil || string(text) != "as it was\n" {
		t.Errorf("it holds %q (%v)", text, err)
	}
	y.remove(dir)
	if err := revive(); err != nil {
		t.Fatal(err)
	}
	y.remove(dir)
	y.git(y.dir, "branch", "-q", "-D", "fairlead/r1")
	var no *table.Refusal
	if err := revive(); !errors.As(err, &no) {
		t.Errorf("from nothing: %v", err)
	}
}

// Runs that end side by side do not disturb each other.
func TestWorktreesSideBySide(t *testing.T) {
	t.Parallel()
	y := newGitYard(t)
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			req := &runRequest{id: fmt.Sprint("r", n), repo: y.dir}
			if err := y.engine.makeWorktree(t.Context(), req, view.RunFlags{}); err != nil {
				t.Error(err)
				return
			}
			if err := os.WriteFile(filepath.Join(req.how.Worktree, "new.txt"), []byte(req.id), 0o600); err != nil {
				t.Error(err)
			}
			if end, err := y.engine.endWorktree(t.Context(), req.id, req.repo, req.how); err != nil || !end.Removed {
				t.Errorf("it ended as %+v, %v", end, err)
			}
		})
	}
	all.Wait()
	for n := range 6 {
		y.holds(fmt.Sprint(worktree.KeptRefs, "r", n), "new.txt", fmt.Sprint("r", n))
	}
}

func TestTakeCheckout(t *testing.T) { // not parallel: it looks at a list that all engines of the process share
	synctest.Test(t, func(t *testing.T) {
		release, err := worktree.TakeCheckout(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := worktree.TakeCheckout(short, "/a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two have it: %v", err)
		}
		if other, err := worktree.TakeCheckout(t.Context(), "/b"); err != nil {
			t.Error(err)
		} else {
			other()
		}
		next := make(chan func())
		go func() {
			release, err := worktree.TakeCheckout(t.Context(), "/a")
			if err != nil {
				t.Error(err)
			}
			next <- release
		}()
		synctest.Wait()
		release()
		(<-next)()
		if len(worktree.CheckoutsTaken.By) != 0 {
			t.Errorf("some are taken still: %v", worktree.CheckoutsTaken.By)
		}
	})
}
