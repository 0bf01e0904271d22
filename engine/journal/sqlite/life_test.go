package sqlite

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// A journal that was moved is whole at its new place, with its archive, and nothing is left at the old one. What is removed is gone.
func TestMoveAndRemove(t *testing.T) {
	path := written(t, 2000)
	compacted(t, path, Compacting{Before: later})
	want, err := all(t.Context(), path, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "other.db")
	if moved, err := Move(path, to); !moved || err != nil {
		t.Fatal(moved, err)
	}
	got, err := all(t.Context(), to, journal.Query{})
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%d changes, want %d (%v)", len(got), len(want), err)
	}
	if moved, err := Move(path, to+"2"); moved || err != nil {
		t.Errorf("there was nothing to move: %v %v", moved, err)
	}
	if err := Remove(to); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{filepath.Dir(path), filepath.Dir(to)} {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%v is left (%v)", left, err)
		}
	}
}
