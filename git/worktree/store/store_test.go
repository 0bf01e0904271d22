package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Intercept()
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

type world struct {
	*testing.T
	repo  string
	store Store
}

func (w world) git(dir string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w world) commit(text string) string {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.repo, "a.txt"), []byte(text+"\n"), 0o600); err != nil {
		w.Fatal(err)
	}
	w.git(w.repo, "add", "a.txt")
	w.git(w.repo, "commit", "--quiet", "-m", text)
	return w.git(w.repo, "rev-parse", "HEAD")
}

func newWorld(t *testing.T) world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, filepath.Join(dir, "repo"), Of(filepath.Join(dir, "repo"))}
	w.git(dir, "init", "--quiet", "-b", "main", w.repo)
	w.git(w.repo, "config", "user.name", "A Person")
	w.git(w.repo, "config", "user.email", "person@example.org")
	w.commit("first")
	return w
}

func (w world) refresh(bases ...string) {
	w.Helper()
	if err := w.store.Refresh(w.Context(), w.repo, bases...); err != nil {
		w.Fatal(err)
	}
}

// The store has the bases and the remote-tracking refs and nothing else, follows them, and keeps what a clone was made from.
func TestRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.git(w.repo, "rev-parse", "HEAD")
	w.git(w.repo, "update-ref", "refs/remotes/up/main", first)
	w.git(w.repo, "branch", "private")
	w.git(w.repo, "update-ref", "refs/fairlead/tasks/T1", first)
	w.git(w.repo, "update-ref", "refs/fairlead/tasks/T1.base", first)
	w.refresh("main")
	if got := w.git(w.store.Dir, "for-each-ref",
		"--format=%(refname)"); got != "refs/fairlead/tasks/T1.base\nrefs/heads/main\nrefs/remotes/up/main" {
		t.Errorf("it has %s", got)
	}
	clone := filepath.Join(filepath.Dir(w.repo), "clone")
	making := worktree.Clone{Repo: worktree.Git{Dir: w.repo}, Dir: clone, Store: w.store.Dir}
	if err := making.Make(t.Context(), worktree.Start{Head: first}); err != nil {
		t.Fatal(err)
	}
	alternate, err := os.ReadFile(filepath.Join(clone, ".git", "objects", "info", "alternates"))
	if err != nil || strings.TrimSpace(string(alternate)) != filepath.Join(w.store.Dir, "objects") {
		t.Errorf("the alternate is %q, %v", alternate, err)
	}
	if got := w.git(clone, "config", "remote.origin.url"); got != w.store.Dir {
		t.Errorf("origin is %s", got)
	}
	for _, key := range []string{"commit.gpgsign", "tag.gpgsign"} {
		if got := w.git(clone, "config", "--local", key); got != "false" {
			t.Errorf("%s is %s", key, got)
		}
	}
	w.git(w.repo, "commit", "--quiet", "--amend", "-m", "rewritten")
	newest := w.git(w.repo, "rev-parse", "HEAD")
	w.git(w.repo, "branch", "-D", "private")
	w.git(w.repo, "update-ref", "-d", "refs/fairlead/tasks/T1")
	w.git(w.repo, "update-ref", "-d", "refs/fairlead/tasks/T1.base")
	w.git(w.repo, "update-ref", "-d", "refs/remotes/up/main")
	w.git(w.repo, "reflog", "expire", "--expire=now", "--all")
	w.git(w.repo, "gc", "--quiet", "--prune=now")
	w.refresh("main")
	w.git(clone, "fetch", "--quiet", "origin", "main")
	if got := w.git(clone, "rev-parse", "FETCH_HEAD"); got != newest {
		t.Errorf("fetched %s, and the base is at %s", got, newest)
	}
	if _, err := w.store.git(t.Context(), "repack", "-a", "-d", "--quiet", "--keep-unreachable"); err != nil {
		t.Fatal(err)
	}
	w.git(clone, "cat-file", "-e", first+"^{commit}")
	w.git(w.repo, "checkout", "--quiet", "-b", "main2")
	w.git(w.repo, "branch", "-D", "main")
	w.git(w.repo, "branch", "main/below") // a folder where a ref was
	w.refresh("main2", "main/below")
	if err := w.store.Refresh(t.Context(), w.repo, "none"); err == nil ||
		!strings.Contains(err.Error(), "there is no branch none with a commit in "+w.repo) {
		t.Errorf("a branch that is not there: %v", err)
	}
}

// A git that was killed leaves locks in the store, which no other program writes. The next refresh removes them.
func TestRefreshAfterAKilledGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refresh("main")
	next := w.commit("second")
	locks := []string{"refs/heads/main.lock", "packed-refs.lock", "config.lock"}
	for _, name := range locks {
		if err := os.WriteFile(filepath.Join(w.store.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.refresh("main")
	if got := w.git(w.store.Dir, "rev-parse", "refs/heads/main"); got != next {
		t.Errorf("main is at %s", got)
	}
	for _, name := range locks {
		if _, err := os.Lstat(filepath.Join(w.store.Dir, name)); err == nil {
			t.Errorf("left: %s", name)
		}
	}
}

// What the person's repository has in part is shared; it is whole for a clone as far as it is there.
func TestPartial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git(w.repo, "config", "extensions.partialClone", "up")
	w.git(w.repo, "config", "remote.up.promisor", "true")
	w.git(w.repo, "config", "remote.up.url", "/nowhere")
	w.refresh("main")
	newest := w.commit("second")
	w.refresh("main")
	if got := w.git(w.store.Dir, "rev-parse", "main"); got != newest || !w.store.shares() {
		t.Errorf("%s, and not %s", got, newest)
	}
}

// Nothing that the person's repository names is run when its commits are taken. Each program runs where git is used there as usual.
func TestRunsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(w world, program string)
		control []string // makes the same program run; it may fail then
	}{
		"fsmonitor": {func(w world, p string) { w.git(w.repo, "config", "core.fsmonitor", p) }, []string{"status"}},
		"a filter": {func(w world, p string) {
			w.git(w.repo, "config", "filter.x.clean", p)
			w.git(w.repo, "config", "filter.x.smudge", p)
			if err := os.WriteFile(filepath.Join(w.repo, ".git", "info", "attributes"), []byte("* filter=x\n"), 0o600); err != nil {
				w.Fatal(err)
			}
		}, []string{"cat-file", "--filters", "HEAD:a.txt"}},
		"a hook": {func(w world, p string) {
			w.git(w.repo, "config", "core.hooksPath", filepath.Dir(p))
		}, []string{"update-ref", "refs/heads/x", "HEAD"}},
		"an alias":       {func(w world, p string) { w.git(w.repo, "config", "alias.other", "!"+p) }, []string{"other"}},
		"a diff program": {func(w world, p string) { w.git(w.repo, "config", "diff.external", p) }, []string{"diff", "HEAD", "HEAD~1"}},
		"included settings": {func(w world, p string) {
			w.git(w.repo, "config", "--file", p+".config", "core.fsmonitor", p)
			w.git(w.repo, "config", "include.path", p+".config")
		}, []string{"status"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.T = t
			w.commit("second")
			dir := t.TempDir()
			program, ran := filepath.Join(dir, "reference-transaction"), filepath.Join(dir, "ran")
			if err := os.WriteFile(program, []byte("#!/bin/sh\necho >> "+ran+"\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			c.set(w, program)
			w.refresh("main")
			clone := worktree.Clone{Repo: worktree.Git{Dir: w.repo}, Dir: filepath.Join(dir, "clone"), Store: w.store.Dir}
			if err := clone.Make(t.Context(), worktree.Start{Head: w.git(w.repo, "rev-parse", "main"), Base: "main"}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(ran); err == nil {
				t.Error("it ran")
			}
			control := exec.Command("git", c.control...) //nolint:gosec // of this test
			control.Dir = w.repo
			_ = control.Run()
			if _, err := os.Lstat(ran); err != nil {
				t.Errorf("it does not run under `git %s` either, which proves nothing", strings.Join(c.control, " "))
			}
		})
	}
}

// Many packs become one, and no object goes.
func TestTidy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refresh("main")
	blob := ""
	for i := range packsMax + 1 {
		id := exec.Command("git", "hash-object", "-w", "--stdin")
		id.Dir, id.Stdin = w.store.Dir, strings.NewReader(strings.Repeat("x", i+1))
		out, err := id.Output()
		if err != nil {
			t.Fatal(err)
		}
		blob = strings.TrimSpace(string(out))
		pack := exec.Command("git", "pack-objects", "--quiet", "objects/pack/pack")
		pack.Dir, pack.Stdin = w.store.Dir, strings.NewReader(blob+"\n")
		if err := pack.Run(); err != nil {
			t.Fatal(err)
		}
	}
	w.refresh("main")
	if packs, _ := filepath.Glob(filepath.Join(w.store.Dir, "objects", "pack", "*.pack")); len(packs) > 2 {
		t.Errorf("%d packs", len(packs))
	}
	w.git(w.store.Dir, "cat-file", "-e", blob)
}
