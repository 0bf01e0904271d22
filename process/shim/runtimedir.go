package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
)

const socketPathBytes = 100 // sun_path has 104 bytes on macOS, 108 on Linux

// socketPaths returns all possible paths of the socket for a folder's shim.
func socketPaths(folder, recorded string) []string {
	var paths []string
	if recorded != "" {
		paths = append(paths, recorded)
	}
	for _, dir := range runtimedir.Dirs() {
		if p := filepath.Join(dir, runtimedir.SocketName("h", folder)); p != recorded {
			paths = append(paths, p)
		}
	}
	return paths
}

// pickSocket returns the path for a new socket in the first usable runtime folder.
func pickSocket(folder string) (string, error) {
	var errs []error
	for _, dir := range runtimedir.Dirs() {
		path := filepath.Join(dir, runtimedir.SocketName("h", folder))
		if len(path) >= socketPathBytes {
			errs = append(errs, fmt.Errorf("%s is too long for a socket", path))
			continue
		}
		err := runtimedir.Private(dir)
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
