package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/template"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Intercept()
	// Without a template a repository has no examples of hooks, fourteen files that no test reads.
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TEMPLATE_DIR": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	child()
	testsize.Parallel(4) // they wait for git and the disk
	os.Exit(m.Run())
}

// world is a repository with a task in it.
type world struct {
	*testing.T
	repo string
	task Task
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) put(dir, name, text string) {
	w.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// onBase is a file's content on the base branch.
func (w *world) onBase(name string) string { return w.git(w.repo, "show", "main:"+name) }

// made are the worlds that were made in this process, by name. Each test has copies of them: git makes one in some fifty processes.
var made sync.Map

type madeWorld struct {
	once sync.Once
	tree *template.Tree
	task Task
}

// copyOf is a world of the test's own, as build makes it. Calls with the same name have the same build.
func copyOf(t *testing.T, name string, build func(w *world)) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	found, _ := made.LoadOrStore(name, &madeWorld{})
	m := found.(*madeWorld)
	m.once.Do(func() {
		first := filepath.Join(dir, ".first")
		w := &world{T: t, repo: filepath.Join(first, "repo")}
		w.must(os.MkdirAll(w.repo, 0o755))
		build(w)
		m.task, m.tree = w.task, template.Of(t, first)
		w.must(os.RemoveAll(first))
	})
	if m.tree == nil {
		t.Fatalf("another test was to make the world %q, and has failed", name)
	}
	m.tree.To(t, dir)
	w := &world{T: t, repo: filepath.Join(dir, "repo"), task: m.task}
	for _, path := range []*string{&w.task.Repo, &w.task.Git, &w.task.Run, &w.task.Tree} {
		*path = m.tree.Path(dir, *path)
	}
	return w
}

func newRepo(t *testing.T) *world { return copyOf(t, "repo", firstCommit) }

func firstCommit(w *world) {
	w.git(w.repo, "init", "--quiet", "-b", "main")
	w.git(w.repo, "config", "user.name", "A Person")
	w.git(w.repo, "config", "user.email", "person@example.org")
	w.put(w.repo, "a.txt", "one\ntwo\nthree\n")
	w.put(w.repo, ".gitignore", "ignored\n")
	w.put(w.repo, ".git/info/exclude", ".fairlead\n") // it has such a file of its own otherwise
	w.git(w.repo, "add", ".")
	w.git(w.repo, "commit", "--quiet", "-m", "first")
}

// give makes a task with its folder. base is empty for the current branch.
func (w *world) give(id, base string) Task {
	w.Helper()
	t, err := Place(w.Context(), w.repo, base)
	w.must(err)
	t.ID, t.Text, t.How, t.Branch = id, "Do "+id+"\n\nas it is described.", Squash, "fairlead/"+id
	t.Run, t.Tree = filepath.Join(filepath.Dir(w.repo), "run-"+id), filepath.Join(filepath.Dir(w.repo), "tree-"+id)
	w.must(os.Mkdir(t.Run, 0o755))
	w.must(t.Make(w.Context()))
	return t
}

func newWorld(t *testing.T) *world { return copyOf(t, "world", firstTask) }

func firstTask(w *world) {
	firstCommit(w)
	w.task = w.give("T1", "")
}

// ask shows a task to a person, who approves what was shown.
func (w *world) ask(t *Task) {
	w.Helper()
	s, err := t.Show(w.Context(), t.Run)
	w.must(err)
	t.Asked = s.Asked
}

// lands lands a task as the daemon does: the checks run on the merged files first, each time that the base has moved.
func lands(ctx context.Context, t Task, out io.Writer) (Landed, error) {
	for {
		done, err := t.Land(ctx)
		if !errors.As(err, new(*Unchecked)) {
			return done, err
		}
		if err := t.CheckMerged(ctx, out); err != nil {
			return done, err
		}
	}
}

func (w *world) land(t *Task) (Landed, error) {
	w.Helper()
	w.ask(t)
	return lands(w.Context(), *t, &bytes.Buffer{})
}

// A snapshot has what was committed and what was not, and leaves out what git ignores and what was copied.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.repo, ".env", "SECRET=1\n")
	w.task.Copy = []string{".env", "missing"}
	var out bytes.Buffer
	w.must(w.task.Prepare(t.Context(), &out))
	if got, err := os.ReadFile(filepath.Join(w.task.Tree, ".env")); err != nil || string(got) != "SECRET=1\n" {
		t.Errorf("the copy is %q, %v", got, err)
	}
	if !strings.Contains(out.String(), "there is no missing") {
		t.Errorf("%s", &out)
	}
	w.put(w.task.Tree, "b.txt", "new\n")
	w.git(w.task.Tree, "add", "b.txt")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
	w.put(w.task.Tree, "c/d.txt", "loose\n")
	w.put(w.task.Tree, "ignored", "x\n")
	w.must(os.Remove(filepath.Join(w.task.Tree, "a.txt")))
	w.git(w.task.Tree, "init", "--quiet", "inner")
	p, err := w.task.Snapshot(t.Context())
	w.must(err)
	if got := strings.Fields(w.git(w.repo, "ls-tree", "-r", "--name-only", p.Tree)); !slices.Equal(got,
		[]string{".gitignore", "b.txt", "c/d.txt"}) {
		t.Errorf("it has %q", got)
	}
	if !p.Loose || w.git(w.repo, "rev-parse", w.task.Ref()) != p.Commit ||
		w.git(w.repo, "log", "-1", "--format=%s", p.Commit+"^") != "the agent's" {
		t.Errorf("%+v", p)
	}
	w.put(w.task.Run, "index.lock", "") // as a git that was killed leaves it
	again, err := w.task.Snapshot(t.Context())
	w.must(err)
	if again.Tree != p.Tree {
		t.Errorf("%+v, and then %+v", p, again)
	}
	if w.git(w.repo, "status", "--porcelain") != "?? .env" {
		t.Errorf("the person's repository: %s", w.git(w.repo, "status", "--porcelain"))
	}
}

// What an agent writes into the settings, hooks and attributes of its clone is never executed by Fairlead.
func TestHostileClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := filepath.Join(t.TempDir(), "ran")
	touch := "touch " + mark
	for _, kv := range [][2]string{
		{"core.fsmonitor", touch},
		{"core.hooksPath", filepath.Join(w.task.Tree, "hooks")},
		{"filter.evil.clean", touch},
		{"filter.evil.smudge", touch},
		{"diff.external", touch},
		{"diff.evil.textconv", touch},
		{"merge.evil.driver", touch},
		{"core.sshCommand", touch},
		{"uploadpack.packObjectsHook", touch},
		{"core.alternateRefsCommand", touch},
		{"gpg.program", touch},
		{"core.pager", touch},
		{"core.editor", touch},
	} {
		w.git(w.task.Tree, "config", kv[0], kv[1])
	}
	w.put(w.task.Tree, ".gitattributes", "* filter=evil diff=evil merge=evil\n")
	for _, hook := range []string{
		"post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change", "pre-push",
		"post-merge",
	} {
		for _, dir := range []string{"hooks", ".git/hooks"} {
			w.put(w.task.Tree, dir+"/"+hook, "#!/bin/sh\n"+touch+"\n")
			w.must(os.Chmod(filepath.Join(w.task.Tree, dir, hook), 0o755))
		}
	}
	w.put(w.task.Tree, "a.txt", "one\n2\nthree\n")
	w.git(w.task.Tree, "init", "--quiet", "inner")
	w.git(filepath.Join(w.task.Tree, "inner"), "config", "core.fsmonitor", touch)
	if _, err := os.Stat(mark); err == nil {
		w.must(os.Remove(mark)) // the commands of this test ran it, as they would for the agent
	}
	if _, err := w.land(&w.task); err != nil {
		t.Fatal(err)
	}
	if _, err := w.task.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.must(os.RemoveAll(filepath.Join(w.task.Tree, "inner"))) // it could not be kept
	if _, err := w.task.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("something of the clone was executed")
	}
	if w.onBase("a.txt") != "one\n2\nthree" {
		t.Errorf("on the branch: %q", w.onBase("a.txt"))
	}
}

// It lands as one commit, or with a merge commit; a clean checkout of the branch moves with it.
func TestLand(t *testing.T) {
	t.Parallel()
	for _, how := range []string{Squash, Merge} {
		t.Run(how, func(t *testing.T) {
			w := newRepo(t)
			w.task = w.give("T1", "")
			w.task.How = how
			w.put(w.task.Tree, "b.txt", "new\n")
			w.git(w.task.Tree, "add", "b.txt")
			w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
			w.put(w.task.Tree, "c.txt", "loose\n")
			done, err := w.land(&w.task)
			w.must(err)
			if done.Commit == "" || done.Later || w.git(w.repo, "rev-parse", "main") != done.Commit {
				t.Fatalf("%+v", done)
			}
			parents := strings.Fields(w.git(w.repo, "log", "-1", "--format=%P", "main"))
			if len(parents) != map[string]int{Squash: 1, Merge: 2}[how] {
				t.Errorf("parents: %q", parents)
			}
			if got := w.git(w.repo, "log", "-1", "--format=%B", "main"); got != "Do T1\n\nas it is described.\n\nTask: T1" {
				t.Errorf("message: %q", got)
			}
			for _, name := range []string{"b.txt", "c.txt"} {
				if _, err := os.Stat(filepath.Join(w.repo, name)); err != nil {
					t.Errorf("the checkout: %v", err)
				}
			}
			if got := w.git(w.repo, "status", "--porcelain"); got != "" {
				t.Errorf("the checkout is not clean: %s", got)
			}
			if again, err := lands(t.Context(), w.task, &bytes.Buffer{}); err != nil || again.Commit != done.Commit ||
				w.git(w.repo, "rev-parse", "main") != done.Commit {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// A person is shown a line for each file, and where the whole difference is.
func TestShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	if !slices.Equal(s.Stat, []string{"no file was changed"}) || s.Diff != "" {
		t.Errorf("%+v", s)
	}
	for i := range 60 {
		w.put(w.task.Tree, fmt.Sprintf("f%02d.txt", i), "x\n")
	}
	w.put(w.task.Tree, "a.txt", "one\ntwo\n")
	s, err = w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	if n := len(s.Stat); n != linesTold+2 || !strings.Contains(s.Stat[0], "a.txt") || !strings.Contains(s.Stat[n-2], "61 files changed") ||
		!strings.Contains(s.Stat[n-3], "12 more files") {
		t.Errorf("%d lines: %q", n, s.Stat)
	}
	if text, err := os.ReadFile(s.Diff); err != nil || !strings.Contains(string(text), "-three\n") {
		t.Errorf("%q, %v", text, err)
	}
}

// Exactly what was shown lands: later changes stay behind, and are said.
func TestLandsWhatWasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := lands(t.Context(), w.task, &bytes.Buffer{}); !errors.As(err, new(*Blocked)) {
		t.Errorf("not shown: %v", err)
	}
	w.put(w.task.Tree, "b.txt", "shown\n")
	w.ask(&w.task)
	w.put(w.task.Tree, "b.txt", "changed afterwards\n")
	done, err := lands(t.Context(), w.task, &bytes.Buffer{})
	w.must(err)
	if !done.Later || w.onBase("b.txt") != "shown" || w.git(w.repo, "show", w.task.Ref()+":b.txt") != "changed afterwards" {
		t.Errorf("%+v, %q", done, w.onBase("b.txt"))
	}
}

// What stops it from landing: nothing of the person's is changed.
func TestLandBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "a.txt", "one\nagent\nthree\n")
	w.put(w.repo, "a.txt", "one\nperson\nthree\n")
	var blocked *Blocked
	if _, err := w.land(&w.task); !errors.As(err, &blocked) || !strings.Contains(err.Error(), "a.txt") {
		t.Fatalf("dirty: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(w.repo, "a.txt")); string(got) != "one\nperson\nthree\n" {
		t.Errorf("the person's file is %q", got)
	}
	w.git(w.repo, "commit", "--quiet", "-am", "the person's")
	var conflict *Conflict
	if _, err := w.land(&w.task); !errors.As(err, &conflict) || !slices.Equal(conflict.Files, []string{"a.txt"}) {
		t.Fatalf("conflict: %v", err)
	}
	w.must(func() error { _, err := w.sendBack(); return err }())
	w.put(w.task.Tree, "a.txt", "one\nagent\nthree\n")
	w.git(w.task.Tree, "commit", "--quiet", "-am", "merged")
	if _, err := w.land(&w.task); err != nil || w.onBase("a.txt") != "one\nagent\nthree" {
		t.Errorf("after the merge: %v, %q", err, w.onBase("a.txt"))
	}
	w.git(w.repo, "checkout", "--quiet", "--detach") // the branch is checked out nowhere
	next := w.give("T2", "main")
	w.put(next.Tree, "b.txt", "b\n")
	if done, err := w.land(&next); err != nil || w.onBase("b.txt") != "b" || done.Commit == "" {
		t.Errorf("checked out nowhere: %v", err)
	}
}

// Nothing lands in a checkout with changes, also if git could do it because they are in other files.
func TestLandBesideChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "b\n")
	w.put(w.repo, "a.txt", "one\nperson\nthree\n")
	tip := w.git(w.repo, "rev-parse", "main")
	var blocked *Blocked
	if _, err := w.land(&w.task); !errors.As(err, &blocked) || !strings.Contains(err.Error(), "not committed: a.txt") {
		t.Fatalf("%v", err)
	}
	if now := w.git(w.repo, "rev-parse", "main"); now != tip {
		t.Errorf("the branch has moved from %s to %s", tip, now)
	}
	w.git(w.repo, "branch", "next") // tasks on another branch go on
	other := w.give("T2", "next")
	w.put(other.Tree, "c.txt", "c\n")
	if done, err := w.land(&other); err != nil || done.Checkout != "" || w.git(w.repo, "show", "next:c.txt") != "c" {
		t.Errorf("on another branch: %+v, %v", done, err)
	}
	w.git(w.repo, "commit", "--quiet", "-am", "the person's")
	if done, err := w.land(&w.task); err != nil || done.Checkout != w.repo {
		t.Errorf("in a clean checkout: %+v, %v", done, err)
	}
}

// If the branch has moved, the checks run on the merged files: two tasks that are right alone may be wrong together.
func TestChecksOfMergedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.give("T2", "")
	check := `test ! -e b.txt || test ! -e c.txt || { echo "b and c do not go together"; exit 1; }`
	w.task.Checks, other.Checks = []string{check}, []string{check}
	w.put(w.task.Tree, "b.txt", "b\n")
	w.put(other.Tree, "c.txt", "c\n")
	for _, one := range []Task{w.task, other} {
		w.must(one.Check(t.Context(), &bytes.Buffer{}))
	}
	if _, err := w.land(&w.task); err != nil {
		t.Fatal(err)
	}
	w.ask(&other)
	var out bytes.Buffer
	var failed *CheckFailed
	if _, err := lands(t.Context(), other, &out); !errors.As(err, &failed) || !strings.Contains(out.String(), "do not go together") {
		t.Fatalf("%v\n%s", err, &out)
	}
	var conflict *CheckFailed
	w.put(w.task.Tree, "broken", "")
	w.task.Checks = []string{"true", "test ! -e broken"}
	if err := w.task.Check(t.Context(), &out); !errors.As(err, &conflict) || conflict.Command != "test ! -e broken" {
		t.Errorf("%v", err)
	}
}

// Nothing is removed before it is kept; what cannot be kept stays.
func TestRemove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "loose\n")
	ref, err := w.task.Remove(t.Context())
	w.must(err)
	if _, err := os.Stat(w.task.Tree); err == nil || w.git(w.repo, "show", ref+":b.txt") != "loose" {
		t.Errorf("it is there still, or lost: %v", err)
	}
	if commit, err := w.task.Newest(t.Context()); err != nil || commit != w.git(w.repo, "rev-parse", ref) {
		t.Errorf("%s, %v", commit, err)
	}
	if _, err := w.task.Remove(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	bad := w.give("T2", "")
	w.put(bad.Tree, ".git/HEAD", "nonsense\n")
	if _, err := bad.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "stays") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(bad.Tree); err != nil {
		t.Error(err)
	}
}

// What is no place for a task is said, and nothing is made.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	w := newRepo(t)
	empty := t.TempDir()
	unborn := t.TempDir()
	w.git(unborn, "init", "--quiet", "-b", "main")
	sub := newRepo(t)
	sub.put(sub.repo, ".gitmodules", "")
	sub.git(sub.repo, "add", ".gitmodules")
	sub.git(sub.repo, "commit", "--quiet", "-m", "modules")
	w.put(w.repo, "below/x", "")
	for _, c := range []struct {
		dir, base, want string
	}{
		{empty, "", "no git repository"},
		{unborn, "", "commit something"},
		{w.repo, "none", "there is no branch none"},
		{w.repo, "-x", "not a branch name"},
		{w.repo, "a..b", "not a branch name"},
		{filepath.Join(w.repo, "below"), "", "is not in branch main"},
		{sub.repo, "", "submodules"},
	} {
		if _, err := Place(t.Context(), c.dir, c.base); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.dir, c.base, err, c.want)
		}
	}
	w.git(w.repo, "checkout", "--quiet", "--detach")
	if _, err := Place(t.Context(), w.repo, ""); err == nil || !strings.Contains(err.Error(), "detached HEAD") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Place(ctx, w.repo, "main"); err == nil {
		t.Error("a cancelled request finds a place")
	}
}

// With the sandbox a check writes in the folder and nowhere else.
func TestCheckInTheSandbox(t *testing.T) {
	t.Parallel()
	if can := sandbox.Abilities(); can.By == sandbox.ByNothing {
		t.Skip(can.Why)
	}
	w := newWorld(t)
	w.task.Wall.Mode = wallRequired
	var out bytes.Buffer
	w.task.Checks = []string{"echo x > made && echo x > \"$TMPDIR/made\""}
	w.must(w.task.Check(t.Context(), &out))
	for _, place := range []string{w.repo, filepath.Join(w.repo, ".git")} {
		w.task.Checks = []string{"echo x > " + place + "/evil"}
		if err := w.task.Check(t.Context(), &out); err == nil {
			t.Errorf("it wrote in %s", place)
		}
	}
}

// A person may look at a task while one of its steps does: both see the same, and none fails.
func TestSnapshotsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "loose\n")
	const lookers = 6
	seen := make(chan Picture, lookers)
	errs := make(chan error, lookers)
	for range lookers {
		go func() {
			p, err := w.task.Snapshot(context.WithoutCancel(t.Context()))
			seen <- p
			errs <- err
		}()
	}
	trees := map[string]bool{}
	for range lookers {
		trees[(<-seen).Tree] = true
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if len(trees) != 1 {
		t.Errorf("they saw %d contents", len(trees))
	}
}

// A task that waited begins with the newest commit of its base, also after that was rewound; one that was begun does not move.
func TestPrepareRenews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.repo, "a.txt", "newer\n")
	w.git(w.repo, "commit", "--quiet", "--amend", "-a", "-m", "amended")
	w.must(w.task.Prepare(t.Context(), io.Discard))
	if got := w.git(w.task.Tree, "log", "--format=%s %D"); got != "amended HEAD -> "+w.task.Branch {
		t.Errorf("it is at %q", got)
	}
	w.put(w.repo, "a.txt", "newest\n")
	w.git(w.repo, "commit", "--quiet", "-a", "-m", "later")
	w.must(w.task.Prepare(t.Context(), io.Discard))
	if got := w.git(w.task.Tree, "log", "-1", "--format=%s"); got != "amended" {
		t.Errorf("it moved to %q", got)
	}
}

// With rebase the agent's commits land one by one, each with its author; if one does not apply, all of it is one commit.
func TestLandRebase(t *testing.T) {
	t.Parallel()
	w := newRepo(t)
	w.task = w.give("T1", "")
	w.task.How = Rebase
	w.put(w.task.Tree, "b.txt", "one\n")
	w.git(w.task.Tree, "add", "b.txt")
	w.git(w.task.Tree, "-c", "user.name=Coder", "commit", "--quiet", "-m", "first of the agent")
	w.put(w.task.Tree, "b.txt", "one\ntwo\n")
	w.git(w.task.Tree, "commit", "--quiet", "-a", "-m", "second of the agent")
	w.put(w.repo, "a.txt", "moved\n")
	w.git(w.repo, "commit", "--quiet", "-a", "-m", "meanwhile")
	done, err := w.land(&w.task)
	w.must(err)
	if got := w.git(w.repo, "log", "-3", "--format=%s", "main"); done.Joined ||
		got != "second of the agent\nfirst of the agent\nmeanwhile" {
		t.Errorf("%+v, %q", done, got)
	}
	if got := w.git(w.repo, "log", "-2", "--format=%an %(trailers:key=Task,valueonly)", "main"); got != "A Person T1\n\nCoder" ||
		w.onBase("b.txt") != "one\ntwo" {
		t.Errorf("authors and trailers: %q", got)
	}
	if again, err := lands(t.Context(), w.task, io.Discard); err != nil || again.Commit != done.Commit {
		t.Errorf("again: %+v, %v", again, err)
	}

	next := w.give("T2", "")
	next.How = Rebase
	w.put(next.Tree, "a.txt", "of the task\n")
	w.git(next.Tree, "commit", "--quiet", "-a", "-m", "it conflicts")
	w.put(w.repo, "a.txt", "of the person\n")
	w.git(w.repo, "commit", "--quiet", "-a", "-m", "later")
	w.must(next.Refresh(t.Context()))
	w.git(next.Tree, "fetch", "--quiet", "origin", "main")
	w.git(next.Tree, "merge", "--quiet", "-X", "ours", "-m", "merged", "FETCH_HEAD")
	done, err = w.land(&next)
	w.must(err)
	if !done.Joined || w.onBase("a.txt") != "of the task" || w.git(w.repo, "log", "-2", "--format=%s", "main") != "Do T2\nlater" {
		t.Errorf("%+v, %q", done, w.git(w.repo, "log", "-2", "--format=%s", "main"))
	}
	if _, err := os.Stat(filepath.Join(next.Run, "rebase")); err == nil {
		t.Error("the clone for the replay is left")
	}
}

// .worktreeinclude names untracked files by patterns; they are copied, and are never part of what lands.
func TestInclude(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.task.Include(t.Context()))
	if len(w.task.Copy) > 0 {
		t.Errorf("without the file: %q", w.task.Copy)
	}
	w.put(w.repo, ".worktreeinclude", "# local settings\n*.env\n!shared.env\ncache/\n.agents/\n")
	for _, name := range []string{
		"local.env", "shared.env", "sub/deep.env", "sub/plain", "cache/a", "cache/b/c", ".agents/x.env",
		"other",
	} {
		w.must(os.MkdirAll(filepath.Dir(filepath.Join(w.repo, name)), 0o755))
		w.put(w.repo, name, "secret\n")
	}
	w.must(w.task.Include(t.Context()))
	slices.Sort(w.task.Copy)
	if !slices.Equal(w.task.Copy, []string{"cache", "local.env", "sub/deep.env"}) {
		t.Errorf("it names %q", w.task.Copy)
	}
	w.must(w.task.Prepare(t.Context(), io.Discard))
	if _, err := os.Stat(filepath.Join(w.task.Tree, "cache", "b", "c")); err != nil {
		t.Error(err)
	}
	w.put(w.task.Tree, "local.env", "changed by the agent\n")
	p, err := w.task.Snapshot(t.Context())
	w.must(err)
	if p.Loose {
		t.Errorf("copied files are in the picture: %s", w.git(w.repo, "show", "--stat", p.Commit))
	}
	for i := range includeMax + 1 {
		w.put(w.repo, fmt.Sprintf("%d.env", i), "")
	}
	if err := w.task.Include(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1000 files and folders") {
		t.Errorf("too many: %v", err)
	}
}
