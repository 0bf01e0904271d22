package shim

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

const (
	runtimeDirVar     = "XDG_RUNTIME_DIR"
	socketPathBytes   = 100 // sun_path has 104 bytes on macOS, 108 on Linux
	socketNameLetters = 16
)

// runtimeDirs returns the folders for sockets, best first. The second one is for the case that the
// first vanishes (a logout) and cannot be created again.
func runtimeDirs() []string {
	dirs := []string{filepath.Join("/tmp", "fairlead-"+strconv.Itoa(os.Getuid()))}
	if x := os.Getenv(runtimeDirVar); filepath.IsAbs(x) {
		dirs = append([]string{filepath.Join(x, "fairlead")}, dirs...)
	}
	return dirs
}

func socketName(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return "h-" + hex.EncodeToString(sum[:])[:socketNameLetters]
}

// safeDir creates a folder that other users cannot access, or returns why that failed.
func safeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSymlink != 0 || !info.IsDir():
		return fmt.Errorf("%s is not a folder but a link or a file: remove it", dir)
	case !ok || int(sys.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user: ask them to remove it, or set %s", dir, runtimeDirVar)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// socketPaths returns all possible paths of the socket for a folder's shim.
func socketPaths(folder, recorded string) []string {
	var paths []string
	if recorded != "" {
		paths = append(paths, recorded)
	}
	for _, dir := range runtimeDirs() {
		if p := filepath.Join(dir, socketName(folder)); p != recorded {
			paths = append(paths, p)
		}
	}
	return paths
}

// pickSocket returns the path for a new socket in the first usable runtime folder.
func pickSocket(folder string) (string, error) {
	var errs []error
	for _, dir := range runtimeDirs() {
		path := filepath.Join(dir, socketName(folder))
		if len(path) >= socketPathBytes {
			errs = append(errs, fmt.Errorf("%s is too long for a socket", path))
			continue
		}
		err := safeDir(dir)
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no runtime folder for the shim's socket: %w", errors.Join(errs...))
}

// realFolder is the canonical path of a session's folder.
func realFolder(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("session folder %s: %w", folder, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, os.ErrNotExist) {
		return abs, nil // it does not exist: nothing can be running in it
	}
	if err != nil {
		return "", fmt.Errorf("session folder %s: %w", folder, err)
	}
	return real, nil
}
