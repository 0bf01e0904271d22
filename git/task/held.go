package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// checkout is a checkout of the person's repository.
type checkout struct {
	dir string
	git string // its own git folder: the repository's, or one in its worktrees
}

// checkouts lists the checkouts of the repository that are there, and their git folders.
func (t Task) checkouts(ctx context.Context) (all []checkout, err error) {
	bare, err := t.ask(ctx, []string{"GIT_DIR=" + t.Git}, "rev-parse", "--is-bare-repository")
	if err != nil {
		return nil, err
	}
	if bare != "true" {
		dir := filepath.Dir(t.Git)
		if own, err := t.ask(ctx, nil, "rev-parse", "--absolute-git-dir"); err == nil && own == t.Git {
			dir = t.Repo // its git folder may be elsewhere
		}
		all = append(all, checkout{dir, t.Git})
	}
	folders, err := filepath.Glob(filepath.Join(literal(t.Git), "worktrees", "*"))
	for _, dir := range folders {
		text, err := os.ReadFile(filepath.Join(dir, "gitdir")) // where its .git is
		if err != nil {
			continue // it was removed
		}
		at := strings.TrimSpace(string(text))
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		if _, err := os.Lstat(at); err == nil {
			all = append(all, checkout{filepath.Dir(at), dir})
		}
	}
	return all, err
}

// first is the first line of a file in the git folder; empty: there is none.
func (c checkout) first(name string) string {
	text, _ := os.ReadFile(filepath.Join(c.git, name))
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// on reports whether a checkout is on a branch.
func (c checkout) on(branch string) bool { return c.first("HEAD") == "ref: refs/heads/"+branch }

// ends are the commands that end what can be half done in a checkout.
var ends = map[string]string{
	"a rebase": "git rebase --continue or --abort", "a merge": "git merge --continue or --abort",
	"a cherry-pick": "git cherry-pick --continue or --abort", "a revert": "git revert --continue or --abort",
	"a bisection": "git bisect reset", "a series of picks": "git cherry-pick --continue or --abort",
}

// halfDone is what is half done with a branch in a checkout, and what would go wrong if the branch moved meanwhile; empty: nothing.
// git itself refuses to move such a branch.
func (c checkout) halfDone(branch string) string {
	ref := "refs/heads/" + branch
	for _, dir := range []string{"rebase-merge", "rebase-apply"} {
		if c.first(filepath.Join(dir, "head-name")) == ref {
			return "a rebase"
		}
	}
	text, _ := os.ReadFile(filepath.Join(c.git, "rebase-merge", "update-refs")) // other branches that the rebase moves
	if slices.Contains(strings.Split(string(text), "\n"), ref) {
		return "a rebase"
	}
	if c.first("BISECT_START") == branch {
		return "a bisection"
	}
	if !c.on(branch) {
		return ""
	}
	for name, what := range worktree.HalfDone {
		if _, err := os.Lstat(filepath.Join(c.git, name)); err == nil && ends[what] != "" {
			return what
		}
	}
	return ""
}

// unheld refuses to move the base while something is half done with it in a checkout.
func (t Task) unheld(ctx context.Context) error {
	all, err := t.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if what := c.halfDone(t.Base); what != "" {
			return &NotLanded{
				Failure{Kind: state.FailedDirty},
				fmt.Sprintf("%s of branch %s is not finished in %s; finish or end it there (%s), then merge again", what, t.Base, c.dir,
					ends[what]),
			}
		}
	}
	return nil
}

// checkedOut is the checkout that is on the base; nil: none is.
func (t Task) checkedOut(ctx context.Context) (*checkout, error) {
	all, err := t.checkouts(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c checkout) bool { return !c.on(t.Base) })
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return &all[0], nil
	}
	return nil, &NotLanded{
		Failure{Kind: state.FailedDirty},
		fmt.Sprintf("branch %s is checked out in %s and in %s; switch one of them to another branch, then merge again", t.Base, all[0].dir,
			all[1].dir),
	}
}
