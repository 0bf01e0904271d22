package task

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// No program that the person's own settings name for git runs on what an agent has written, in any step until it lands. Each row has
// the command of plain git that runs it.
func TestPersonsPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys  [][2]string // settings; PROGRAM stands for what leaves the mark
		plain string      // in the person's repository
	}{
		"filter.clean":   {[][2]string{{"filter.x.clean", "PROGRAM"}}, "git add b.txt"},
		"filter.smudge":  {[][2]string{{"filter.x.smudge", "PROGRAM"}}, "rm a.txt && git checkout -- a.txt"},
		"filter.process": {[][2]string{{"filter.x.process", "PROGRAM"}}, "git add b.txt"},
		"core.fsmonitor": {[][2]string{{"core.fsmonitor", "PROGRAM"}}, "git status"},
		"hooks":          {[][2]string{{"core.hooksPath", "HOOKS"}}, "git commit --allow-empty -m x"},
		"diff.textconv":  {[][2]string{{"diff.x.textconv", "PROGRAM"}}, "git diff"},
		"diff.command":   {[][2]string{{"diff.x.command", "PROGRAM"}}, "git diff"},
		"diff.external":  {[][2]string{{"diff.external", "PROGRAM"}}, "git diff"},
		"merge.driver": {
			[][2]string{{"merge.x.driver", "PROGRAM; false"}, {"merge.default", "x"}},
			"git stash; git checkout -b one main; echo 1 > a.txt; git commit -am one; git checkout -b two main; echo 2 > a.txt; git commit -am two; git merge one",
		},
		"renormalize": {[][2]string{{"merge.renormalize", "true"}, {"filter.x.clean", "PROGRAM"}}, "git add b.txt"},
		"gpg.program": {[][2]string{{"gpg.program", "PROGRAM"}, {"log.showSignature", "true"}}, "git log --show-signature signed"},
		"trailer": {
			[][2]string{{"trailer.task.command", "PROGRAM"}, {"trailer.task.key", "Task"}},
			"echo x | git interpret-trailers --trailer task=x",
		},
		"credential": {[][2]string{{"credential.helper", "PROGRAM"}}, "echo url=https://example.invalid | git credential fill"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepo(t)
			w.put(w.repo, ".gitattributes", "* filter=x diff=x merge=x\n")
			w.put(w.repo, "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
			w.git(w.repo, "add", ".")
			w.git(w.repo, "commit", "--quiet", "-m", "attributes")
			mark, hooks := filepath.Join(t.TempDir(), "ran"), t.TempDir()
			program := filepath.Join(t.TempDir(), "program")
			w.put(filepath.Dir(program), "program", "#!/bin/sh\necho >> "+mark+"\n[ $# = 0 ] && cat\nexit 0\n")
			w.must(os.Chmod(program, 0o755))
			for _, hook := range []string{
				"post-checkout", "pre-commit", "reference-transaction", "post-index-change", "post-merge",
				"post-rewrite", "pre-rebase",
			} {
				w.must(os.Symlink(program, filepath.Join(hooks, hook)))
			}
			task := w.give("T1", "")
			task.How, task.Checks = Rebase, []string{"true"}
			w.git(w.repo, "checkout", "--quiet", "-b", "other") // the branch is in no checkout: that one is the person's own
			control := filepath.Join(t.TempDir(), "control")
			w.git(w.repo, "clone", "--quiet", w.repo, control)
			for _, kv := range c.keys {
				for _, repo := range []string{w.repo, control} {
					w.git(repo, "config", kv[0], strings.NewReplacer("PROGRAM", program, "HOOKS", hooks).Replace(kv[1]))
				}
			}
			for _, dir := range []string{task.Tree, control} {
				w.put(dir, "b.txt", "new\n")
				w.put(dir, "signed.txt", sign(w.git(dir, "cat-file", "commit", "HEAD")))
				w.git(dir, "config", "user.name", "x")
				w.git(dir, "config", "user.email", "x@example.org")
				w.git(dir, "update-ref", "refs/heads/signed", w.git(dir, "hash-object", "-t", "commit", "-w", "--no-filters", "signed.txt"))
				w.put(dir, "a.txt", "agent's\n2\n3\n4\n5\n6\n7\n8\n9\n")
			}
			w.git(control, "branch", "--force", "main", "HEAD")
			plain := exec.Command("sh", "-c", c.plain)
			plain.Dir = control
			plain.Env = append(os.Environ(), "GIT_EDITOR=true", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x",
				"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x")
			said, _ := plain.CombinedOutput()
			if _, err := os.Stat(mark); err != nil {
				t.Fatalf("plain git does not run it, so it proves nothing: %s", said)
			}
			w.git(task.Tree, "commit", "--quiet", "-am", "the agent's")
			w.put(task.Tree, "signed.txt", sign(w.git(task.Tree, "cat-file", "commit", "HEAD")))
			w.git(task.Tree, "update-ref", "HEAD", w.git(task.Tree, "hash-object", "-t", "commit", "-w", "--no-filters", "signed.txt"))
			person := filepath.Join(t.TempDir(), "person")
			w.git(w.repo, "clone", "--quiet", "--branch", "main", w.repo, person)
			w.put(person, "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nperson's\n")
			w.git(person, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "-am", "the person's")
			w.git(w.repo, "fetch", "--quiet", person, "main:main") // so that the checks run on merged files, and the commits are replayed
			_ = os.Remove(mark)
			unmarked := func(step string) {
				t.Helper()
				if _, err := os.Stat(mark); err == nil {
					t.Errorf("%s has run it", step)
					w.must(os.Remove(mark))
				}
			}
			w.untilItLands(task, unmarked)
		})
	}
}

// untilItLands does all steps of a task, and makes its folder again.
func (w *world) untilItLands(task Task, unmarked func(step string)) {
	t := w.T
	_, err := task.Snapshot(t.Context())
	w.must(err)
	unmarked("a snapshot")
	w.must(task.Check(t.Context(), &bytes.Buffer{}))
	unmarked("the checks")
	shown, err := task.Show(t.Context(), task.Run)
	w.must(err)
	unmarked("what is shown")
	_, err = HandOver(t.Context(), task)
	w.must(err)
	unmarked("the hand-over")
	r := Review{task}
	_, err = r.ListChanges(t.Context(), shown.From, shown.Commit)
	w.must(err)
	_, err = r.FileChanges(t.Context(), shown.From, shown.Commit, "a.txt")
	w.must(err)
	_, err = r.Commits(t.Context(), shown.From, shown.Commit)
	w.must(err)
	unmarked("the review")
	task.Asked = shown.Asked
	done, err := lands(t.Context(), task, &bytes.Buffer{})
	w.must(err)
	unmarked("landing")
	if got := w.git(w.repo, "show", done.Commit+":a.txt"); got != "agent's\n2\n3\n4\n5\n6\n7\n8\nperson's" {
		t.Errorf("landed: %q", got)
	}
	_, err = task.Remove(t.Context())
	w.must(err)
	_, err = task.Restore(t.Context(), 0)
	w.must(err)
	unmarked("making the folder again")
	if text, err := os.ReadFile(filepath.Join(task.Tree, "a.txt")); err != nil || !strings.HasPrefix(string(text), "agent's") {
		t.Errorf("the folder: %q, %v", text, err)
	}
}

// sign puts what looks like a signature into a commit.
func sign(commit string) string {
	return strings.Replace(commit+"\n", "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n", 1)
}
