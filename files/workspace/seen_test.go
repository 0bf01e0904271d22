package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Two browsers cannot undo each other, and a damaged file is no obstacle.
func TestSeen(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".fairlead"), 0o700); err != nil {
		t.Fatal(err)
	}
	early := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	late := early.Add(time.Hour)
	if seen, err := ReadSeen(dir); err != nil || !seen.IsZero() {
		t.Fatalf("%s, %v", seen, err)
	}
	for _, err := range []error{MarkSeen(dir, late), MarkSeen(dir, early)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen, err := ReadSeen(dir); err != nil || !seen.Equal(late) {
		t.Errorf("%s, %v", seen, err)
	}
	if err := os.WriteFile(seenPath(dir), []byte(`{"until":[`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MarkSeen(dir, early); err != nil {
		t.Error(err)
	}
	if seen, err := ReadSeen(dir); err != nil || !seen.Equal(early) {
		t.Errorf("after damage: %s, %v", seen, err)
	}
	if err := os.Remove(seenPath(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", seenPath(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSeen(dir); err == nil {
		t.Error("a link was followed")
	}
}

func FuzzSeen(f *testing.F) {
	f.Add([]byte(`{"until":"2026-11-25T08:00:00Z"}`))
	f.Add([]byte(`{"until":7}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if os.Mkdir(filepath.Join(dir, ".fairlead"), 0o700) != nil || os.WriteFile(seenPath(dir), text, 0o600) != nil {
			t.Fatal("the test cannot write")
		}
		if _, err := ReadSeen(dir); err != nil {
			t.Error(err)
		}
	})
}
