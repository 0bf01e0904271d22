package file

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
		t.Errorf("the lock can be had a second time: %v", err)
	}
	second := make(chan error)
	go func() {
		release, err := Lock(path)
		if err == nil {
			release()
		}
		second <- err
	}()
	release()
	if err := <-second; err != nil {
		t.Error(err)
	}
	if _, err := Lock(filepath.Join(path, "in a file")); err == nil {
		t.Error("a file is locked below a file")
	}
}
