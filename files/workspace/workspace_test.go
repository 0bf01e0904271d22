package workspace

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A lock that a process holds for a moment, and no daemon, does not keep a daemon from starting.
func TestLockHeldForAMoment(t *testing.T) {
	dir := t.TempDir()
	w, err := OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	held := flock.New(filepath.Join(dir, ".fairlead", "lock"), flock.SetFlag(os.O_RDONLY))
	if ok, err := held.TryRLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	opened := make(chan error)
	go func() {
		w, err := OpenWorkspace(dir)
		if err == nil {
			err = w.Close()
		}
		opened <- err
	}()
	wait.Pause(4 * lockTry) // it holds for every length below lockWait
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := wait.For(t, "the workspace is open", opened); err != nil {
		t.Error(err)
	}
}

// recorded opens a workspace as a daemon of this process would, with a record that names a socket.
func recorded(t *testing.T, dir, socket string) *Workspace {
	t.Helper()
	w, err := OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	record, err := json.Marshal(Daemon{PID: os.Getpid(), Address: "http://127.0.0.1:7466", Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.Path("daemon.json"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// A daemon that has recorded itself and lives is reported at once.
func TestLockHeldByADaemon(t *testing.T) {
	dir, socket := t.TempDir(), filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	recorded(t, dir, socket)
	_, err = OpenWorkspace(dir)
	if busy := (&Busy{}); !errors.As(err, &busy) || busy.Daemon.PID != os.Getpid() || !strings.Contains(err.Error(), "already runs") {
		t.Errorf("%v", err)
	}
}

// A daemon that was killed has closed its socket, and for a moment its process can still be seen and its lock is held.
func TestLockOfADyingDaemon(t *testing.T) {
	dir := t.TempDir()
	dying := recorded(t, dir, filepath.Join(t.TempDir(), "closed"))
	opened := make(chan error)
	go func() {
		w, err := OpenWorkspace(dir)
		if err == nil {
			err = w.Close()
		}
		opened <- err
	}()
	wait.Pause(4 * lockTry) // it holds for every length below lockWait
	if err := dying.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := wait.For(t, "the workspace is open", opened); err != nil {
		t.Error(err)
	}
}
