package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// IsLocked says whether somebody holds a lock file. It takes a share of it for an instant,
// and makes no file.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
