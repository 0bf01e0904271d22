package sessions

import (
	"fmt"
	"path/filepath"
)

// SettledDir is a folder's absolute path without links.
func SettledDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	return dir, nil
}
