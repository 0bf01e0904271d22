package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReplacing knows the files that replace writes before it renames them, and no others.
func TestReplacing(t *testing.T) {
	dir := t.TempDir()
	seen := ""
	err := replace(filepath.Join(dir, "run-1.json"), nil, 0o600, func(f *os.File) error {
		seen = filepath.Base(f.Name())
		return fs.ErrInvalid
	})
	if target, is := Replacing(seen); err == nil || !is || target != "run-1.json" {
		t.Errorf("%s replaces %q: %v", seen, target, err)
	}
	for _, name := range []string{"", ".", "x-1", ".x", ".x-", ".x-1a", ".-1", "-1"} {
		if target, is := Replacing(name); is {
			t.Errorf("%q replaces %q", name, target)
		}
	}
}
