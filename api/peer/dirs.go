package peer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// RuntimeDirVar names the environment variable with the folder of a user's sockets.
const RuntimeDirVar = "XDG_RUNTIME_DIR"

const socketLetters = 16 // of the hash in a socket's name

// SocketOf is the file name of the socket of the daemon that works on a folder. The folder is absolute, with links resolved.
func SocketOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "d-" + hex.EncodeToString(sum[:])[:socketLetters]
}

// SocketDirs are the folders in which the sockets of this user's daemons may be, the preferred one first.
func SocketDirs() []string {
	dirs := []string{filepath.Join("/tmp", "fairlead-"+strconv.Itoa(os.Getuid()))}
	if x := os.Getenv(RuntimeDirVar); filepath.IsAbs(x) {
		dirs = append([]string{filepath.Join(x, "fairlead")}, dirs...)
	}
	return dirs
}

// PrivateDir makes a folder that other users cannot open, or returns why an existing folder is not
// suitable.
func PrivateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is a link or a file, not a folder; remove it", dir)
	case !ok || int(sys.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user; ask them to remove it, or set %s", dir, RuntimeDirVar)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}
