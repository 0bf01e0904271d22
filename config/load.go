package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Load reads fairlead.yaml in a folder. lookupEnv is os.LookupEnv; if it is nil, references are not resolved,
// which is for programs that only check the text.
//
// A file with errors gives *Faults. A missing file gives an error that is fs.ErrNotExist.
func Load(dir string, lookupEnv func(string) (string, bool)) (*Config, error) {
	b, err := readFile(filepath.Join(dir, FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s in %s; `fairlead init` writes one: %w", FileName, dir, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	return Parse(FileName, dir, b, lookupEnv)
}

// Parse reads a configuration that is in memory. name is used in messages; relative paths start from dir.
func Parse(name, dir string, b []byte, lookupEnv func(string) (string, bool)) (*Config, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	if dir, err = settle(dir); err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	found := &findings{file: name}
	root := parseTree(b, found)
	if root == nil {
		return nil, found.err()
	}
	renameOldKeys(root, found)
	checkShape(root, found)
	if root.Kind != file.YAMLObject {
		return nil, found.err()
	}
	c := &checker{findings: found, root: root, dir: dir, lookupEnv: lookupEnv}
	cfg := c.config()
	if err := found.err(); err != nil {
		return nil, err
	}
	sortFaults(found.notes)
	cfg.Notes = found.notes
	return cfg, nil
}

// readFile reads at most one byte more than the size limit, so that a file that is too large is noticed and
// an endless one is not read.
func readFile(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, fileBytesMax+1))
}
