package task

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Conflicts of a merge of the agent's own are no result, in the index or committed with their lines. A text about conflicts is one, and
// so is a file that had such lines before; the review says so.
func TestConflictsAreNoResult(t *testing.T) {
	t.Parallel()
	const example = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main\n"
	merge := func(w *world) {
		for _, args := range [][]string{
			{"checkout", "--quiet", "-b", "x"}, {"commit", "--quiet", "-am", "x"}, {"checkout", "--quiet", "-"}, {"checkout", "--quiet", "-b", "y", "HEAD~1"},
		} {
			if args[0] == "commit" {
				w.put(w.task.Tree, "a.txt", "one\nx\nthree\n")
			}
			w.git(w.task.Tree, args...)
		}
		w.put(w.task.Tree, "a.txt", "one\ny\nthree\n")
		w.git(w.task.Tree, "commit", "--quiet", "-am", "y")
		_, _ = (&play{T: w.T}).try(w.task.Tree, "merge", "x")
		if !strings.Contains(w.read("a.txt"), ">>>>>>> x\n") {
			w.Fatalf("there is no conflict: %q", w.read("a.txt"))
		}
	}
	for name, c := range map[string]struct {
		do   func(w *world)
		back bool
		said bool // the review says it
	}{
		"not finished": {merge, true, false},
		"committed": {func(w *world) {
			merge(w)
			w.git(w.task.Tree, "commit", "--quiet", "-am", "merged")
		}, true, true},
		"picked, and committed": {func(w *world) {
			merge(w)
			w.git(w.task.Tree, "reset", "--quiet", "--hard")
			_, _ = (&play{T: w.T}).try(w.task.Tree, "cherry-pick", "x")
			w.git(w.task.Tree, "commit", "--quiet", "-am", "picked")
		}, true, true},
		"resolved": {func(w *world) {
			merge(w)
			w.put(w.task.Tree, "a.txt", "one\nx and y\nthree\n")
			w.git(w.task.Tree, "commit", "--quiet", "-am", "merged")
		}, false, false},
		"a text about git": {func(w *world) { w.put(w.task.Tree, "doc.md", "# Conflicts\n"+example) }, false, true},
		"an old text":      {func(w *world) { w.put(w.task.Tree, "old.md", "# More\n"+example+example) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "marks", func(w *world) {
				firstCommit(w)
				w.put(w.repo, "old.md", example)
				w.git(w.repo, "add", "old.md")
				w.git(w.repo, "commit", "--quiet", "-m", "old")
				w.task = w.give("T1", "")
			})
			c.do(w)
			err := w.task.Check(t.Context(), os.Stderr)
			if errors.As(err, new(*CheckFailed)) != c.back || !c.back && err != nil || c.back && !strings.Contains(err.Error(), "a.txt") {
				t.Errorf("checked: %v", err)
			}
			s, err := w.task.Show(t.Context(), w.task.Run)
			if said := strings.Contains(strings.Join(s.Stat, "\n"), "look like conflict markers"); said != c.said {
				t.Errorf("shown: %q, %v", s.Stat, err)
			}
		})
	}
}
