package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// IsLocked reports whether another process holds a lock file. It takes a shared lock for an instant,
// and creates no file.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
