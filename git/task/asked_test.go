package task

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// save commits a file of the person.
func (w *world) save(name string) {
	w.Helper()
	w.put(w.repo, name, "x\n")
	w.git(w.repo, "add", name)
	w.git(w.repo, "commit", "--quiet", "-m", name)
}

// What lands is what was shown, on the newest commit of the base. If the base has lost a commit that the task was shown on,
// that commit would come back with it, so the person is asked again; after that it lands. With new commits on the base it
// lands at once (SPEC, corrections of 2026-11-28, "landing").
func TestLandsOnABaseThatHasChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person func(w *world)
		again  bool
	}{
		"forward": {func(w *world) { w.save("other.txt") }, false},
		"reset, and another commit": {func(w *world) {
			w.git(w.repo, "reset", "--quiet", "--hard", "HEAD~1")
			w.save("other.txt")
		}, true},
		"reset": {func(w *world) { w.git(w.repo, "reset", "--quiet", "--hard", "HEAD~1") }, true},
		"amended": {func(w *world) {
			w.git(w.repo, "rm", "--quiet", "secret.txt")
			w.put(w.repo, "other.txt", "x\n")
			w.git(w.repo, "add", "other.txt")
			w.git(w.repo, "commit", "--quiet", "--amend", "-m", "without the secret")
		}, true},
		"reverted": {func(w *world) { w.git(w.repo, "revert", "--no-edit", "HEAD") }, false},
		"another history": {func(w *world) {
			w.git(w.repo, "checkout", "--quiet", "--orphan", "new")
			w.git(w.repo, "commit", "--quiet", "-m", "squashed")
			w.git(w.repo, "branch", "--quiet", "-M", "new", "main")
		}, true},
	} {
		for _, how := range []string{Squash, Rebase, Merge} {
			if how != Squash && !testsize.CI() { // .ci/run long has them
				continue
			}
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := copyOf(t, "asked", func(w *world) {
					firstCommit(w)
					w.save("secret.txt")
					w.task = w.give("T1", "")
					w.put(w.task.Tree, "n.txt", "n\n")
					w.git(w.task.Tree, "add", "n.txt")
					w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's")
					w.ask(&w.task)
				})
				task := w.task
				task.How = how
				w.git(w.repo, "update-ref", "refs/heads/before", "main")
				c.person(w)
				tip := w.git(w.repo, "rev-parse", "main")
				files := strings.Split(w.git(w.repo, "ls-tree", "-r", "--name-only", "main"), "\n")
				_, err := lands(t.Context(), task, &bytes.Buffer{})
				var again *Again
				if errors.As(err, &again) != c.again || !c.again && err != nil {
					t.Fatalf("%v", err)
				}
				if c.again {
					if got := w.git(w.repo, "rev-parse", "main"); got != tip ||
						!strings.Contains(again.Why, "branch main no longer has commit") {
						t.Errorf("main is at %s: %v", got, again)
					}
					s, err := task.Show(t.Context(), task.Run) // what would come back is shown, and lands if the person wants it
					if err != nil && strings.Contains(err.Error(), "have no commit in common") {
						return // there is nothing to compare with
					}
					w.must(err)
					back := w.git(w.repo, "ls-tree", "--name-only", "main", "secret.txt") == ""
					if said := strings.Contains(strings.Join(s.Stat, "\n"), "secret.txt"); said != back {
						t.Errorf("secret.txt comes back: %v; shown: %q", back, s.Stat)
					}
					task.Asked = s.Asked
					_, err = lands(t.Context(), task, &bytes.Buffer{})
					w.must(err)
					if got := w.git(w.repo, "diff", "--name-only", tip, "main"); strings.Contains(got, "secret") != back {
						t.Errorf("it brought %q", got)
					}
					return
				}
				if got := w.git(w.repo, "diff", "--name-status", tip, "main"); got != "A\tn.txt" {
					t.Errorf("with %q on the base it brought %q", files, got)
				}
				if got := w.git(w.repo, "log", "--format=%s", tip+"..main"); strings.Contains(got, "secret") {
					t.Errorf("the history has %q", got)
				}
			})
		}
	}
}

// Nothing but the tree of the question lands: not what files and refs of the task say, which any program can change.
func TestLandsTheTreeOfTheQuestion(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]func(w *world, task *Task, evil string){
		"refs": func(w *world, task *Task, evil string) {
			for _, ref := range []string{task.Ref(), task.Ref() + ".1", task.shownRef(), task.shownRef() + ".1"} {
				w.git(w.repo, "update-ref", ref, evil)
			}
		},
		"a replacement of the commit": func(w *world, task *Task, evil string) { w.git(w.repo, "replace", task.Asked.Commit, evil) },
		"a replacement of the tree": func(w *world, task *Task, evil string) {
			w.git(w.repo, "replace", task.Asked.Tree, evil+"^{tree}")
		},
		"the folder": func(w *world, task *Task, _ string) { w.put(task.Tree, "EVIL.txt", "x\n") },
		"files of the run": func(w *world, task *Task, evil string) {
			w.put(task.Run, "shown", w.git(w.repo, "rev-parse", evil+"^{tree}"))
			w.put(task.Run, "landing", task.Asked.Commit+" "+evil+" "+w.git(w.repo, "rev-parse", "main")+"\n")
		},
		"the note that it has landed": func(w *world, task *Task, _ string) {
			tip := w.git(w.repo, "rev-parse", "main")
			w.put(task.Run, "landing", task.Asked.Commit+" "+tip+" "+tip+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(w.task.Tree, "b.txt", "shown\n")
			w.ask(&w.task)
			w.put(w.task.Tree, "EVIL.txt", "x\n")
			p, err := w.task.Snapshot(t.Context())
			w.must(err)
			w.must(os.Remove(filepath.Join(w.task.Tree, "EVIL.txt")))
			tamper(w, &w.task, p.Commit)
			done, err := lands(t.Context(), w.task, &bytes.Buffer{})
			w.must(err)
			w.git(w.repo, "config", "core.useReplaceRefs", "false")
			if got := w.git(w.repo, "rev-parse", "main^{tree}"); got != w.task.Asked.Tree ||
				done.Commit != w.git(w.repo, "rev-parse", "main") {
				t.Errorf("tree %s landed, not %s", got, w.task.Asked.Tree)
			}
		})
	}
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "shown\n")
	w.ask(&w.task)
	shown := w.task.Asked
	w.put(w.task.Tree, "c.txt", "not shown\n")
	other, err := w.task.Show(t.Context(), w.task.Run)
	w.must(err)
	w.task.Asked.Commit = other.Commit // a report that names another commit than its tree's
	if _, err := lands(t.Context(), w.task, &bytes.Buffer{}); !errors.As(err, new(*Again)) {
		t.Errorf("a commit with another tree: %v", err)
	}
	for _, text := range []string{
		"", "a b c", shown.Tree + " " + shown.Commit, shown.String() + " " + shown.Tree,
		"--output=x " + shown.Commit + " " + shown.From,
	} {
		if got := ParseAsked(text); got != (Asked{}) {
			t.Errorf("%q is %+v", text, got)
		}
	}
	if got := ParseAsked(shown.String()); got != shown {
		t.Errorf("%+v, want %+v", got, shown)
	}
}
