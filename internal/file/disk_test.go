package file

import (
	"os"
	"path/filepath"
	"testing"
)

// A file with two names counts once, and a folder that does not exist takes nothing.
func TestDiskUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	size, err := DiskUse(t.Context(), dir)
	if err != nil || size < 100_000 {
		t.Errorf("%d bytes, %v", size, err)
	}
	if err := os.Link(filepath.Join(dir, "x"), filepath.Join(dir, "y")); err != nil {
		t.Fatal(err)
	}
	if again, err := DiskUse(t.Context(), dir); err != nil || again != size {
		t.Errorf("a second name of a file makes %d of %d bytes, %v", again, size, err)
	}
	if none, err := DiskUse(t.Context(), filepath.Join(dir, "none")); err != nil || none != 0 {
		t.Errorf("%d bytes, %v", none, err)
	}
}
