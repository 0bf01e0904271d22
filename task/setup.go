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

	"github.com/fairlead-dev/fairlead/worktree"
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
// lock files.
func runSetup(ctx context.Context, t Task, out io.Writer, dir, keyFile, content string) error {
	if len(t.Setup) == 0 {
		return nil
	}
	key, err := setupKey(ctx, t, content)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(keyFile); err == nil && string(was) == key {
		_, err := fmt.Fprintln(out, "setup: it ran for these lock files already")
		return err
	}
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, line := range t.Setup {
		if err := t.shell(ctx, out, dir, line); err != nil {
			return &SetupFailed{line, err}
		}
	}
	return os.WriteFile(keyFile, []byte(key), 0o600)
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

// landingDir is the folder in which the checks of merged files run. It stays, so that Setup need not run for each
// task. Tasks use it one at a time (queue).
func landingDir(t Task) string { return filepath.Join(filepath.Dir(t.Tree), "landing-"+digest(t.Base)) }

// mergedFolder puts content into the landing folder. What Setup has made there stays, if git ignores it.
func mergedFolder(ctx context.Context, t Task, tree string) (dir string, err error) {
	dir = landingDir(t)
	index := dir + ".index"
	env := []string{"GIT_DIR=" + t.Git, "GIT_WORK_TREE=" + dir, "GIT_INDEX_FILE=" + index}
	fill := func() error {
		if err := os.Remove(index + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := withoutCopies(t, dir); err != nil { // they may have changed
			return err
		}
		for _, args := range [][]string{
			{"read-tree", "--reset", "-u", tree}, {"checkout-index", "--all", "--force", "--quiet"}, {"clean", "-ffdq"},
		} {
			if _, err := t.ask(ctx, env, args...); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := os.Lstat(index); err == nil {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the checkout
			return "", err
		}
		if fill() == nil {
			return dir, nil
		}
	}
	for _, left := range []string{dir, index, dir + ".setup"} { // none yet, or not usable
		if err := os.RemoveAll(left); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the checkout
		return "", err
	}
	return dir, fill()
}

// checkMerged runs the checks on content that is in no folder yet.
func checkMerged(ctx context.Context, t Task, out io.Writer, tree string) error {
	dir, err := mergedFolder(ctx, t, tree)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "branch %s has moved; the checks run on the merged files\n", t.Base); err != nil {
		return err
	}
	if err := copies(t, out, dir); err != nil {
		return err
	}
	if err := runSetup(ctx, t, out, dir, dir+".setup", tree); err != nil {
		return err
	}
	return t.checkIn(ctx, out, dir)
}
