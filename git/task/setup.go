package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// lockFiles name what package managers install. Setup runs again when one of them has changed.
var lockFiles = []string{
	"package-lock.json", "pnpm-lock.yaml", "yarn.lock", "go.sum", "Cargo.lock", "uv.lock", "poetry.lock",
	"requirements.txt", "Gemfile.lock", "composer.lock",
}

// SetupFailed is a command of Setup that ended with an exit code other than 0.
type SetupFailed struct {
	Command string
	Err     error
}

func (e *SetupFailed) Error() string { return fmt.Sprintf("setup `%s`: %v", e.Command, e.Err) }

// setupFile has the key of what Setup was last run for in the task's folder. It is outside of the folder, where the
// agent cannot write it.
func setupFile(t Task) string { return filepath.Join(t.Run, "setup") }

// runSetup runs the commands of Setup in a folder with some content, unless they ran there for the same commands and
// lock files. ran reports whether it did.
func runSetup(ctx context.Context, t Task, out io.Writer, dir, keyFile, content string) (ran bool, err error) {
	if len(t.Setup) == 0 {
		return false, nil
	}
	key, err := setupKey(ctx, t, content)
	if err != nil {
		return false, err
	}
	if was, err := os.ReadFile(keyFile); err == nil && string(was) == key {
		_, err := fmt.Fprintln(out, "setup: it ran for these lock files already")
		return false, err
	}
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, line := range t.Setup {
		if err := t.shell(ctx, out, dir, line); errors.As(err, new(*noView)) {
			return false, fmt.Errorf("setup `%s` was not run: %w", line, err)
		} else if err != nil {
			return false, &SetupFailed{line, err}
		}
	}
	return true, os.WriteFile(keyFile, []byte(key), 0o600)
}

// setupKey is what the result of Setup depends on, as far as Fairlead knows.
func setupKey(ctx context.Context, t Task, content string) (string, error) {
	list, err := t.ask(ctx, nil, "ls-tree", "-r", "-z", content)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, line := range t.Setup {
		fmt.Fprintf(sum, "%q\n", line)
	}
	for _, entry := range worktree.Zeroed(list) {
		if _, name, ok := strings.Cut(entry, "\t"); ok && slices.Contains(lockFiles, path.Base(name)) {
			fmt.Fprintf(sum, "%q\n", entry)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
