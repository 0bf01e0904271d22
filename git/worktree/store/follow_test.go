package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// follow is one look, in which git may not start unless starts is true.
func (w world) follow(starts bool) bool {
	w.Helper()
	if !starts {
		path := os.Getenv("PATH")
		w.Setenv("PATH", filepath.Join(filepath.Dir(w.repo), "no-programs"))
		defer w.Setenv("PATH", path)
	}
	changed, err := w.store.Follow(w.Context(), w.repo, filepath.Join(w.repo, ".git"))
	if err != nil {
		w.Fatal(err)
	}
	return changed
}

// The store follows each change of a branch that it has and of a remote-tracking ref, and starts no git if nothing has changed.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	if w.follow(false) {
		t.Error("without a store there is something to follow")
	}
	w.refresh("main")
	w.follow(true)
	first := w.git(w.repo, "rev-parse", "main")
	for _, c := range []struct {
		name string
		do   func()
		ref  string
	}{
		{"a commit", func() { w.commit("second") }, "refs/heads/main"},
		{"a step back", func() { w.git(w.repo, "reset", "--quiet", "--hard", first) }, "refs/heads/main"},
		{"a fetch", func() { w.git(w.repo, "update-ref", "refs/remotes/origin/main", w.commit("third")) }, "refs/remotes/origin/main"},
		{"packed refs", func() { w.git(w.repo, "pack-refs", "--all") }, "refs/heads/main"},
		{"a commit on packed refs", func() { w.commit("fourth") }, "refs/heads/main"},
	} {
		if w.follow(false) {
			t.Errorf("before %s: it has changed", c.name)
		}
		c.do()
		if !w.follow(true) {
			t.Errorf("%s: nothing has changed", c.name)
		}
		if got, want := w.git(w.store.Dir, "rev-parse", c.ref), w.git(w.repo, "rev-parse", c.ref); got != want {
			t.Errorf("%s: %s is at %s, and not at %s", c.name, c.ref, got, want)
		}
	}
	w.git(w.repo, "update-ref", "-d", "refs/remotes/origin/main")
	if !w.follow(true) || w.follow(false) {
		t.Error("a ref that is gone is not seen once")
	}
	if got := w.git(w.store.Dir, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("it has %s", got)
	}
	if err := os.Remove(filepath.Join(w.store.Dir, followedName)); err != nil {
		t.Fatal(err)
	}
	if !w.follow(true) {
		t.Error("a store that has not followed yet is taken as up to date")
	}
}

// A repository whose refs are in tables is followed, too.
func TestFollowTables(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(filepath.Dir(w.repo), "tables")
	if _, err := (worktree.Git{Dir: filepath.Dir(dir)}).Ask(t.Context(), "init", "--quiet", "-b", "main", "--ref-format=reftable", "--",
		dir); err != nil {
		t.Skip("this git makes no such repository: ", err)
	}
	w.repo, w.store = dir, Of(dir)
	w.git(dir, "config", "user.name", "A Person")
	w.git(dir, "config", "user.email", "person@example.org")
	w.commit("first")
	w.refresh("main")
	w.follow(true)
	if w.follow(false) {
		t.Error("it has changed by itself")
	}
	newest := w.commit("second")
	if !w.follow(true) || w.git(w.store.Dir, "rev-parse", "main") != newest {
		t.Error("a commit is not seen")
	}
}

// What another program has in the folder of refs is not read, and more refs than are read count as changed.
func TestRefsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	git := filepath.Join(w.repo, ".git")
	sum := func(most int) string {
		t.Helper()
		text, err := refsOf(git, most)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := sum(1)
	if err := os.WriteFile(filepath.Join(git, "refs", "heads", "main.lock"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(git, "refs", "heads", "endless")); err != nil {
		t.Fatal(err)
	}
	if before == "" || sum(1) != before {
		t.Error("a lock or a link counts")
	}
	w.git(w.repo, "branch", "second")
	if got := sum(1); got != "" {
		t.Errorf("two refs have the sum %s where one is read", got)
	}
	if got := sum(2); got == "" || got == before {
		t.Errorf("two refs have the sum %q", got)
	}
}
