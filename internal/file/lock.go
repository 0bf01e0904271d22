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
	f, err := Locked(path)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Locked is Lock for a lock that other processes hold with this one: it ends when each of them has closed the file.
func Locked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Uninterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for %s: %w", path, err), f.Close())
	}
	return f, nil
}
