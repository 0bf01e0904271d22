package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Load reads fairlead.yaml in a folder. lookupEnv is os.LookupEnv; with nil no
// reference is looked up, for programs that only want to check the text.
//
// A file that is there and wrong gives *Faults. A file that is not there gives an
// error that is fs.ErrNotExist; one that cannot be read, the reason.
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

// Parse reads a configuration that is already in memory. name is what messages
// call it; dir is the folder that its paths start from.
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
	if root.kind != object {
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

// readFile reads no more than a file may hold and one byte, so that too much is
// seen as too much and nothing endless is read.
func readFile(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, fileBytesMax+1))
}
