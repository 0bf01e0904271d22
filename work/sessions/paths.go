package sessions

import (
	"fmt"
	"io"
	"os"
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

// ReadUpTo reads a file of at most so many bytes; a larger file is an error.
func ReadUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, err
}

// PrivateTemp is the own folder of a session in a view.
func (c *Controller) PrivateTemp(session string) string {
	return filepath.Join(c.opts.Config.Dir, ".fairlead", "tmp", session)
}
