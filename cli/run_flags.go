package cli

import (
	"os"
	"path/filepath"
)

// PathWidth is the maximum length of a path in an error.
const PathWidth = 200

// Absolute resolves a path relative to the current folder, as typed; if that does not exist,
// relative to the repository.
func Absolute(path, repo string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	here, err := filepath.Abs(path)
	if err != nil {
		return filepath.Join(repo, path)
	}
	if _, err := os.Stat(here); err != nil {
		if there := filepath.Join(repo, path); Exists(there) {
			return there
		}
	}
	return here
}

// Exists says whether a file or folder exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
