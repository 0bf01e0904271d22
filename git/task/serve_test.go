package task

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// A clone whose alternate is another repository of the person's does not give its objects. The same commit in the clone is taken.
func TestClonesAlternate(t *testing.T) {
	t.Parallel()
	if can := sandbox.Abilities(); can.By == sandbox.ByNothing {
		t.Skip(can.Why)
	}
	for name, secret := range map[string]bool{"another repository": true, "the clone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.task.Tree
			if secret {
				at = filepath.Join(filepath.Dir(w.repo), "secret")
				w.git(filepath.Dir(w.repo), "clone", "--quiet", w.repo, at)
				w.git(at, "config", "user.name", "x")
				w.git(at, "config", "user.email", "x@example.org")
			}
			w.put(at, "secret.txt", "secret\n")
			w.git(at, "add", ".")
			w.git(at, "commit", "--quiet", "-m", "secret")
			commit := w.git(at, "rev-parse", "HEAD")
			alternates := filepath.Join(w.task.Tree, ".git", "objects", "info", "alternates")
			if secret {
				text, err := os.ReadFile(alternates)
				w.must(err)
				w.must(os.WriteFile(alternates, []byte(string(text)+filepath.Join(at, ".git", "objects")+"\n"), 0o644))
				w.git(w.task.Tree, "update-ref", "HEAD", commit)
			}
			_, err := w.task.Snapshot(t.Context())
			_, has := (&play{T: t}).try(w.repo, "cat-file", "-e", commit)
			if (err == nil) == secret || (has == nil) == secret {
				t.Errorf("%v; the person's repository has it: %v", err, has == nil)
			}
		})
	}
}
