package task

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// underRefs reports whether the hidden refs of a task have a text in their newest content.
func (w *world) underRefs(text string) bool {
	w.Helper()
	for _, ref := range strings.Fields(w.git(w.repo, "for-each-ref", "--format=%(refname)", "refs/fairlead/tasks")) {
		for _, commit := range append(strings.Fields(w.git(w.repo, "log", "-1", "--format=%P", ref)), ref) {
			cmd := exec.Command("git", "grep", "--quiet", "-F", text, commit)
			cmd.Dir = w.repo
			if cmd.Run() == nil {
				return true
			}
		}
	}
	return false
}

// Commits on other branches of the clone and everything that was stashed are kept before the folder is removed.
func TestRemoveKeepsBranchesAndStashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, text := range []string{"first stash", "second stash"} {
		w.put(w.task.Tree, "b.txt", text+"\n")
		w.git(w.task.Tree, "stash", "push", "--quiet", "--include-untracked")
	}
	w.git(w.task.Tree, "checkout", "--quiet", "-b", "side")
	w.put(w.task.Tree, "c.txt", "on another branch\n")
	w.git(w.task.Tree, "add", ".")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "side")
	w.git(w.task.Tree, "checkout", "--quiet", "-")
	w.put(w.task.Tree, "d.txt", "loose\n")
	if _, err := w.task.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first stash", "second stash", "on another branch", "loose"} {
		if !w.underRefs(text) {
			t.Errorf("%q is lost; there are\n%s", text, w.git(w.repo, "for-each-ref"))
		}
	}
	if got := w.git(w.repo, "for-each-ref", "--format=%(refname)", "refs/fairlead/tasks/T1.more/heads/fairlead"); got != "" {
		t.Errorf("kept twice: %s", got)
	}
}

// A repository inside of the folder is in no picture, so the folder stays.
func TestRemoveRepositoryInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git(w.task.Tree, "init", "--quiet", "inner")
	w.put(w.task.Tree, "inner/x", "x\n")
	if _, err := w.task.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "inner/") ||
		!strings.Contains(err.Error(), "stays") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(w.task.Tree, "inner/x")); err != nil {
		t.Error(err)
	}
}

// A removal that was interrupted goes on later, and does not take the half folder for what the agent has left.
func TestRemoveInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"b.txt", "stuck/c.txt", "z.txt"} {
		w.put(w.task.Tree, name, "loose "+name+"\n")
	}
	stuck := filepath.Join(w.task.Tree, "stuck")
	free := func() { _ = os.Chmod(filepath.Join(filepath.Dir(w.task.Tree), ".tree-T1.gone/stuck"), 0o700) }
	if os.Getuid() == 0 { // who ignores permissions
		if err := syscall.Mount(stuck, stuck, "", syscall.MS_BIND, ""); err != nil {
			t.Skip(err)
		}
		free = func() {
			for _, dir := range []string{stuck, filepath.Join(filepath.Dir(w.task.Tree), ".tree-T1.gone/stuck")} {
				_ = syscall.Unmount(dir, syscall.MNT_DETACH)
			}
		}
	} else if err := os.Chmod(stuck, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { free() })
	if _, err := w.task.Remove(t.Context()); err == nil {
		t.Fatal("nothing held it up")
	}
	free()
	ref, err := w.task.Remove(t.Context())
	w.must(err)
	for _, name := range []string{"b.txt", "stuck/c.txt", "z.txt"} {
		if got := w.git(w.repo, "show", ref+":"+name); got != "loose "+name {
			t.Errorf("%s: %q", name, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.task.Tree), "*tree-T1*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// dying does a step in a process that dies at a call of git.
func (w *world) dying(t Task, name, how, at string) outcome {
	w.Helper()
	p := &play{T: w.T, bin: filepath.Join(w.TempDir(), "bin")}
	real, err := exec.LookPath("git")
	w.must(err)
	w.put(p.bin, "git", fmt.Sprintf(killer, real))
	w.must(os.Chmod(filepath.Join(p.bin, "git"), 0o755))
	return p.child(&tasked{Task: t}, name, "PATH="+p.bin+":"+os.Getenv("PATH"), "COUNT="+filepath.Join(p.bin, "calls"), "HOW="+how,
		"AT="+at)
}

// What was kept once stays kept while a new picture is made, also if that is interrupted.
func TestSnapshotKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "loose\n")
	if _, err := w.task.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"config", "fetch"} {
		w.put(w.task.Tree, at, "new\n") // otherwise there is nothing to fetch
		if o := w.dying(w.task, "snapshot", "after", at); o.Kind != "killed" {
			t.Fatalf("%s: %+v", at, o)
		}
		if got := w.git(w.repo, "show", w.task.Ref()+":b.txt"); got != "loose" {
			t.Errorf("killed after %s: %q", at, got)
		}
	}
	if _, err := w.task.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := w.dying(w.task, "snapshot", "after", "fetch"); o.Kind != "" {
		t.Errorf("nothing is new, and it is fetched: %+v", o)
	}
}

// An old lock of one of Fairlead's own refs is of a git that was killed. A new one may be another process's.
func TestOldLockOfARef(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tip, ref := w.git(w.repo, "rev-parse", "main"), w.task.shownRef()
	lock := filepath.Join(w.repo, ".git", ref+".lock")
	w.put(w.repo, filepath.Join(".git", ref+".lock"), "")
	if err := w.task.setRef(t.Context(), ref, tip); err == nil {
		t.Error("it took another process's lock")
	}
	old := time.Now().Add(-2 * refLockMax)
	w.must(os.Chtimes(lock, old, old))
	w.must(w.task.setRef(t.Context(), ref, tip))
	if got := w.git(w.repo, "rev-parse", ref); got != tip {
		t.Errorf("it is at %s", got)
	}
}

// A daemon that dies while it makes a folder leaves a whole one or none, and nothing that stops `fairlead drop`.
func TestMakeKilled(t *testing.T) {
	t.Parallel()
	w := newRepo(t)
	for n, at := range []string{"init", "update-ref", "config", "cat-file"} {
		task := w.give(fmt.Sprint("T", n), "")
		w.must(os.RemoveAll(task.Tree))
		if o := w.dying(task, "make", "after", at); o.Kind != "killed" {
			t.Fatalf("%s: %+v", at, o)
		}
		if _, err := os.Lstat(task.Tree); err == nil && w.git(task.Tree, "config", "user.email") != "person@example.org" {
			t.Errorf("killed after %s: the folder is half made", at)
		}
		if _, err := task.Remove(t.Context()); err != nil {
			t.Errorf("killed after %s: %v", at, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(task.Tree), "*tree-"+task.ID+"*")); len(left) > 0 {
			t.Errorf("killed after %s, and left: %q", at, left)
		}
	}
}

// After an error of Make there is no folder and no ref.
func TestMakeFails(t *testing.T) {
	t.Parallel()
	w := newRepo(t)
	place, err := Place(t.Context(), w.repo, "")
	w.must(err)
	place.ID, place.Run, place.Tree, place.Branch = "T1", t.TempDir(), filepath.Join(t.TempDir(), "tree"), "a..b"
	if err := place.Make(t.Context()); err == nil {
		t.Error("it made a branch of the name a..b")
	}
	if refs := w.git(w.repo, "for-each-ref", "refs/fairlead"); refs != "" {
		t.Errorf("refs: %s", refs)
	}
	if left, _ := os.ReadDir(filepath.Dir(place.Tree)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A landing whose process died after the branch had moved is not repeated, whatever happens to the branch meanwhile.
func TestLandKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how, when, at string
		away, moved   bool // the branch is checked out nowhere; it has moved
	}{
		{Squash, "before", "read-tree -m", false, false},
		{Squash, "moved", "show-ref", false, true},
		{Merge, "moved", "show-ref", false, true},
		{Squash, "moved", "show-ref", true, true},
	} {
		t.Run(c.how+" "+c.when+" "+c.at, func(t *testing.T) {
			w := newRepo(t)
			task := w.give("T1", "")
			task.How = c.how
			w.put(task.Tree, "b.txt", "b\n")
			w.ask(&task)
			if c.away {
				w.git(w.repo, "checkout", "--quiet", "--detach")
			}
			if o := w.dying(task, StepLand, c.when, c.at); o.Kind != "killed" {
				t.Fatalf("%+v", o)
			}
			landed := w.git(w.repo, "rev-parse", "main")
			if c.moved {
				// without a checkout: the lock of its index is the landing's
				w.git(w.repo, "update-ref", "refs/heads/main", w.git(w.repo, "commit-tree", "-p", "main", "-m", "reverted", "main^1^{tree}"))
			}
			done, err := lands(t.Context(), task, &bytes.Buffer{})
			if err != nil || c.moved && done.Commit != landed {
				t.Errorf("landed %q, not %q; %v", done.Commit, landed, err)
			}
			if n := strings.Count(w.git(w.repo, "log", "--format=%B", "main"), "Task: T1"); n != 1 {
				t.Errorf("it landed %d times", n)
			}
			w.noTraces()
		})
	}
}

// A file of the person that git ignores is not overwritten.
func TestLandOverIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.repo, "ignored", "the person's\n")
	w.put(w.task.Tree, "ignored", "the agent's\n")
	w.git(w.task.Tree, "add", "--force", "ignored")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "forced")
	if _, err := w.land(&w.task); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), "ignored") {
		t.Errorf("%v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(w.repo, "ignored")); string(got) != "the person's\n" {
		t.Errorf("the person's file is %q", got)
	}
}

// A clone borrows an object that was in the person's repository first, such as a file of a picture that was not finished.
// Another branch and a stash that need it outlive a `git gc` there.
func TestOtherBranchesOutliveGarbageCollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	borrow := func(text string) {
		w.put(w.task.Tree, "b.txt", text+"\n")
		w.git(w.repo, "hash-object", "-w", filepath.Join(w.task.Tree, "b.txt"))
	}
	borrow("stashed")
	w.git(w.task.Tree, "stash", "push", "--quiet", "--include-untracked")
	w.git(w.task.Tree, "checkout", "--quiet", "-b", "side")
	borrow("on another branch")
	w.git(w.task.Tree, "add", ".")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "side")
	w.git(w.task.Tree, "checkout", "--quiet", "-")
	if _, err := w.task.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.git(w.repo, "gc", "--quiet", "--prune=now")
	for object, want := range map[string]string{"side:b.txt": "on another branch", "stash^3:b.txt": "stashed"} {
		if got := w.git(w.task.Tree, "show", object); got != want {
			t.Errorf("%s is %q", object, got)
		}
	}
}

// A picture makes objects only of what the task has changed, also if git cannot write where the other ones are.
func TestPictureWritesWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "new\n")
	in, err := w.task.clone().Open(t.Context(), false)
	w.must(err)
	defer in.Close()
	tree, _, err := w.task.readFiles(t.Context(), in)
	w.must(err)
	objects, err := filepath.Glob(worktree.Aside(w.task.Tree, ".git-*") + "/git/objects/??/*")
	w.must(err)
	if list, err := in.Files(t.Context(), nil, "ls-tree", "-r", "--name-only", tree); err != nil || len(strings.Fields(list)) < 3 {
		t.Errorf("the tree has %q, %v", list, err)
	}
	if len(objects) != 2 { // the file and the tree
		t.Errorf("%d objects were made", len(objects))
	}
}
