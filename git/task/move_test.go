package task

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// manyFiles is a task that changes, adds and deletes many files, makes a file of a folder and a folder of a file.
func manyFiles(w *world) {
	firstCommit(w)
	n := testsize.Pick(20, 40, 400)
	for i := range n {
		w.put(w.repo, fmt.Sprintf("old/%03d.txt", i), strings.Repeat(fmt.Sprintf("old %d\n", i), 200))
		w.put(w.repo, fmt.Sprintf("gone/%03d.txt", i), "gone\n")
	}
	w.put(w.repo, "file", "file\n")
	w.put(w.repo, "folder/x", "x\n")
	w.git(w.repo, "add", ".")
	w.git(w.repo, "commit", "--quiet", "-m", "many")
	w.task = w.give("T1", "")
	for i := range n {
		w.put(w.task.Tree, fmt.Sprintf("old/%03d.txt", i), strings.Repeat(fmt.Sprintf("new %d\n", i), 200))
		w.put(w.task.Tree, fmt.Sprintf("new/%03d.txt", i), "new\n")
	}
	w.must(errors.Join(os.RemoveAll(filepath.Join(w.task.Tree, "gone")), os.Remove(filepath.Join(w.task.Tree, "file")),
		os.RemoveAll(filepath.Join(w.task.Tree, "folder"))))
	w.put(w.task.Tree, "file/y", "y\n")
	w.put(w.task.Tree, "folder", "now a file\n")
	w.ask(&w.task)
}

// noTraces looks for locks and notes of a landing.
func (w *world) noTraces() {
	w.Helper()
	for _, pattern := range []string{"index.lock", "HEAD.lock", "refs/heads/*.lock", "fairlead/landing-*.json", "fairlead/landing-????????????????"} {
		if left, _ := filepath.Glob(filepath.Join(w.repo, ".git", pattern)); len(left) > 0 {
			w.Errorf("left: %q", left)
		}
	}
	if got := w.git(w.repo, "status", "--porcelain"); got != "" {
		w.Errorf("the checkout is not clean: %s", got)
	}
	if got := w.git(w.repo, "diff-files"); got != "" {
		w.Errorf("the index does not know the files: %s", got)
	}
}

// Wherever a process of a landing is killed, the next one finds the checkout as it was or as it lands, and lands the task once.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"--is-bare-repository", "status", "diff-tree", "read-tree", "show-ref", "var", "ls-files", "checkout-index", "update-index",
	} {
		for _, how := range []string{"before", "after", "moved", "1", "4", "9"} {
			if at != "show-ref" && (how == "moved" || at != "read-tree" && how != "after" && !testsize.CI()) {
				continue
			}
			t.Run(at+" "+how, func(t *testing.T) {
				t.Parallel()
				w := copyOf(t, "many files", manyFiles)
				tip := w.git(w.repo, "rev-parse", "main")
				if at == "ls-files" || at == "checkout-index" || at == "update-index" { // calls of the repair
					if o := w.dying(w.task, StepLand, "before", "show-ref"); o.Kind != "killed" {
						t.Fatalf("%+v", o)
					}
				}
				o := w.dying(w.task, StepLand, how, at)
				if o.Kind != "killed" && o.Kind != "" { // it was too quick
					t.Fatalf("%+v", o)
				}
				done, err := lands(t.Context(), w.task, &bytes.Buffer{})
				if err != nil {
					t.Fatalf("%v\n%s", err, w.git(w.repo, "status", "--porcelain"))
				}
				w.noTraces()
				if got := w.git(w.repo, "rev-list", "--count", tip+"..main"); got != "1" || done.Commit != w.git(w.repo, "rev-parse", "main") {
					t.Errorf("%s commits, %+v", got, done)
				}
				if got := w.git(w.repo, "rev-parse", "HEAD^{tree}"); got != w.task.Asked.Tree {
					t.Errorf("tree %s", got)
				}
			})
		}
	}
}

// What a landing has left is taken back if the branch has not moved. What the person has done in the files since stays.
func TestMoveTakenBack(t *testing.T) {
	t.Parallel()
	w := copyOf(t, "many files", manyFiles)
	if o := w.dying(w.task, StepLand, "before", "show-ref"); o.Kind != "killed" {
		t.Fatalf("%+v", o)
	}
	if !strings.Contains(w.git(w.repo, "status", "--porcelain"), "new/") {
		t.Fatal("no file had moved, so it proves nothing")
	}
	in := func(name string) string { return filepath.Join(w.repo, name) }
	w.must(os.Truncate(in("old/001.txt"), 9)) // as git leaves a file when it is killed
	w.must(os.Truncate(in("new/001.txt"), 0))
	w.must(errors.Join(os.Remove(in("old/002.txt")), os.Remove(in("file/y")))) // the folder is left where the file was
	w.put(w.repo, "old/003.txt", "the person's\n")
	w.put(w.repo, "new/003.txt", "the person's, too\n")
	w.put(w.repo, "untracked", "x\n")
	_, err := lands(t.Context(), w.task, &bytes.Buffer{})
	if f := FailureOf(err); f.Kind != state.FailedDirty || !slices.Equal(f.Files, []string{"old/003.txt"}) {
		t.Fatalf("%v", err)
	}
	if got := w.git(w.repo, "status", "--porcelain"); got != "M old/003.txt\n?? new/\n?? untracked" {
		t.Errorf("the checkout: %q", got)
	}
	if text, _ := os.ReadFile(in("new/003.txt")); string(text) != "the person's, too\n" {
		t.Errorf("%q", text)
	}
	w.must(errors.Join(os.RemoveAll(in("new")), os.Remove(in("untracked"))))
	w.git(w.repo, "checkout", "--quiet", "old/003.txt")
	_, err = lands(t.Context(), w.task, &bytes.Buffer{})
	w.must(err)
	w.noTraces()
}

// Locks of other git processes are waited for and never removed. A move that fails leaves nothing.
func TestMoveWaitsForLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".git/refs/heads/main.lock", ".git/index.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "many files", manyFiles)
			lock := filepath.Join(w.repo, name)
			w.put(w.repo, name, "")
			_, err := lands(t.Context(), w.task, &bytes.Buffer{})
			if f := FailureOf(err); f.Kind != state.FailedMoved || !strings.Contains(err.Error(), lock) {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(lock); err != nil {
				t.Errorf("the other process's lock is gone: %v", err)
			}
			w.must(os.Remove(lock))
			w.noTraces()
			w.put(w.repo, name, "")
			landed := make(chan error, 1)
			go func() {
				_, err := lands(t.Context(), w.task, &bytes.Buffer{})
				landed <- err
			}()
			note := filepath.Join(w.repo, ".git/fairlead/landing-"+digest("main")+".json")
			wait.Until(t, "the landing waits", func() bool { _, err := os.Lstat(note); return err == nil })
			time.AfterFunc(time.Millisecond, func() { _ = os.Remove(lock) })
			w.must(<-landed)
			w.noTraces()
		})
	}
}

// A branch that is rebased, bisected or merged in any checkout is not moved: git refuses that, too.
func TestHalfDoneIsNotMoved(t *testing.T) {
	t.Parallel()
	edit := []string{"-c", "sequence.editor=sed -i.x 1s/pick/edit/", "rebase", "--quiet", "--interactive", "HEAD~1"}
	for name, c := range map[string]struct {
		do, end []string
		linked  bool // in another checkout
	}{
		"rebase":           {edit, []string{"-c", "core.editor=true", "rebase", "--continue"}, false},
		"rebase elsewhere": {edit, []string{"-c", "core.editor=true", "rebase", "--continue"}, true},
		"bisect":           {[]string{"bisect", "start", "HEAD", "HEAD~2"}, []string{"bisect", "reset"}, false},
		"merge":            {[]string{"merge", "--quiet", "--no-commit", "--strategy=ours", "side"}, []string{"merge", "--abort"}, false},
		"pick":             {[]string{"cherry-pick", "--keep-redundant-commits", "side"}, []string{"cherry-pick", "--abort"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "half done", func(w *world) {
				firstCommit(w)
				w.git(w.repo, "checkout", "--quiet", "-b", "side")
				w.put(w.repo, "a.txt", "side\n")
				w.git(w.repo, "commit", "--quiet", "-am", "side")
				w.git(w.repo, "checkout", "--quiet", "main")
				w.put(w.repo, "a.txt", "main\n")
				w.git(w.repo, "commit", "--quiet", "-am", "c1")
				w.save("c2.txt")
				w.task = w.give("T1", "")
				w.put(w.task.Tree, "b.txt", "b\n")
				w.ask(&w.task)
			})
			dir := w.repo
			if c.linked {
				dir = filepath.Join(filepath.Dir(w.repo), "linked")
				w.git(w.repo, "checkout", "--quiet", "side")
				w.git(w.repo, "worktree", "add", "--quiet", dir, "main")
			}
			tip := w.git(w.repo, "rev-parse", "main")
			_, _ = (&play{T: t}).try(dir, c.do...) // a pick ends with a conflict
			_, err := lands(t.Context(), w.task, &bytes.Buffer{})
			if f := FailureOf(err); f.Kind != state.FailedDirty || !strings.Contains(err.Error(), "not finished in "+dir) ||
				w.git(w.repo, "rev-parse", "main") != tip {
				t.Fatalf("landed: %v", err)
			}
			w.git(dir, c.end...)
			if got := w.git(dir, "symbolic-ref", "HEAD"); got != "refs/heads/main" {
				t.Errorf("the checkout is on %s", got)
			}
			_, err = lands(t.Context(), w.task, &bytes.Buffer{})
			w.must(err)
		})
	}
}

// A branch is moved in each form that git gives it, and its log says so.
func TestMoveOfEachForm(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]func(w *world, repo string){
		"packed": func(w *world, repo string) { w.git(repo, "pack-refs", "--all") },
		"packed, and its folder is gone": func(w *world, repo string) {
			w.git(repo, "branch", "--move", "main", "a/main")
			w.git(repo, "pack-refs", "--all")
			_ = os.RemoveAll(filepath.Join(repo, ".git/refs/heads/a"))
		},
		"an empty folder is in its place": func(w *world, repo string) {
			w.git(repo, "pack-refs", "--all")
			w.must(os.MkdirAll(filepath.Join(repo, ".git/refs/heads/main/a/b"), 0o755))
		},
		"another name": func(w *world, repo string) {
			w.git(repo, "branch", "--move", "main", "trunk")
			w.git(repo, "symbolic-ref", "refs/heads/main", "refs/heads/trunk")
			w.git(repo, "checkout", "--quiet", "--detach")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepo(t)
			form(w, w.repo)
			base := w.git(w.repo, "for-each-ref", "--format=%(refname:short)", "--count=1", "refs/heads")
			w.task = w.give("T1", base)
			w.put(w.task.Tree, "b.txt", "b\n")
			w.ask(&w.task)
			done, err := lands(t.Context(), w.task, &bytes.Buffer{})
			w.must(err)
			if got := w.git(w.repo, "rev-parse", "refs/heads/"+base); got != done.Commit {
				t.Errorf("%s is at %s", base, got)
			}
			if got := w.git(w.repo, "reflog", "-1", "--format=%gs", base); got != "fairlead: task T1" {
				t.Errorf("its log says %q", got)
			}
			w.git(w.repo, "fsck", "--strict")
			w.noTraces()
		})
	}
}

// Two checkouts of the branch cannot both move with it, and a new file is not put in the place of a folder with files that git does not
// have.
func TestMoveRefused(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*world){
		"two checkouts": func(w *world) {
			w.git(w.repo, "worktree", "add", "--quiet", "--force", filepath.Join(filepath.Dir(w.repo), "linked"), "main")
		},
		"a folder": func(w *world) { w.put(w.repo, "b.txt/ignored", "the person's\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(w.task.Tree, "b.txt", "b\n")
			w.ask(&w.task)
			before(w)
			tip := w.git(w.repo, "rev-parse", "main")
			_, err := lands(t.Context(), w.task, &bytes.Buffer{})
			if FailureOf(err).Kind != state.FailedDirty || w.git(w.repo, "rev-parse", "main") != tip {
				t.Errorf("%v", err)
			}
		})
	}
}
