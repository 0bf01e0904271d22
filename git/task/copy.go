package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// copies copies the files and folders of Copy from the workspace into a folder with the task's content. Agents write
// that content, so no link in it is followed out of the folder.
func copies(t Task, out io.Writer, tree string) error {
	into, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer into.Close()
	for _, name := range t.Copy {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("copy: %s is not below the workspace", name)
		}
		name = filepath.Join(filepath.FromSlash(t.Prefix), name)
		from := filepath.Join(t.Repo, name)
		info, err := os.Lstat(from)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if _, err := fmt.Fprintf(out, "copy: there is no %s\n", name); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case !info.IsDir() && !info.Mode().IsRegular():
			return fmt.Errorf("copy: %s is not a file and not a folder", name)
		}
		if err := copyTree(os.DirFS(filepath.Dir(from)), filepath.Base(from), into, filepath.Dir(name)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}

// withoutCopies removes the files and folders of Copy, in the same way.
func withoutCopies(t Task, tree string) error {
	in, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, name := range t.Copy {
		if filepath.IsLocal(name) {
			if err := in.RemoveAll(filepath.Join(filepath.FromSlash(t.Prefix), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTree copies a file, or a folder with its files and links, into the folder to. What the branch has stays.
func copyTree(from fs.FS, name string, into *os.Root, to string) error {
	if err := into.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return fs.WalkDir(from, name, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		at := filepath.Join(to, filepath.FromSlash(name))
		switch entry.Type() {
		case fs.ModeDir:
			err = into.MkdirAll(at, info.Mode().Perm())
		case fs.ModeSymlink:
			var target string
			if target, err = fs.ReadLink(from, name); err == nil {
				err = into.Symlink(target, at)
			}
		case 0:
			err = copyFile(from, name, into, at, info.Mode().Perm())
		default: // a socket or a pipe has nothing to copy
		}
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
}

func copyFile(from fs.FS, name string, into *os.Root, to string, mode fs.FileMode) (err error) {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	file, err := into.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, in)
	return err
}

const (
	includeName = ".worktreeinclude"
	includeMax  = 1000 // files and folders that it may name
)

// private are folders of the workspace that no task gets.
var private = []string{".git", ".fairlead", ".agents"}

// Include adds to Copy what the workspace's .worktreeinclude names: untracked files and folders, by patterns as in
// .gitignore. Without such a file it adds nothing.
func (t *Task) Include(ctx context.Context) error {
	workspace := filepath.Join(t.Repo, filepath.FromSlash(t.Prefix))
	patterns := filepath.Join(workspace, includeName)
	if info, err := os.Lstat(patterns); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a readable file", patterns))
	}
	in := worktree.Git{Dir: workspace}
	list, err := in.AskIn(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-from="+patterns)
	if err != nil {
		return fmt.Errorf("read %s: %w", patterns, err)
	}
	found := 0
	for _, name := range worktree.Zeroed(list) {
		name = strings.TrimSuffix(name, "/")
		if first, _, _ := strings.Cut(name, "/"); isPrivate(first) {
			continue
		}
		if found++; found > includeMax {
			return fmt.Errorf("%s names more than %d files and folders; name whole folders, such as node_modules/", patterns, includeMax)
		}
		t.Copy = append(t.Copy, name)
	}
	return nil
}

func isPrivate(name string) bool {
	return slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(name, p) })
}
