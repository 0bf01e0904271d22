package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/worktree"
)

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
	for _, p := range private {
		if strings.EqualFold(name, p) {
			return true
		}
	}
	return false
}
