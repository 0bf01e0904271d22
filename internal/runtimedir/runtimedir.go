// Package runtimedir finds and makes the folders for the sockets of a user's daemons and shims.
//
// They are below one folder that only its owner can open. Each folder of work has its own one there, named by a hash.
//
// The one promise: Private returns nil only for a folder of this user that no other user can open.
package runtimedir

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

// Var names the environment variable with the folder of a user's sockets.
const Var = "XDG_RUNTIME_DIR"

const letters = 16 // of the hash in a socket's name

// SocketName is the file name of the socket for a folder. The folder is absolute, with links resolved; the kind tells
// sockets of daemons from those of shims.
func SocketName(kind, folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return kind + "-" + hex.EncodeToString(sum[:])[:letters]
}

// Dirs are the folders in which a user's sockets may be, the preferred one first. The second one is for the case that the
// first vanishes (a logout) and cannot be made again.
func Dirs() []string {
	dirs := []string{filepath.Join("/tmp", "fairlead-"+strconv.Itoa(os.Getuid()))}
	if x := os.Getenv(Var); filepath.IsAbs(x) {
		dirs = append([]string{filepath.Join(x, "fairlead")}, dirs...)
	}
	return dirs
}

// Private makes a folder that other users cannot open, or returns why an existing folder is not suitable.
func Private(dir string) error {
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
		return fmt.Errorf("%s is not a folder but a link or a file: remove it", dir)
	case !ok || int(sys.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user: ask them to remove it, or set %s", dir, Var)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}
