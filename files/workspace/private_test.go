package workspace

import (
	"os"
	"slices"
	"testing"
)

// What an agent opened to other users is private again, and no link is followed.
func TestKeepPrivate(t *testing.T) {
	t.Parallel()
	w, err := OpenWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if open := w.KeepPrivate(); len(open) > 0 {
		t.Errorf("a new folder is open: %v", open)
	}
	elsewhere := t.TempDir() + "/theirs"
	for path, mode := range map[string]os.FileMode{w.Path("token"): 0o644, elsewhere: 0o644} {
		if err := os.WriteFile(path, []byte("secret\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(w.Path(), 0o755); err != nil { //nolint:gosec // what is repaired
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, w.Path("journal.db")); err != nil {
		t.Fatal(err)
	}
	if open := w.KeepPrivate(); !slices.Equal(open, []string{w.Path(), w.Path("token")}) {
		t.Errorf("it made private: %v", open)
	}
	for path, want := range map[string]os.FileMode{w.Path(): 0o700, w.Path("token"): 0o600, elsewhere: 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}
