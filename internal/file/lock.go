package file

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock waits for a lock file, which is made if it is missing. The kernel keeps the order of those that wait, and the lock ends with the
// process.
func Lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Uninterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for %s: %w", path, err), f.Close())
	}
	return func() { f.Close() }, nil
}
