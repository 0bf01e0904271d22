package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock waits for a lock file. The kernel keeps the order of those that wait, and the lock ends with the process.
func lock(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err {
		case nil:
			return func() { file.Close() }, nil
		case syscall.EINTR:
		default:
			return nil, errors.Join(fmt.Errorf("wait for %s: %w", path, err), file.Close())
		}
	}
}

// queue waits until this is the only task that lands on its base branch.
func (t Task) queue() (release func(), err error) {
	dir := filepath.Join(t.Git, "fairlead")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the .git folder
		return nil, err
	}
	return lock(filepath.Join(dir, "landing-"+baseSum(t)+".lock"))
}
