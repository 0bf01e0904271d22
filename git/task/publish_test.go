package task

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/forge"
)

func withRemote(t *testing.T) *world {
	w := newWorld(t)
	w.git(filepath.Dir(w.repo), "init", "--quiet", "--bare", "-b", "main", "bare")
	w.git(w.repo, "remote", "add", "origin", w.bare())
	return w
}

// What was shown is pushed, and nothing else: later changes are not, nor are Fairlead's own files. A further push adds a commit.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := withRemote(t)
	w.works(&w.task)
	w.put(w.task.Tree, ".fairlead/x", "own\n")
	w.git(w.task.Tree, "add", "--force", ".fairlead/x")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "own")
	w.ask(&w.task)
	w.put(w.task.Tree, "later.txt", "later\n")
	p, err := w.task.Publish(t.Context(), Publishing{})
	w.must(err)
	if !p.Shown || p.There || p.Branch != "fairlead/T1" || w.git(w.bare(), "rev-parse", "fairlead/T1:") != w.task.Asked.Tree ||
		w.git(w.bare(), "log", "--format=%an %s", "fairlead/T1") != "A Person Do T1\nA Person first" {
		t.Errorf("%+v\n%s", p, w.git(w.bare(), "log", "--stat", "fairlead/T1"))
	}
	if again, err := w.task.Publish(t.Context(), Publishing{}); err != nil || !again.There || again.Commit != p.Commit {
		t.Errorf("%+v, %v", again, err)
	}
	w.ask(&w.task)
	next, err := w.task.Publish(t.Context(), Publishing{})
	w.must(err)
	if w.git(w.bare(), "rev-parse", "fairlead/T1~") != p.Commit || w.git(w.bare(), "show", next.Commit+":later.txt") != "later" {
		t.Errorf("%+v", next)
	}
	if _, err = w.task.Publish(t.Context(), Publishing{Branch: "main"}); err != nil {
		t.Error(err)
	}
	if w.git(w.repo, "for-each-ref", "refs/heads") != w.git(w.repo, "for-each-ref", "refs/heads/main") {
		t.Error("a branch of the person's repository was made")
	}
}

// Without a question it is what the folder has, or had when it was removed.
func TestPublishUnshown(t *testing.T) {
	t.Parallel()
	w := withRemote(t)
	w.put(w.task.Tree, "loose.txt", "loose\n")
	w.put(w.task.Tree, ".fairlead/x", "own\n")
	p, err := w.task.Publish(t.Context(), Publishing{Branch: "wip/x"})
	w.must(err)
	if p.Shown || w.git(w.bare(), "ls-tree", "-r", "--name-only", "wip/x") != ".gitignore\na.txt\nloose.txt" {
		t.Errorf("%+v: %s", p, w.git(w.bare(), "ls-tree", "-r", "--name-only", "wip/x"))
	}
	_, err = w.task.Remove(t.Context())
	w.must(err)
	if p, err = w.task.Publish(t.Context(), Publishing{Branch: "wip/x"}); err != nil || !p.There {
		t.Errorf("%+v, %v", p, err)
	}
}

// Commits of others are not lost without force, and every refusal says what to do.
func TestPublishRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(w *world)
		to   Publishing
		says string // empty: it is pushed
	}{
		"others": {func(w *world) { w.others() }, Publishing{}, "has commits that the task does not have, the last one is "},
		"forced": {func(w *world) { w.others() }, Publishing{Force: true}, ""},
		"an ancestor": {func(w *world) {
			w.git(w.repo, "push", "--quiet", "origin", "main:refs/heads/other")
			w.put(w.repo, "n.txt", "n")
			w.git(w.repo, "add", "n.txt")
			w.git(w.repo, "commit", "--quiet", "-m", "newer")
			w.task = w.give("T2", "")
			w.put(w.task.Tree, "b.txt", "b\n")
			w.ask(&w.task)
		}, Publishing{Branch: "other"}, ""},
		"a remote":  {func(*world) {}, Publishing{Remote: "none"}, "no remote none; add it with git remote add"},
		"an option": {func(*world) {}, Publishing{Remote: "--upload-pack=x"}, "no remote --upload-pack=x"},
		"a branch":  {func(*world) {}, Publishing{Branch: "a..b"}, "is not a branch name"},
		"gone":      {func(w *world) { w.must(os.RemoveAll(w.bare())) }, Publishing{}, "see what `git -C "},
		"a hook": {func(w *world) {
			w.put(w.bare(), "hooks/pre-receive", "#!/bin/sh\necho protected >&2; exit 1\n")
			w.must(os.Chmod(filepath.Join(w.bare(), "hooks/pre-receive"), 0o755))
		}, Publishing{}, "protected"},
		"governing": {func(w *world) {
			w.put(w.task.Tree, "Makefile", "all:\n")
			w.ask(&w.task)
		}, Publishing{}, "decide what runs later, and a forge may run them at once: Makefile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withRemote(t)
			w.put(w.task.Tree, "b.txt", "b\n")
			w.ask(&w.task)
			c.do(w)
			p, err := w.task.Publish(t.Context(), c.to)
			if c.says == "" {
				if err != nil || w.git(w.bare(), "show", p.Branch+":b.txt") != "b" {
					t.Errorf("%+v, %v", p, err)
				}
				return
			}
			if !errors.As(err, new(*Blocked)) && !errors.As(err, new(*forge.Fault)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// others push to the task's branch.
func (w *world) others() {
	w.Helper()
	other := filepath.Join(filepath.Dir(w.repo), "others")
	w.git(w.repo, "push", "--quiet", "origin", "main")
	w.git(filepath.Dir(w.repo), "clone", "--quiet", w.bare(), other)
	w.git(other, "-c", "user.name=O", "-c", "user.email=o@example.org", "commit", "--quiet", "--allow-empty", "-m", "theirs")
	w.git(other, "push", "--quiet", "origin", "HEAD:refs/heads/"+w.task.Branch)
}
