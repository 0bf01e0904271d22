package template

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCopy(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(from, "sub", "empty"), 0o755),
		os.WriteFile(filepath.Join(from, "sub", "config"), []byte("url = "+from+"/repo\n"), 0o600),
		os.WriteFile(filepath.Join(from, "run"), []byte("#!/bin/sh\n"), 0o755),
		os.Symlink(filepath.Join(from, "run"), filepath.Join(from, "link")),
	); err != nil {
		t.Fatal(err)
	}
	tree := Of(t, from)
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	tree.To(t, to)
	if text, err := os.ReadFile(filepath.Join(to, "sub", "config")); err != nil || string(text) != "url = "+to+"/repo\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	for path, mode := range map[string]os.FileMode{"sub/config": 0o600, "run": 0o755, "link": 0o755, "sub/empty": os.ModeDir | 0o755} {
		if info, err := os.Stat(filepath.Join(to, path)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if at := tree.Path(to, filepath.Join(from, "run")); at != filepath.Join(to, "run") {
		t.Errorf("it is at %s", at)
	}
}
