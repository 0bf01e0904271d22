package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/files/workspace"
)

// TestWorkspaceIsTaken checks that a second daemon on a folder gets an error that names the first.
func TestWorkspaceIsTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := workspace.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Announce(workspace.Daemon{PID: 4711, Address: "http://127.0.0.1:7466"}); err != nil {
		t.Fatal(err)
	}
	_, err = workspace.OpenWorkspace(dir)
	var busy *workspace.Busy
	if !errors.As(err, &busy) || busy.Daemon.PID != 4711 || !strings.Contains(err.Error(), "fairlead down") {
		t.Errorf("a second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := workspace.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWorkspaceIsLost checks that a daemon notices when its folder was removed or replaced.
func TestWorkspaceIsLost(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		dir := t.TempDir()
		first, err := workspace.OpenWorkspace(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Lost(); err != nil {
			t.Errorf("before: %v", err)
		}
		if err := os.RemoveAll(filepath.Join(dir, ".fairlead")); err != nil {
			t.Fatal(err)
		}
		if replaced {
			second, err := workspace.OpenWorkspace(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { second.Close() })
			if err := second.Announce(workspace.Daemon{PID: 4711}); err != nil {
				t.Fatal(err)
			}
		}
		if err := first.Lost(); err == nil || !strings.Contains(err.Error(), "taken away") {
			t.Errorf("replaced %v: %v", replaced, err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		if daemon, err := workspace.FindDaemon(dir); replaced && (err != nil || daemon.PID != 4711) {
			t.Errorf("the second daemon's file was removed with the first: %v, %v", daemon, err)
		}
	}
}

// TestWorkspaceFollowsNoLink checks that links in a .fairlead folder of a repository are not
// followed.
func TestWorkspaceFollowsNoLink(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	dir := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, ".fairlead")); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.OpenWorkspace(dir); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a linked folder: %v", err)
	}
	for _, name := range []string{"token", "lock", ".gitignore", "daemon.json.part", "log/transitions.jsonl"} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".fairlead", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(elsewhere, "prey"), path); err != nil {
			t.Fatal(err)
		}
		if _, err := workspace.OpenWorkspace(dir); err == nil || !strings.Contains(err.Error(), "link") {
			t.Errorf("%s as a link: %v", name, err)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("a file was written outside: %v, %v", left, err)
	}
}

// TestPlantedPipes checks that a named pipe in the place of one of Fairlead's files blocks no
// reader.
func TestPlantedPipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lock", "daemon.json", "daemon.json.part", "journal.db"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, ".fairlead"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, ".fairlead", name), 0o600); err != nil {
				t.Fatal(err)
			}
			if w, err := workspace.OpenWorkspace(dir); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("opened: %v, %v", w, err)
			}
			if d, err := workspace.FindDaemon(dir); err == nil {
				t.Errorf("found %+v", d)
			}
		})
	}
}
