package task

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// conflicting is a task that was shown, with a file that its agent has not committed, and cannot land.
func conflicting(w *world) {
	firstTask(w)
	w.put(w.task.Tree, "loose.txt", "loose\n")
	w.both("a.txt", "one\nagent\nthree\n", "one\nperson\nthree\n")
	w.ask(&w.task)
}

// byHand checks a task out for a person.
func (w *world) byHand() string {
	w.Helper()
	c, err := w.task.CheckOut(w.Context(), "", "")
	w.must(err)
	return c.Dir
}

// resolves merges the base in a person's checkout.
func (w *world) resolves(dir string) (commit string) {
	w.Helper()
	if _, err := (&play{T: w.T}).try(dir, "merge", "--quiet", "main"); err == nil {
		w.Fatal("there is no conflict")
	}
	w.put(dir, "a.txt", "one\nboth\nthree\n")
	w.git(dir, "commit", "--quiet", "-a", "-m", "resolved")
	return w.git(dir, "rev-parse", "HEAD")
}

// noCheckout reports what is left of a person's checkout.
func (w *world) noCheckout(dir string) {
	w.Helper()
	if _, err := os.Lstat(dir); err == nil {
		w.Errorf("%s is there", dir)
	}
	if got := w.git(w.repo, "for-each-ref", "refs/heads/fairlead"); got != "" {
		w.Errorf("the repository has %s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(w.repo, ".git", "worktrees", "*")); len(left) > 0 {
		w.Errorf("git keeps %q", left)
	}
}

// A conflict is resolved by hand: in an ordinary worktree with what was shown, whose commits the task gets.
func TestCheckout(t *testing.T) {
	t.Parallel()
	w := copyOf(t, "conflicting", conflicting)
	w.git(w.task.Tree, "checkout", "--quiet", "-b", "of-the-agent")
	dir := w.byHand()
	if dir != w.repo+"-T1" || w.git(dir, "rev-parse", "HEAD") != w.task.Asked.Commit || w.git(dir, "branch", "--show-current") != "fairlead/T1" ||
		w.git(dir, "status", "--porcelain") != "" {
		t.Errorf("%s is on %s", dir, w.git(dir, "status"))
	}
	commit := w.resolves(dir)
	c, newer, err := w.task.TakeByHand(t.Context())
	w.must(err)
	if !newer || !c.Taken || c.Dir != dir {
		t.Errorf("%+v, newer: %v", c, newer)
	}
	w.noCheckout(dir)
	w.must(w.task.EndByHand())
	if got := w.git(w.task.Tree, "rev-parse", "HEAD"); got != commit || w.git(w.task.Tree, "branch", "--show-current") != "fairlead/T1" ||
		w.git(w.task.Tree, "status", "--porcelain") != "" || w.read("a.txt") != "one\nboth\nthree\n" {
		t.Errorf("the folder is at %s: %s", got, w.git(w.task.Tree, "status"))
	}
	w.git(w.task.Tree, "fsck", "--strict")
	if got := w.git(w.repo, "rev-parse", w.task.Ref()); got != commit {
		t.Errorf("kept: %s", got)
	}
	w.must(w.task.Check(t.Context(), &bytes.Buffer{}))
	if _, err := w.land(&w.task); err != nil || w.onBase("a.txt") != "one\nboth\nthree" || w.onBase("loose.txt") != "loose" {
		t.Errorf("landed: %v", err)
	}
	if _, _, err := w.task.TakeByHand(t.Context()); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), "checked out nowhere") {
		t.Errorf("again: %v", err)
	}
}

// A checkout without new commits leaves nothing, and the task as it was.
func TestCheckoutUnchanged(t *testing.T) {
	t.Parallel()
	w := copyOf(t, "conflicting", conflicting)
	dir := w.byHand()
	w.put(dir, "ignored", "x\n")
	head := w.git(w.task.Tree, "rev-parse", "HEAD")
	if _, newer, err := w.task.TakeByHand(t.Context()); err != nil || newer {
		t.Errorf("newer: %v, %v", newer, err)
	}
	w.noCheckout(dir)
	if w.git(w.task.Tree, "rev-parse", "HEAD") != head || w.read("loose.txt") != "loose\n" {
		t.Error("the folder has changed")
	}
}

// A checkout that is refused says why, and leaves nothing.
func TestCheckoutRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(w *world)
		dir  func(w *world) string
		yes  string
		says string
	}{
		"something is there": {do: func(w *world) { w.put(w.repo+"-T1", "x", "") }, says: "there is something at"},
		"in the repository":  {dir: func(w *world) string { return filepath.Join(w.repo, "x") }, says: "lies in the repository"},
		"in it, through a link": {dir: func(w *world) string {
			w.must(os.Symlink(w.repo, w.repo+"-link"))
			return filepath.Join(w.repo+"-link", "x")
		}, says: "lies in the repository"},
		"nowhere":           {dir: func(w *world) string { return filepath.Join(w.repo+"-none", "x") }, says: "there is no folder"},
		"a branch is there": {do: func(w *world) { w.git(w.repo, "branch", "fairlead/T1") }, says: "has a branch fairlead/T1 already"},
		"a yes to nothing":  {yes: "0123", says: "leave --governing out"},
		"governing files": {do: func(w *world) {
			w.put(w.task.Tree, ".github/workflows/x.yaml", "on: push\n")
			w.ask(&w.task)
		}, says: "it changes files that decide what runs later, outside of the agent's bounds: .github/workflows/x.yaml. Look at them: fairlead diff T1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "conflicting", conflicting)
			if c.do != nil {
				c.do(w)
			}
			dir := ""
			if c.dir != nil {
				dir = c.dir(w)
			}
			refs := w.git(w.repo, "for-each-ref")
			if _, err := w.task.CheckOut(t.Context(), dir, c.yes); !errors.As(err, new(*Blocked)) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if is, err := w.task.ByHand(); err != nil || is != (HandCheckout{}) || w.git(w.repo, "for-each-ref") != refs ||
				strings.Count(w.git(w.repo, "worktree", "list"), "\n") > 0 {
				t.Errorf("left: %+v, %v", is, err)
			}
		})
	}
	t.Run("a separate yes", func(t *testing.T) {
		t.Parallel()
		w := copyOf(t, "conflicting", conflicting)
		w.put(w.task.Tree, ".github/workflows/x.yaml", "on: push\n")
		s, err := w.task.Show(t.Context(), w.task.Run)
		w.must(err)
		w.task.Asked = s.Asked
		dir := w.repo + "-other"
		if _, err := w.task.CheckOut(t.Context(), dir, s.Governs.Hash); err != nil {
			t.Fatal(err)
		}
		if _, err := w.task.CheckOut(t.Context(), dir, s.Governs.Hash); !errors.As(err, new(*Blocked)) ||
			!strings.Contains(err.Error(), "it is checked out in "+dir) {
			t.Errorf("twice: %v", err)
		}
	})
}

// What is not committed is not lost: the order is refused, names it, and changes nothing.
func TestCheckoutDoneRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(w *world, dir string)
		says string
	}{
		"a changed file":   {func(w *world, dir string) { w.put(dir, "loose.txt", "mine\n") }, "not committed: loose.txt"},
		"a staged file":    {func(w *world, dir string) { w.put(dir, "x", ""); w.git(dir, "add", "x") }, "not committed: x"},
		"an untracked one": {func(w *world, dir string) { w.put(dir, "x", "") }, "not committed: x"},
		"a merge":          {func(w *world, dir string) { _, _ = (&play{T: w.T}).try(dir, "merge", "--quiet", "main") }, "a merge is not finished in"},
		"another branch":   {func(w *world, dir string) { w.git(dir, "checkout", "--quiet", "-b", "mine") }, "is not on branch fairlead/T1"},
		"no branch":        {func(w *world, dir string) { w.git(dir, "checkout", "--quiet", "--detach") }, "is not on branch fairlead/T1"},
		"the folder was changed, too": {func(w *world, dir string) {
			w.put(dir, "mine.txt", "mine\n")
			w.git(dir, "add", "mine.txt")
			w.git(dir, "commit", "--quiet", "-m", "mine")
			w.put(w.task.Tree, "later.txt", "later\n")
		}, "merge refs/fairlead/tasks/T1, then run `fairlead checkout T1 --done`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "conflicting", conflicting)
			dir := w.byHand()
			c.do(w, dir)
			look := func() string {
				return w.git(dir, "status", "--porcelain") + w.git(w.repo, "for-each-ref", "refs/heads") + w.git(w.task.Tree, "status", "--porcelain") +
					w.git(w.task.Tree, "rev-parse", "HEAD")
			}
			before := look()
			if _, _, err := w.task.TakeByHand(t.Context()); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if now := look(); now != before {
				t.Errorf("it was\n%s\nand is\n%s", before, now)
			}
			if name == "the folder was changed, too" {
				w.git(dir, "merge", "--quiet", "-m", "merged", w.task.Ref())
				if _, newer, err := w.task.TakeByHand(t.Context()); err != nil || !newer || w.read("later.txt") != "later\n" || w.read("mine.txt") != "mine\n" {
					t.Errorf("after that: %v", err)
				}
				return
			}
			if err := w.task.DropByHand(t.Context()); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("dropped: %v", err)
			}
		})
	}
}

// A task is not dropped before its checkout's commits are the task's, or the person has removed them.
func TestCheckoutDropped(t *testing.T) {
	t.Parallel()
	w := copyOf(t, "conflicting", conflicting)
	w.must(w.task.DropByHand(t.Context()))
	dir := w.byHand()
	w.must(w.task.DropByHand(t.Context()))
	w.noCheckout(dir)
	dir = w.byHand()
	w.resolves(dir)
	if err := w.task.DropByHand(t.Context()); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), "you have commits in "+dir) {
		t.Errorf("%v", err)
	}
	w.git(w.repo, "worktree", "remove", dir)
	w.git(w.repo, "branch", "--quiet", "-D", "fairlead/T1")
	w.must(w.task.DropByHand(t.Context()))
	w.noCheckout(dir)
}

// A checkout that the person has moved or removed is found, and what was committed there is the task's.
func TestCheckoutElsewhere(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world, dir string) string{
		"moved":   func(w *world, dir string) string { w.git(w.repo, "worktree", "move", dir, dir+"-2"); return dir + "-2" },
		"removed": func(w *world, dir string) string { w.must(os.RemoveAll(dir)); return dir },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "conflicting", conflicting)
			dir := w.byHand()
			commit := w.resolves(dir)
			dir = do(w, dir)
			if _, newer, err := w.task.TakeByHand(t.Context()); err != nil || !newer {
				t.Fatalf("newer: %v, %v", newer, err)
			}
			w.noCheckout(dir)
			if got := w.git(w.task.Tree, "rev-parse", "HEAD"); got != commit {
				t.Errorf("the folder is at %s", got)
			}
		})
	}
}

// No program runs on what an agent has written: neither hooks nor filters, also required ones.
func TestCheckoutRunsNothing(t *testing.T) {
	t.Parallel()
	w := copyOf(t, "conflicting", conflicting)
	out := t.TempDir()
	program := filepath.Join(out, "program")
	w.put(out, "program", "#!/bin/sh\necho >> "+out+"/ran\nexit 1\n")
	w.must(os.Chmod(program, 0o700))
	for _, key := range []string{"filter.x.smudge", "filter.x.clean", "filter.y.process", "core.fsmonitor"} {
		w.git(w.repo, "config", key, program)
	}
	w.git(w.repo, "config", "filter.x.required", "true")
	w.put(w.repo, ".git/info/attributes", "a.txt filter=x\nloose.txt filter=y\n")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		w.must(errors.Join(os.MkdirAll(filepath.Join(w.repo, ".git", "hooks"), 0o700),
			os.Symlink(program, filepath.Join(w.repo, ".git", "hooks", hook))))
	}
	dir := w.byHand()
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "one\nagent\nthree\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(out, "ran")); err == nil {
		t.Error("a program ran")
	}
}

// A checkout whose process is killed at any call of git is made, or ended, by the same order once more. Nothing is lost.
func TestCheckoutKilled(t *testing.T) {
	t.Parallel()
	step := testsize.Pick(3, 1, 1)
	for _, name := range []string{"checkout", "done"} {
		for _, how := range []string{"before", "after"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at += step {
					if !diesOnce(t, name, how, at) {
						if at == 1 {
							t.Error("no call was killed")
						}
						return
					}
				}
			})
		}
	}
}

// diesOnce lets a step die at a call of git, and does it again. It reports whether there was such a call.
func diesOnce(t *testing.T, name, how string, at int) (killed bool) {
	w := copyOf(t, "conflicting", conflicting)
	dir, commit := w.repo+"-T1", ""
	if name == "done" {
		w.byHand()
		commit = w.resolves(dir)
	}
	o := w.dying(w.task, name, how, strconv.Itoa(at))
	if o.Kind != "killed" && o.Kind != "" {
		t.Fatalf("call %d: %+v", at, o)
	}
	if name == "checkout" {
		if _, err := w.task.CheckOut(t.Context(), "", ""); err != nil && !strings.Contains(err.Error(), "it is checked out in "+dir) {
			t.Fatalf("call %d: %v", at, err)
		}
		if c, err := w.task.ByHand(); err != nil || c.Half || w.git(dir, "status", "--porcelain") != "" ||
			w.git(dir, "rev-parse", "HEAD") != w.task.Asked.Commit || w.git(dir, "branch", "--show-current") != "fairlead/T1" {
			t.Fatalf("call %d: %+v, %v", at, c, err)
		}
		commit = w.resolves(dir)
	}
	if _, newer, err := w.task.TakeByHand(t.Context()); err != nil || !newer {
		t.Fatalf("call %d: newer: %v, %v", at, newer, err)
	}
	w.noCheckout(dir)
	if got := w.git(w.task.Tree, "rev-parse", "HEAD"); got != commit || w.git(w.task.Tree, "status", "--porcelain") != "" ||
		w.git(w.repo, "rev-parse", w.task.Ref()) != commit {
		t.Fatalf("call %d: the folder is at %s: %s", at, got, w.git(w.task.Tree, "status"))
	}
	return o.Kind == "killed"
}
