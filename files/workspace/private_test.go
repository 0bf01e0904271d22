package workspace

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
)

// opened is a workspace, and a log with what it says.
func opened(t *testing.T) (*Workspace, *bytes.Buffer, *slog.Logger) {
	t.Helper()
	w, err := OpenWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	said := &bytes.Buffer{}
	return w, said, slog.New(slog.NewTextHandler(said, nil))
}

// What an agent opened to other users is private again, and no link is followed.
func TestKeepPrivate(t *testing.T) {
	t.Parallel()
	w, said, log := opened(t)
	if w.Keep(log); said.Len() > 0 {
		t.Errorf("a new folder: %s", said)
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
	w.Keep(log)
	for _, path := range []string{w.Path(), w.Path("token")} {
		if !strings.Contains(said.String(), "path="+path+"\n") {
			t.Errorf("it does not say %s: %s", path, said)
		}
	}
	for path, want := range map[string]os.FileMode{w.Path(): 0o700, w.Path("token"): 0o600, elsewhere: 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

// The record of a daemon is there again after another program has damaged or removed it.
func TestKeepRecord(t *testing.T) {
	t.Parallel()
	w, said, log := opened(t)
	record := Daemon{PID: 1, Socket: "/tmp/s"}
	if err := w.Announce(record); err != nil {
		t.Fatal(err)
	}
	damaged := os.WriteFile(w.Path("daemon.json"), []byte(`{"pid": 1`), 0o600)
	if _, err := FindDaemon(w.Dir); damaged != nil || !errors.As(err, new(*Unreadable)) {
		t.Errorf("damaged: %v, %v", damaged, err)
	}
	for _, what := range []string{"damaged", "removed"} {
		said.Reset()
		w.Keep(log)
		if found, err := FindDaemon(w.Dir); err != nil || !reflect.DeepEqual(found, record) || !strings.Contains(said.String(), "daemon.json") {
			t.Errorf("%s: %+v, %v, %s", what, found, err, said)
		}
		if err := os.Remove(w.Path("daemon.json")); err != nil {
			t.Fatal(err)
		}
	}
}
