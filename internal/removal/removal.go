// Package removal removes what a program has written that is not trusted.
//
// The one promise: what is in the folder goes, whatever it is, with few open descriptors and without a
// step out of it.
package removal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

const (
	removedAtOnce = 1000  // names of a folder that are read before they are removed
	removing      = 0o700 // the mode of a folder that is emptied; where it belongs to another user, the removal says so
)

// Tree removes a folder in which any program could write, with everything in it: also folders without rights, as caches of
// packages are, and more folders in each other than this process may have open. For that, a folder in a folder is moved to the top. It
// follows no link. What does not exist is removed.
func Tree(dir string) error {
	switch info, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return os.Remove(dir)
	}
	_ = os.Chmod(dir, removing) //nolint:gosec // a folder is entered to be emptied
	top, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = errors.Join(emptied(top, func(name string) error { return removeIn(top, name) }), top.Close())
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// emptied calls remove for what is in a folder until nothing is, or that fails.
func emptied(folder *os.Root, remove func(name string) error) error {
	for {
		f, err := folder.Open(".")
		if err != nil {
			return err
		}
		entries, err := f.ReadDir(removedAtOnce)
		f.Close()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := folder.Remove(e.Name()); err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			} else if !e.IsDir() {
				return err
			}
			if err := remove(e.Name()); err != nil {
				return err
			}
		}
	}
}

// removeIn removes a folder that is not empty.
func removeIn(top *os.Root, name string) error {
	_ = top.Chmod(name, removing)
	folder, err := top.OpenRoot(name)
	if err != nil {
		return err
	}
	err = emptied(folder, func(inner string) error {
		from, to := filepath.Join(name, inner), fmt.Sprintf(".removed-%x", rand.Uint64())
		if err := top.Rename(from, to); err == nil {
			return nil
		}
		_ = top.Chmod(from, removing) // a folder whose parent changes is written, too
		return top.Rename(from, to)
	})
	if err := errors.Join(err, folder.Close()); err != nil {
		return err
	}
	return top.Remove(name)
}
