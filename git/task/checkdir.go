package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/removal"
)

// The checkout in which checks run. Each task has one of its own, beside its folder, which no agent writes. Before each round it gets
// exactly one commit: what checks have left there is removed, and what setup has made stays. Nothing in it is kept.

// ChecksIn are the words of tasks.checks_in.
const (
	ChecksInCheckout = "checkout" // a checkout of their own
	ChecksInTask     = "task"     // the task's folder, where its agent works
)

// madeMax is how many names of what setup has made are passed to git. A setup that makes more runs in each round.
const madeMax = 200

// checksDir is the folder of that checkout.
func (t Task) checksDir() string { return worktree.Aside(t.Tree, ".checks") }

// The files beside the folder: git's index of what was put there, the key of what setup ran for, and what it made.
func (t Task) checksIndex() string { return t.checksDir() + ".index" }
func (t Task) checksSetup() string { return t.checksDir() + ".setup" }
func (t Task) checksMade() string  { return t.checksDir() + ".made" }

// checkout puts a commit into the folder for checks, with the files of Copy, and runs Setup if it has not run there for these lock
// files. A failure of Setup is a *SetupFailed.
func (t Task) checkout(ctx context.Context, out io.Writer, commit string) error {
	if err := t.put(ctx, commit); err != nil {
		return fmt.Errorf("make the checkout for the checks of task %s: %w", t.ID, err)
	}
	dir := t.checksDir()
	if err := copies(t, out, dir); err != nil || len(t.Setup) == 0 {
		return err
	}
	ran, err := runSetup(ctx, t, out, dir, t.checksSetup(), commit)
	if err != nil || !ran {
		return err
	}
	return t.noteMade(ctx)
}

// put brings the folder to a commit. A folder that git cannot use any longer is made again.
func (t Task) put(ctx context.Context, commit string) error {
	if err := removal.Tree(filepath.Join(t.checksDir(), ".git")); err != nil { // a check may have written it
		return err
	}
	made, known := t.made()
	if _, err := os.Lstat(t.checksIndex()); err != nil || !known || t.fill(ctx, commit, made) != nil {
		if err := t.removeChecks(); err != nil {
			return err
		}
		if err := t.fill(ctx, commit, nil); err != nil {
			return err
		}
	}
	return t.putGit(ctx, commit)
}

// removeChecks removes the folder for checks, and what is known of it.
func (t Task) removeChecks() error {
	err := removal.Tree(t.checksDir())
	for _, file := range []string{t.checksIndex(), t.checksSetup(), t.checksMade()} {
		if fault := os.Remove(file); fault != nil && !errors.Is(fault, fs.ErrNotExist) {
			err = errors.Join(err, fault)
		}
	}
	return err
}

// fill writes a commit's files into the folder, and removes all others but those of setup.
func (t Task) fill(ctx context.Context, commit string, made []string) (err error) {
	dir, index := t.checksDir(), t.checksIndex()
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the checkout
		return err
	}
	if err := withoutCopies(t, dir); err != nil { // they may have changed
		return err
	}
	in, err := t.enterChecks(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := os.Rename(index, in.Index()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	clean := []string{"clean", "-ffdxq"}
	for _, name := range made {
		clean = append(clean, "-e", "/"+literal(name))
	}
	for _, args := range [][]string{
		{"read-tree", "--reset", "-u", commit}, {"checkout-index", "--all", "--force", "--quiet"}, clean,
	} {
		if _, err := in.Files(ctx, nil, args...); err != nil {
			return err
		}
	}
	return os.Rename(in.Index(), index)
}

func (t Task) enterChecks(ctx context.Context) (*worktree.Inside, error) {
	return worktree.Enter(ctx, worktree.Room{Repo: t.own(), Folder: t.checksDir(), Write: true, Borrows: []string{t.Git}})
}

// putGit gives the folder a git directory of its own at the commit, for checks that ask git.
func (t Task) putGit(ctx context.Context, commit string) error {
	dir := t.checksDir()
	from := worktree.Aside(t.Tree, ".checks-git")
	if err := removal.Tree(from); err != nil {
		return err
	}
	c := worktree.Clone{Repo: t.own(), Dir: from, Store: t.store().Dir}
	start := worktree.Start{Head: commit, Empty: true, Base: t.Base, Ignored: copyPatterns(t), NoPush: noPush}
	if err := c.Make(ctx, start); err != nil {
		return err
	}
	index, err := os.ReadFile(t.checksIndex())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(from, ".git", "index"), index, 0o600); err != nil {
		return err
	}
	return errors.Join(os.Rename(filepath.Join(from, ".git"), filepath.Join(dir, ".git")), removal.Tree(from))
}

// made is what setup has made; known is false if there is too much of it to be told apart from what checks leave.
func (t Task) made() (names []string, known bool) {
	text, err := os.ReadFile(t.checksMade())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true // it made nothing yet
	}
	names = worktree.Zeroed(string(text))
	return names, err == nil && len(names) <= madeMax
}

// noteMade notes what is in the folder besides the commit's files and those of Copy.
func (t Task) noteMade(ctx context.Context) (err error) {
	in, err := t.enterChecks(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	index, err := os.ReadFile(t.checksIndex())
	if err == nil {
		err = os.WriteFile(in.Index(), index, 0o600)
	}
	if err != nil {
		return err
	}
	list, err := in.Files(ctx, nil, "ls-files", "-z", "--others", "--directory")
	if err != nil {
		return err
	}
	var made strings.Builder
	for _, name := range worktree.Zeroed(list) {
		if !t.copied(strings.TrimSuffix(name, "/")) && name != ".git/" {
			made.WriteString(name + "\x00")
		}
	}
	return os.WriteFile(t.checksMade(), []byte(made.String()), 0o600)
}
