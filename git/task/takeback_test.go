package task

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// works commits twice in a task's folder.
func (w *world) works(task *Task) {
	w.Helper()
	w.put(task.Tree, "b.txt", "b\n")
	w.git(task.Tree, "add", "b.txt")
	w.git(task.Tree, "commit", "--quiet", "-m", "one")
	w.put(task.Tree, "a.txt", "one\n2\nthree\n")
	w.git(task.Tree, "rm", "--quiet", "--cached", ".gitignore")
	w.must(os.Remove(filepath.Join(task.Tree, ".gitignore")))
	w.git(task.Tree, "commit", "--quiet", "-a", "-m", "two")
}

// landed is a world in which a task with two commits has landed, and the commit.
func landedWorld(t *testing.T, how string) (*world, Landed) {
	w := newWorld(t)
	w.task.How = how
	w.works(&w.task)
	done, err := w.land(&w.task)
	w.must(err)
	_, err = w.task.Remove(t.Context())
	w.must(err)
	return w, done
}

// again shows a task whose landing was taken back to a person, and lands it.
func (w *world) again(task *Task) Landed {
	w.Helper()
	w.must(task.Reopen(w.Context()))
	s, err := task.Show(w.Context(), task.Run)
	w.must(err)
	if task.Asked = s.Asked; s.Files != 3 {
		w.Errorf("it shows %d files: %q", s.Files, s.Stat)
	}
	done, err := lands(w.Context(), *task, &bytes.Buffer{})
	w.must(err)
	if done.Commit == "" || w.onBase("a.txt") != "one\n2\nthree" {
		w.Errorf("it did not land again: %+v", done)
	}
	return done
}

// A landing is taken back whole, in however many commits it came, and the clean checkout moves. The task can land again.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	for _, how := range []string{Squash, Merge, Rebase} {
		for _, away := range []bool{false, true} {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				w, done := landedWorld(t, how)
				if away {
					w.git(w.repo, "checkout", "--quiet", "--orphan", "elsewhere")
				}
				before := w.git(w.repo, "rev-parse", w.task.Asked.From)
				b, err := w.task.TakeBack(t.Context(), done.Commit)
				w.must(err)
				if w.git(w.repo, "rev-parse", "main") != before || b.Moved != before || b.Revert != "" || (b.Checkout == w.repo) == away {
					t.Errorf("%+v, on %s", b, before)
				}
				if !away && (w.git(w.repo, "status", "--porcelain") != "" || w.read("../repo/a.txt") != "one\ntwo\nthree\n") {
					t.Errorf("the checkout: %s", w.git(w.repo, "status", "--porcelain"))
				}
				if b, err = w.task.TakeBack(t.Context(), done.Commit); err != nil || b != (TookBack{}) {
					t.Errorf("the second time: %+v, %v", b, err)
				}
				w.again(&w.task)
			})
		}
	}
}

// If something else has the landed commit, the branch is not moved: a commit reverts it, and lands as a task of its own. After that the
// first task can land again, and that landing can be taken back, too.
func TestTakeBackByRevert(t *testing.T) {
	t.Parallel()
	newer := func(w *world) {
		w.put(w.repo, "a.txt", "one\n2\nthree\nfour\n")
		w.git(w.repo, "commit", "--quiet", "-a", "-m", "newer")
	}
	for name, c := range map[string]struct {
		how  string
		do   func(w *world)
		says string
	}{
		"newer squash":    {Squash, newer, "newer commits"},
		"newer merge":     {Merge, newer, "newer commits"},
		"newer rebase":    {Rebase, newer, "newer commits"},
		"remote-tracking": {Squash, func(w *world) { w.git(w.repo, "update-ref", "refs/remotes/origin/main", "main") }, "origin/main has it"},
		"branch":          {Squash, func(w *world) { w.git(w.repo, "branch", "other", "main") }, "branch other has it"},
		"tag":             {Squash, func(w *world) { w.git(w.repo, "tag", "v1", "main") }, "tags/v1 has it"},
		"detached": {
			Squash, func(w *world) { w.git(w.repo, "worktree", "add", "--quiet", "--detach", "../at", "main") }, "without a branch",
		},
		"another task":     {Squash, func(w *world) { w.give("T2", "") }, "task T2 is based on it"},
		"the task's own":   {Squash, func(w *world) { w.git(w.repo, "branch", w.task.Branch, "main") }, ""},
		"the person's own": {Squash, func(w *world) { w.git(w.repo, "config", "x.y", "z") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, done := landedWorld(t, c.how)
			c.do(w)
			tip := w.git(w.repo, "rev-parse", "main")
			b, err := w.task.TakeBack(t.Context(), done.Commit)
			w.must(err)
			if c.says == "" {
				if b.Moved == "" {
					t.Errorf("%+v", b)
				}
				return
			}
			if w.git(w.repo, "rev-parse", "main") != tip || b.Moved != "" || b.Revert == "" || !strings.Contains(b.Because, c.says) {
				t.Fatalf("%+v", b)
			}
			revert := w.task
			revert.ID, revert.Text, revert.Branch, revert.How = "T9", "Take back", "fairlead/T9", Squash
			revert.Run, revert.Tree = filepath.Join(filepath.Dir(w.repo), "run-T9"), filepath.Join(filepath.Dir(w.repo), "tree-T9")
			w.must(os.Mkdir(revert.Run, 0o755))
			w.must(revert.MakeRevert(t.Context(), b.Revert))
			w.must(revert.Prepare(t.Context(), &bytes.Buffer{}))
			if _, err := w.land(&revert); err != nil {
				t.Fatal(err)
			}
			want := "one\ntwo\nthree"
			if strings.HasPrefix(name, "newer") {
				want += "\nfour"
			}
			if w.onBase("a.txt") != want || w.git(w.repo, "ls-tree", "--name-only", "main", "b.txt", ".gitignore") != ".gitignore" {
				t.Errorf("%q, %s", w.onBase("a.txt"), w.git(w.repo, "ls-tree", "--name-only", "main"))
			}
			if b, err = w.task.TakeBack(t.Context(), done.Commit); err != nil || b.Moved+b.Revert != "" {
				t.Errorf("the second time: %+v, %v", b, err)
			}
			if strings.HasPrefix(name, "newer") {
				return // "four" is in the way of the comparison below
			}
			w.must(w.task.NoteTakenBack(t.Context(), done.Commit))
			again := w.again(&w.task)
			if b, err = w.task.TakeBack(t.Context(), again.Commit); err != nil || b.Moved == "" {
				t.Errorf("the second landing: %+v, %v", b, err)
			}
		})
	}
}

// After a revert, a task that landed with its own commits behind a merge lands again: git has its commits, and not their content.
func TestLandsAgainAfterARevert(t *testing.T) {
	t.Parallel()
	for _, how := range []string{Squash, Merge, Rebase} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w, done := landedWorld(t, how)
			w.git(w.repo, "tag", "v1", "main")
			b, err := w.task.TakeBack(t.Context(), done.Commit)
			w.must(err)
			w.git(w.repo, "merge", "--quiet", "--ff-only", b.Revert)
			w.must(w.task.NoteTakenBack(t.Context(), done.Commit))
			w.again(&w.task)
		})
	}
}

// An undo that is refused names what prevents it, and changes nothing.
func TestTakeBackRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(w *world)
		says string
	}{
		"a file that is not committed": {func(w *world) { w.put(w.repo, "a.txt", "mine\n") }, "not committed: a.txt"},
		"a file that git does not have": {
			func(w *world) { w.put(w.repo, ".gitignore", "mine\n") },
			"that git does not have are in the way: .gitignore",
		},
		"a merge": {func(w *world) { w.put(w.repo, ".git/MERGE_HEAD", w.git(w.repo, "rev-parse", "main")) }, "is not finished"},
		"a conflict": {func(w *world) {
			w.put(w.repo, "a.txt", "one\nII\nthree\n")
			w.git(w.repo, "commit", "--quiet", "-a", "-m", "newer")
		}, "conflicts with branch main in a.txt"},
		"what was approved is not known": {func(w *world) { w.task.Asked.Tree = w.git(w.repo, "rev-parse", "main~:") }, "git revert"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, done := landedWorld(t, Squash)
			c.do(w)
			tip, status := w.git(w.repo, "rev-parse", "main"), w.git(w.repo, "status", "--porcelain")
			b, err := w.task.TakeBack(t.Context(), done.Commit)
			if !errors.As(err, new(*Blocked)) && !errors.As(err, new(*Conflict)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", b, err)
			}
			if w.git(w.repo, "rev-parse", "main") != tip || w.git(w.repo, "status", "--porcelain") != status {
				t.Errorf("changed: %s", w.git(w.repo, "status", "--porcelain"))
			}
		})
	}
}

// A process that dies while the checkout moves back is followed by one that begins anew.
func TestTakeBackKilled(t *testing.T) {
	t.Parallel()
	w, done := landedWorld(t, Squash)
	at, err := w.task.checkedOut(t.Context())
	w.must(err)
	m := &move{
		Task: w.task.ID, Branch: "main", Dir: at.dir, Git: at.git, From: done.Commit, To: w.git(w.repo, "rev-parse", "main~"),
		common: w.task.Git,
	}
	end, err := m.begin()
	w.must(err)
	w.must(errors.Join(m.lock(t.Context(), "lock", m.indexLock()), duplicate(filepath.Join(m.Git, "index"), m.index())))
	_, err = m.run(t.Context(), "index", nil, "read-tree", "-m", "-u", m.From, m.To)
	w.must(err)
	end()
	if b, err := w.task.TakeBack(t.Context(), done.Commit); err != nil || b.Moved == "" {
		t.Fatalf("%+v, %v", b, err)
	}
	if got := strings.Fields(w.git(w.repo, "ls-files")); w.git(w.repo, "status", "--porcelain") != "" || !slices.Contains(got, ".gitignore") {
		t.Errorf("%q", got)
	}
	w.noTraces()
}
