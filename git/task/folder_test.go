package task

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Setup runs once for a folder, and again when its commands or a lock file change. The checks have a folder of their own.
func TestSetupIsCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Setup = []string{"echo ran >> ignored"}
	w.task.Checks = []string{"true"}
	runs := func(dir string) int {
		text, err := os.ReadFile(filepath.Join(dir, "ignored"))
		w.must(err)
		return strings.Count(string(text), "ran")
	}
	var out bytes.Buffer
	w.must(w.task.Prepare(t.Context(), &out))
	w.must(w.task.Prepare(t.Context(), &out))
	w.put(w.task.Tree, "a.txt", "changed\n")
	w.must(w.task.Check(t.Context(), &out))
	w.must(w.task.Check(t.Context(), &out))
	if n, m := runs(w.task.Tree), runs(w.task.checksDir()); n != 1 || m != 1 {
		t.Errorf("setup ran %d times, for checks %d times: %s", n, m, &out)
	}
	w.put(w.task.Tree, "web/package-lock.json", "{}\n")
	w.must(w.task.Check(t.Context(), &out))
	w.must(w.task.Check(t.Context(), &out))
	if n := runs(w.task.checksDir()); n != 2 {
		t.Errorf("setup ran %d times after a lock file was added: %s", n, &out)
	}
	w.task.Setup = append(w.task.Setup, "false")
	var failed *CheckFailed
	if err := w.task.Check(t.Context(), &out); !errors.As(err, &failed) || err.Error() != "setup `false`: exit status 1" {
		t.Errorf("%v", err)
	}
	if err := w.task.Prepare(t.Context(), &out); err == nil || runs(w.task.Tree) != 2 {
		t.Errorf("a setup that failed counts as done: %v, ran %d times", err, runs(w.task.Tree))
	}
}

// The checks run on exactly what is shown, in a checkout that no agent writes: what the agent or an earlier check has left beside the
// commit's files is not there, what setup has made and the files of copy are, and git answers for the commit.
func TestChecksHaveTheirOwnCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.repo, ".env", "ONE\n")
	w.task.Copy, w.task.Setup = []string{".env"}, []string{"mkdir made && echo setup > made/all"}
	w.task.Checks = []string{
		"test ! -e ignored && test ! -e left && touch ignored left && rm b.txt && echo evil > .git/config",
		"test $(cat made/all) = setup && touch made/more",
		"test $(cat .env) = $(cat want)",
	}
	w.put(w.task.Tree, "ignored", "by the agent\n") // .gitignore names it
	w.put(w.task.Tree, "b.txt", "by the agent, not committed\n")
	var out bytes.Buffer
	for _, env := range []string{"ONE\n", "TWO\n"} {
		w.put(w.repo, ".env", env)
		w.put(w.task.Tree, "want", env)
		if err := w.task.Check(t.Context(), &out); err != nil {
			t.Fatalf("%s: %v\n%s", env, err, &out)
		}
	}
	w.task.Checks = []string{"test \"$(git status --porcelain)\" = '?? made/' && git show HEAD:b.txt && test $(git rev-parse HEAD~1) = $(git rev-parse origin/main)"}
	if err := w.task.Check(t.Context(), &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	w.must(os.WriteFile(w.task.checksIndex(), []byte("nonsense"), 0o600)) // of a git that was killed
	w.task.Checks = []string{"test -e b.txt && test ! -e left && test -e made/all"}
	if err := w.task.Check(t.Context(), &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if _, err := w.task.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(w.task.Tree), ".*checks*"))
	if err != nil || len(left) > 0 {
		t.Errorf("of the checkout for checks there is left: %q, %v", left, err)
	}
}

// What passed under other commands has not passed: a landing checks it again.
func TestPassedUnderTheCommandsInForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "new\n")
	w.task.Checks = []string{"true"}
	w.must(w.task.Check(t.Context(), &bytes.Buffer{}))
	w.ask(&w.task)
	w.task.Checks = []string{"false"}
	if _, err := lands(t.Context(), w.task, &bytes.Buffer{}); !errors.As(err, new(*CheckFailed)) {
		t.Errorf("it landed under checks that it has not passed: %v", err)
	}
}

// If a task changes files that decide what runs, the checks run again with the base's version of them, which decides. What passes with
// its own alone is for a person, who is told.
func TestTheBasesFilesJudge(t *testing.T) {
	t.Parallel()
	const good, bad = "good\n", "bad\n"
	for name, tt := range map[string]struct {
		judge, file string // of the task
		fails       bool
		told        string
	}{
		"its own judge lets it pass":  {"true\n", bad, false, "passed with the task's own files that decide what runs only; with those of main they FAILED: `sh build.sh`"},
		"its own judge fails it":      {"false\n", good, false, "FAILED with the task's own files that decide what runs (`sh build.sh`), and passed with those of main"},
		"both let it pass":            {"true\n", good, false, "passed with the files of main that decide what runs, too"},
		"both fail it":                {"false\n", bad, true, ""},
		"the judge is as on the base": {"grep -q good b.txt\n", good, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepo(t)
			w.put(w.repo, "build.sh", "grep -q good b.txt\n")
			w.git(w.repo, "add", ".")
			w.git(w.repo, "commit", "--quiet", "-m", "a judge")
			w.task = w.give("T1", "")
			w.put(w.task.Tree, "build.sh", tt.judge)
			w.put(w.task.Tree, "b.txt", tt.file)
			w.put(w.task.Tree, "lib/Makefile", "new\n") // the base has none
			w.task.Checks = []string{"sh build.sh"}
			var out bytes.Buffer
			err := w.task.Check(t.Context(), &out)
			if tt.fails != errors.As(err, new(*CheckFailed)) || !tt.fails && err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if tt.fails || tt.told == "" {
				return
			}
			shown, err := w.task.Show(t.Context(), t.TempDir())
			if err != nil || len(shown.Told) != 1 || shown.Told[0] != "the checks "+tt.told {
				t.Errorf("%v, %q, want %q", err, shown.Told, tt.told)
			}
		})
	}
}

// A setup that fails with the task's own files, or with the base's, is a result like that of a check: the person is told.
func TestTheBasesFilesJudgeSetup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ base, task, told string }{
		"its own fails":    {"true\n", "false\n", "FAILED with the task's own files that decide what runs (`sh build.sh`)"},
		"the base's fails": {"false\n", "true\n", "with those of main they FAILED: `sh build.sh`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepo(t)
			w.put(w.repo, "build.sh", tt.base)
			w.put(w.repo, "go.sum", "one\n")
			w.git(w.repo, "add", ".")
			w.git(w.repo, "commit", "--quiet", "-m", "a setup")
			w.task = w.give("T1", "")
			w.task.Governing = []string{"go.sum"} // the base's lock file comes with it, so setup runs again
			w.put(w.task.Tree, "build.sh", tt.task)
			w.put(w.task.Tree, "go.sum", "two\n")
			w.task.Setup, w.task.Checks = []string{"sh build.sh"}, []string{"true"}
			var out bytes.Buffer
			if err := w.task.Check(t.Context(), &out); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			shown, err := w.task.Show(t.Context(), t.TempDir())
			if err != nil || len(shown.Told) != 1 || !strings.Contains(shown.Told[0], tt.told) {
				t.Errorf("%v, %q, want %q", err, shown.Told, tt.told)
			}
		})
	}
}

// With checks_in: task the checks run where the agent works, and the review says so.
func TestChecksInTheTasksFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.ChecksIn, w.task.Checks = ChecksInTask, []string{"test -e ignored"}
	w.put(w.task.Tree, "ignored", "by the agent\n")
	w.must(w.task.Check(t.Context(), &bytes.Buffer{}))
	shown, err := w.task.Show(t.Context(), t.TempDir())
	if err != nil || len(shown.Told) != 2 || !strings.Contains(shown.Told[1], "where its agent works") {
		t.Errorf("%v, %q", err, shown.Told)
	}
}

// The review names tests that are changed or deleted, and no new ones.
func TestTestsAreTold(t *testing.T) {
	t.Parallel()
	w := newRepo(t)
	for _, name := range []string{"a_test.go", "web/b.spec.ts", "tests/data/c.txt", "contest.txt"} {
		w.put(w.repo, name, "one\n")
	}
	w.git(w.repo, "add", ".")
	w.git(w.repo, "commit", "--quiet", "-m", "tests")
	w.task = w.give("T1", "")
	w.put(w.task.Tree, "a_test.go", "two\n")
	w.put(w.task.Tree, "contest.txt", "two\n")
	w.put(w.task.Tree, "new_test.go", "new\n")
	w.must(os.Remove(filepath.Join(w.task.Tree, "web/b.spec.ts")))
	w.must(os.Remove(filepath.Join(w.task.Tree, "tests/data/c.txt")))
	shown, err := w.task.Show(t.Context(), t.TempDir())
	want := []string{"it deletes tests: tests/data/c.txt, web/b.spec.ts", "it changes tests: a_test.go"}
	if err != nil || !slices.Equal(shown.Told, want) {
		t.Errorf("%v, %q, want %q", err, shown.Told, want)
	}
}

// A command that hangs is ended with all its processes, and the message names it.
func TestCommandTimesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Timeout = 300 * time.Millisecond
	w.task.Setup = []string{"sleep 600 & sleep 600; true"}
	var out bytes.Buffer
	err := w.task.Prepare(t.Context(), &out) // it waits for the end of both, which hold its output
	if err == nil ||
		!strings.Contains(err.Error(), "setup `sleep 600 & sleep 600; true`: it ran longer than 300ms, the limit (tasks.timeout") {
		t.Errorf("%v", err)
	}
}

// Each content of the folder is kept under a number, up to a limit; the folder comes back from each.
func TestRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.task.Restore(t.Context(), 0); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), "is there") {
		t.Fatalf("over a folder: %v", err)
	}
	w.put(w.task.Tree, "b.txt", "committed\n")
	w.git(w.task.Tree, "add", "b.txt")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
	head := w.git(w.task.Tree, "rev-parse", "HEAD")
	w.put(w.task.Tree, "c.txt", "loose\n")
	w.must(os.Remove(filepath.Join(w.task.Tree, "a.txt")))
	loose, err := w.task.Snapshot(t.Context())
	w.must(err)
	if again, err := w.task.Snapshot(t.Context()); err != nil || again != loose {
		t.Errorf("nothing has changed: %+v, then %+v, %v", loose, again, err)
	}
	w.put(w.task.Tree, "c.txt", "newer\n")
	_, err = w.task.Snapshot(t.Context())
	w.must(err)
	all, err := w.task.Snapshots(t.Context())
	w.must(err)
	if len(all) != 3 || all[1].Commit != loose.Commit || all[1].N != 2 {
		t.Fatalf("%+v", all)
	}
	w.must(os.RemoveAll(w.task.Tree))
	if _, err := w.task.Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "`fairlead task restore T1` makes it again") {
		t.Errorf("the folder is gone: %v", err)
	}
	for _, c := range []struct {
		at   int
		want string
	}{{0, "newer\n"}, {2, "loose\n"}} {
		w.must(os.RemoveAll(w.task.Tree))
		w.must(os.Mkdir(w.task.Tree, 0o755))
		if _, err := w.task.Restore(t.Context(), c.at); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(w.task.Tree, "c.txt"))
		w.must(err)
		if string(got) != c.want || w.git(w.task.Tree, "rev-parse", "HEAD") != head ||
			w.git(w.task.Tree, "symbolic-ref", "--short", "HEAD") != w.task.Branch {
			t.Errorf("%d: %q on %s", c.at, got, w.git(w.task.Tree, "log", "--oneline"))
		}
		if got := w.git(w.task.Tree, "status", "--porcelain"); got != "D a.txt\n?? c.txt" {
			t.Errorf("%d: %q", c.at, got)
		}
	}
	w.put(w.task.Tree, ".git/HEAD", "nonsense\n")
	if _, err := w.task.Restore(t.Context(), 0); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), "could not be kept") {
		t.Errorf("over a folder that cannot be kept: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.task.Tree, "c.txt")); err != nil {
		t.Error(err)
	}
	w.must(os.RemoveAll(w.task.Tree))
	if _, err := w.task.Restore(t.Context(), 77); !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), "no snapshot 77") {
		t.Errorf("%v", err)
	}
}

// At the limit the oldest snapshot is forgotten.
func TestSnapshotsMax(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.task.Snapshot(t.Context())
	w.must(err)
	var refs strings.Builder
	for n := 1; n <= snapshotsMax; n++ {
		fmt.Fprintf(&refs, "update %s.%d %s\n", w.task.Ref(), n, first.Commit)
	}
	_, err = w.task.own().Run(t.Context(), time.Minute, nil, writes(refs.String()), "update-ref", "--stdin")
	w.must(err)
	w.put(w.task.Tree, "b.txt", "b\n")
	_, err = w.task.Snapshot(t.Context())
	w.must(err)
	all, err := w.task.Snapshots(t.Context())
	w.must(err)
	if len(all) != snapshotsMax || all[0].N != 2 || all[snapshotsMax-1].N != snapshotsMax+1 {
		t.Errorf("%d snapshots, %d to %d", len(all), all[0].N, all[len(all)-1].N)
	}
}

// What copy lists is in no commit, snapshot or difference: neither a file nor a folder, also after the agent has
// changed them.
func TestCopiesStayOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.repo, ".env", "SECRET=1\n")
	w.put(w.repo, "conf/local/key", "SECRET=2\n")
	w.task.Copy = []string{".env", "conf/local"}
	w.must(os.RemoveAll(w.task.Tree))
	w.must(w.task.Make(t.Context()))
	w.must(w.task.Prepare(t.Context(), &bytes.Buffer{}))
	w.put(w.task.Tree, ".env", "SECRET=changed\n")
	w.put(w.task.Tree, "conf/local/key", "SECRET=changed\n")
	w.put(w.task.Tree, "conf/local/more", "SECRET=more\n")
	w.put(w.task.Tree, "by the agent", "b\n")
	w.git(w.task.Tree, "add", "--all")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
	w.put(w.task.Tree, "conf/own", "mine\n")
	p, err := w.task.Snapshot(t.Context())
	w.must(err)
	if got := strings.Split(w.git(w.repo, "ls-tree", "-r", "--name-only", p.Commit), "\n"); !slices.Equal(got,
		[]string{".gitignore", "a.txt", "by the agent", "conf/own"}) {
		t.Errorf("the snapshot has %q", got)
	}
	s, err := w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	if text, err := os.ReadFile(s.Diff); err != nil || strings.Contains(string(text), "SECRET") {
		t.Errorf("the difference: %s, %v", text, err)
	}
	if text := w.git(w.repo, "diff", "main", w.task.Ref()); strings.Contains(text, "SECRET") {
		t.Errorf("the kept content: %s", text)
	}
	w.task.Asked = s.Asked
	_, err = lands(t.Context(), w.task, &bytes.Buffer{})
	w.must(err)
	if got := w.git(w.repo, "show", "--name-only", "--format=", "main"); got != "by the agent\nconf/own" {
		t.Errorf("it landed %q", got)
	}
}

// The folder of a task that has landed is removed, unless something was changed after it was shown.
func TestRemoveLanded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "b\n")
	_, err := w.land(&w.task)
	w.must(err)
	w.put(w.task.Tree, "c.txt", "later\n")
	if stays, err := w.task.RemoveLanded(t.Context()); err != nil || !stays {
		t.Errorf("%v, %v", stays, err)
	}
	w.must(os.Remove(filepath.Join(w.task.Tree, "c.txt")))
	if stays, err := w.task.RemoveLanded(t.Context()); err != nil || stays {
		t.Errorf("%v, %v", stays, err)
	}
	if _, err := os.Stat(w.task.Tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there still: %v", err)
	}
}

// A task may land a link in place of a folder of Copy. Neither copying nor removing follows it out of the task's folder.
func TestCopyFollowsNoLinkOut(t *testing.T) {
	t.Parallel()
	w := newRepo(t)
	outside := filepath.Join(filepath.Dir(w.repo), "outside")
	for _, dir := range []string{outside, filepath.Join(w.repo, "conf")} {
		w.must(os.MkdirAll(dir, 0o755))
	}
	w.put(outside, "local", "a person's\n")
	w.put(filepath.Join(w.repo, "conf"), "local", "secret\n")
	w.put(filepath.Join(w.repo, ".git", "info"), "exclude", "conf\n")
	land := func(id, link string) (Task, error) {
		next := w.give(id, "")
		next.Copy, next.Checks = []string{"conf/local"}, []string{"true"}
		if link != "" {
			w.must(os.Symlink(link, filepath.Join(next.Tree, "conf")))
			w.git(next.Tree, "add", "--force", "conf")
		}
		w.put(next.Tree, "b.txt", id)
		w.git(next.Tree, "add", "b.txt")
		w.git(next.Tree, "commit", "--quiet", "-m", id)
		w.put(w.repo, "a.txt", "moved by "+id+"\n")
		w.git(w.repo, "commit", "--quiet", "-a", "-m", "the branch moves") // so the checks run on merged files
		_, err := w.land(&next)
		return next, err
	}
	for i, id := range []string{"T1", "T2"} { // the second one finds the folder of the first
		_, err := land(id, []string{outside, ""}[i])
		if text, fault := os.ReadFile(filepath.Join(outside, "local")); fault != nil || string(text) != "a person's\n" {
			t.Fatalf("%s changed a file outside: %q, %v (%v)", id, text, fault, err)
		}
		if i == 0 && (err == nil || !strings.Contains(err.Error(), "conf/local")) {
			t.Errorf("%s: %v", id, err)
		}
	}
	w.must(os.Remove(filepath.Join(outside, "local")))
	if _, err := land("T3", outside); err == nil {
		t.Error("it landed")
	}
	if _, err := os.Lstat(filepath.Join(outside, "local")); err == nil {
		t.Error("a file was copied out")
	}
}

// TestLoadElsewhere loads a task that began on another machine, where the repository is in another folder.
func TestLoadElsewhere(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct{ prefix, folder, repo string }{
		{"", "web/.agents/runs/T1", dir + "/web"},
		{"sub", "web/sub/.agents/runs/T1", dir + "/web"},
		{"", "web/.agents/archive/runs/T1", "/a/web"},
		{"other", "web/.agents/runs/T1", "/a/web"},
	} {
		folder := filepath.Join(dir, at.folder)
		workspace := filepath.Join("/a/web", at.prefix)
		was := Task{
			ID: "T1", Base: "main", Repo: "/a/web", Git: "/a/web/.git", Prefix: at.prefix, Run: workspace + "/.agents/runs/T1",
			Tree: workspace + "/.agents/worktrees/T1",
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := file.StoreJSON(filepath.Join(folder, FileName), was); err != nil {
			t.Fatal(err)
		}
		now := filepath.Join(at.repo, at.prefix)
		if got, err := Load(filepath.Join(folder, FileName)); err != nil || got.Repo != at.repo || got.Git != at.repo+"/.git" ||
			got.Run != now+"/.agents/runs/T1" || got.Tree != now+"/.agents/worktrees/T1" {
			t.Errorf("in %s: %+v, %v", at.folder, got, err)
		}
	}
}

// What another machine has shown lands here, if the folder is the same. The ref here is missing, or of an earlier round.
func TestLandsWhatAnotherMachineHasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	show := func(text string) {
		w.put(w.task.Tree, "b.txt", text)
		w.ask(&w.task)
	}
	show("first\n")
	first := w.git(w.repo, "rev-parse", w.task.shownRef())
	show("second\n")
	w.task.Asked.Commit = strings.Repeat("5", len(first)) // of the other repository
	w.git(w.repo, "update-ref", "-d", w.task.shownRef())
	w.put(w.task.Tree, "b.txt", "not shown\n")
	if _, err := lands(t.Context(), w.task, &bytes.Buffer{}); !errors.As(err, new(*Again)) {
		t.Errorf("other files: %v", err)
	}
	w.put(w.task.Tree, "b.txt", "second\n")
	w.git(w.repo, "update-ref", w.task.shownRef(), first)
	_, err := lands(t.Context(), w.task, &bytes.Buffer{})
	w.must(err)
	if got := w.onBase("b.txt"); got != "second" {
		t.Errorf("%q has landed", got)
	}
}
