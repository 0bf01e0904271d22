package task

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// staged lists the files in the folder that the clone's index has and a list of git does not. An agent may have added a
// file that git ignores, and not committed it yet. The index is the agent's, so no git reads it; what cannot be read of it
// has no names. hashBytes is the length of an object's id.
func staged(t Task, hashBytes int, list string) ([]string, error) {
	text, err := worktree.ReadIndex(t.Tree)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, name := range worktree.Zeroed(list) {
		known[name] = true
	}
	names, _ := indexNames(text, hashBytes)
	return slices.DeleteFunc(names, func(name string) bool { return known[name] || !isFile(t.Tree, name) }), nil
}

// unmerged lists the files whose conflicts the clone's index has as unresolved: a merge or a rebase was not finished.
func unmerged(t Task, hashBytes int) ([]string, error) {
	text, err := worktree.ReadIndex(t.Tree)
	if err != nil {
		return nil, err
	}
	_, names := indexNames(text, hashBytes)
	return names, nil
}

// isFile reports whether a name is one of a file or link in the folder, not behind a link and not in a repository.
func isFile(tree, name string) bool {
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return false
	}
	at := tree
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "" || strings.EqualFold(part, ".git") {
			return false
		}
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch last := i == len(parts)-1; {
		case err != nil, last && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink, !last && !info.IsDir():
			return false
		case last:
			return true
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return false
		}
	}
	return false
}

// indexNames reads the names of an index file, each once, and which of them are unmerged. It returns those before the first fault.
func indexNames(text []byte, hashBytes int) (names, unmerged []string) {
	entries, _ := worktree.IndexEntries(text, hashBytes)
	for _, e := range entries {
		if n := len(names); n == 0 || names[n-1] != e.Name { // an unmerged one has up to three entries
			names = append(names, e.Name)
			if e.Stage != 0 {
				unmerged = append(unmerged, e.Name)
			}
		}
	}
	return names, unmerged
}
