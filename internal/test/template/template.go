// Package template gives each test its own copy of a folder that was made once.
//
// A repository of git with a commit costs a dozen processes, a task with its clone some fifty. A copy costs a few
// writes. Settings and alternates of git name folders by absolute paths, so a copy names its own.
//
// The one promise: a copy has the folder's files, links and modes, and wherever a text named the folder, it names the copy.
package template

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree is a folder in memory.
type Tree struct {
	from string
	all  []entry // a folder comes before what is in it
}

type entry struct {
	path string
	mode fs.FileMode
	text []byte // of a link: where it leads
}

// Of reads a folder. Its path must have no link in it, and no other text may contain it.
func Of(t testing.TB, dir string) *Tree {
	t.Helper()
	tree := &Tree{from: dir}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{path: strings.TrimPrefix(path, dir), mode: info.Mode()}
		switch e.mode.Type() {
		case fs.ModeDir:
		case fs.ModeSymlink:
			var to string
			to, err = os.Readlink(path)
			e.text = []byte(to)
		default:
			e.text, err = os.ReadFile(path)
		}
		tree.all = append(tree.all, e)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return tree
}

// To writes a copy to a folder, which may exist.
func (f *Tree) To(t testing.TB, dir string) {
	t.Helper()
	for _, e := range f.all {
		if err := e.write(dir+e.path, bytes.ReplaceAll(e.text, []byte(f.from), []byte(dir))); err != nil {
			t.Fatal(err)
		}
	}
}

// Path is where a file of the folder is in a copy.
func (f *Tree) Path(dir, path string) string { return dir + strings.TrimPrefix(path, f.from) }

func (e entry) write(path string, text []byte) error {
	switch e.mode.Type() {
	case fs.ModeDir:
		return os.MkdirAll(path, e.mode.Perm()|0o700)
	case fs.ModeSymlink:
		return os.Symlink(string(text), path)
	}
	return os.WriteFile(path, text, e.mode.Perm())
}
