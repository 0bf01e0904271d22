package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/lazy"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/worktree"

	"github.com/fairlead-dev/fairlead/team"
)

// nameOfRun matches the run IDs that can name a folder and a ref (machine workflow requires the
// same).
var nameOfRun = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,47}$`)

// makeWorktree makes the checkout for a run's steps and sets Worktree in req.how, and Workdir if the
// flags do not name one. The error is a *machine.Refusal if the repository, a name or the path does
// not allow it. In that case nothing was created.
func (c *RunController) makeWorktree(ctx context.Context, req *runRequest, flags view.RunFlags) error {
	no := func(format string, args ...any) error {
		return worktree.RefuseWorktree(req.id, fmt.Sprintf(format, args...))
	}
	if !nameOfRun().MatchString(req.id) {
		return no("the run's name %q cannot name a folder; choose another --run-id", clip.Text(req.id, 64))
	}
	g := worktree.Git{Dir: req.repo}
	top, err := g.Ask(ctx, "rev-parse", "--show-toplevel")
	if worktree.GitSaidNo(err) {
		return no("%s is in no git repository that has files checked out (%v); run `git init` there and commit, or leave --git-worktree out", req.repo, err)
	} else if err != nil {
		return err
	}
	prefix, err := filepath.Rel(strings.TrimSuffix(top, "\n"), req.repo)
	if err != nil || !filepath.IsLocal(prefix) {
		return no("%s is not below the repository %s", req.repo, strings.TrimSpace(top))
	}
	from, branch, err := g.NamesFor(ctx, req.id, prefix, flags)
	if err != nil {
		return err
	}
	path, err := placeFor(req, flags)
	if err != nil {
		return err
	}
	if err := g.Worktree(ctx, "add", "--quiet", "--no-track", "-b", branch, "--", path, from); err != nil {
		if worktree.GitSaidNo(err) {
			return no("the checkout %s cannot be made: %v", path, err)
		}
		return fmt.Errorf("make the worktree of run %s: %w", req.id, err)
	}
	req.how.Worktree, req.how.WorktreeKeep = path, flags.WorktreeKeep
	if !filepath.IsAbs(flags.Workdir) {
		req.how.Workdir = filepath.Join(path, prefix, flags.Workdir)
	}
	c.log.Info("the run has a worktree of its own", "run", req.id, "worktree", path, "branch", branch, "from", from)
	return nil
}

// placeFor is the path for the checkout. The default path is inside the repository, and links in the
// repository cannot move it elsewhere.
func placeFor(req *runRequest, flags view.RunFlags) (string, error) {
	root := flags.WorktreeRoot
	if root != "" && !filepath.IsAbs(root) {
		root = filepath.Join(req.repo, root)
	}
	if root == "" {
		root = filepath.Join(req.repo, ".agents", worktree.WorktreesDir)
	}
	if err := os.MkdirAll(root, DirMode); err != nil {
		return "", fmt.Errorf("make the folder of worktrees: %w; name another with --git-worktree-root", err)
	}
	settled, err := sessions.SettledDir(root)
	if err != nil {
		return "", err
	}
	if flags.WorktreeRoot == "" {
		if settled != root {
			return "", worktree.RefuseWorktree(req.id, fmt.Sprintf("%s is a symbolic link to %s, which Fairlead does not follow; remove it, or name a folder with --git-worktree-root", root, settled))
		}
		if err := leaveWord(filepath.Join(root, ".gitignore")); err != nil {
			return "", fmt.Errorf("keep worktrees out of the repository: %w", err)
		}
	}
	path := filepath.Join(settled, req.id)
	for _, place := range []string{path, worktree.Aside(path, worktree.LeavingSuffix), worktree.Aside(path, worktree.GoneSuffix)} {
		if _, err := os.Lstat(place); err == nil {
			return "", worktree.RefuseWorktree(req.id, fmt.Sprintf("there is something at %s already; look whether anybody needs it (`git worktree list`), remove it with `git worktree remove`, or choose another --run-id", place))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look where the worktree is to be: %w", err)
		}
	}
	return path, nil
}

// leaveWord creates the .gitignore of the worktrees' folder if it is missing.
func leaveWord(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as public as the repository
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(worktree.WorktreeIgnore)
	return errors.Join(err, f.Close())
}

// workedOn is the folder that a run's steps change: the repository, or the same folder in the run's
// checkout. Wrappers receive it as --repo and REPO_DIR.
func workedOn(repo string, how howRun) string {
	if how.Worktree == "" {
		return repo
	}
	for top := repo; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			if prefix, err := filepath.Rel(top, repo); err == nil {
				return filepath.Join(how.Worktree, prefix)
			}
		}
		if top == filepath.Dir(top) {
			return how.Worktree
		}
	}
}

// worktreeEnd is the result of removing a run's checkout.
type worktreeEnd struct {
	Ref     string // ref under which this call saved the content
	Removed bool
	Stays   string // why it was not removed
}

// endWorktree removes the checkout of a run that is done, after it saved all content under a ref. If
// removal would lose content, that is not an error: Stays gives the reason. It may be called again
// at any time, also after a crash.
func (c *RunController) endWorktree(ctx context.Context, id, repo string, how howRun) (end worktreeEnd, err error) {
	if how.Worktree == "" {
		return end, nil
	}
	if how.WorktreeKeep {
		end.Stays = "it was asked for with --git-worktree-keep"
		return end, nil
	}
	w := &worktree.Checkout{Id: id, Repo: worktree.Git{Dir: repo}, Git: worktree.Git{Dir: how.Worktree}}
	defer func() { err = wrapped("take the worktree of run "+id+" away", err) }()
	finished, err := w.Settle(ctx)
	if err != nil {
		return end, err
	}
	if _, err := os.Lstat(how.Worktree); errors.Is(err, fs.ErrNotExist) {
		if end.Removed = true; finished {
			end.Ref = w.Ref()
		}
		return end, nil // avoids a git call: every start of the daemon comes here for each run that is done
	}
	end.Ref, end.Stays, err = w.Remove(ctx)
	end.Removed = err == nil && end.Stays == ""
	if end.Stays != "" {
		c.log.Warn("the worktree of the run stays, because not all of it could be saved; `git worktree remove --force` removes it", "run", id, "worktree", how.Worktree, "why", end.Stays, "kept_as", end.Ref)
	}
	if end.Removed {
		c.log.Info("the worktree of the run is gone; its branch is there, and what was not committed is kept", "run", id, "worktree", how.Worktree, "kept_as", end.Ref)
	}
	return end, err
}

// retireWorktree is endWorktree for a run that may have resumed since it was read.
func (c *RunController) retireWorktree(ctx context.Context, id, repo string, how howRun) (end worktreeEnd, err error) {
	release, err := worktree.TakeCheckout(ctx, how.Worktree)
	if err != nil {
		return end, err
	}
	defer release()
	done := false
	if err := c.View(ctx, func(t *team.Team) { done = t.Runs[id] == nil || runIsDone(t.Runs[id]) }); err != nil || !done {
		return end, err
	}
	return c.endWorktree(ctx, id, repo, how)
}

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// dropWorktree undoes makeWorktree for a run that was refused. Content written since then remains,
// and so does a branch that has moved.
func (c *RunController) dropWorktree(ctx context.Context, req *runRequest) error {
	if req.how.Worktree == "" {
		return nil
	}
	g := worktree.Git{Dir: req.how.Worktree}
	branch, err := g.AskIn(ctx, nil, "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		return fmt.Errorf("take the worktree of run %s back: %w", req.id, err)
	}
	head, err := g.AskIn(ctx, nil, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return fmt.Errorf("take the worktree of run %s back: %w", req.id, err)
	}
	repo := worktree.Git{Dir: req.repo}
	if err := repo.Worktree(ctx, "remove", "--", req.how.Worktree); err != nil {
		return fmt.Errorf("take the worktree of run %s back: %w", req.id, err)
	}
	_, err = repo.Ask(ctx, "update-ref", "-d", strings.TrimSpace(branch), strings.TrimSpace(head))
	return err
}

// reviveWorktree recreates the checkout of a run that resumes after its removal. It restores all
// saved content. It uses the run's branch if the branch is free and has not moved, and a detached
// HEAD otherwise. Staged changes come back unstaged.
func (c *RunController) reviveWorktree(ctx context.Context, id, repo string, how howRun) (err error) {
	if how.Worktree == "" {
		return nil
	}
	defer func() { err = wrapped("have the worktree of run "+id+" again", err) }()
	w := &worktree.Checkout{Id: id, Repo: worktree.Git{Dir: repo}, Git: worktree.Git{Dir: how.Worktree}}
	if _, err := w.Settle(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(how.Worktree); !errors.Is(err, fs.ErrNotExist) {
		return err // it exists
	}
	head, branch, kept, err := w.WhereItWas(ctx)
	if err != nil {
		return err
	}
	made := worktree.Git{Dir: worktree.Aside(how.Worktree, worktree.MakingSuffix)}
	for _, old := range []string{how.Worktree, made.Dir} { // a checkout deleted by hand, and one that a crash left incomplete
		if err := w.Repo.Worktree(ctx, "remove", "--force", "--", old); err != nil && !worktree.GitSaidNo(err) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(how.Worktree), DirMode); err != nil {
		return err
	}
	onBranch, err := w.Repo.AddAgain(ctx, made.Dir, branch, head)
	if err != nil {
		return err
	}
	for _, args := range [][]string{ // the index is from the commit; the files are the saved ones
		{"reset", "--quiet", "--hard", head},
		{"restore", "--quiet", "--source=" + kept, "--worktree", "--", "."},
	} {
		if _, err := made.Run(ctx, worktree.GitWorkMax, made.Inside(), nil, args...); err != nil {
			return err
		}
	}
	if err := w.Repo.Worktree(ctx, "move", "--", made.Dir, how.Worktree); err != nil {
		return err
	}
	c.log.Info("the run has its worktree again, with what was kept of it", "run", id, "worktree", how.Worktree, "branch", branch, "on_branch", onBranch, "from", kept)
	return nil
}

// haveFolder makes the checkout of a run whose files have not arrived from the previous leader, at its branch. It keeps the checkout
// taken until release is called.
func haveFolder(ctx context.Context, c *RunController, id string) (release func(), err error) {
	away, repo, how, comes := "", "", howRun{}, "is back"
	if err := c.View(ctx, func(t *team.Team) {
		if r := t.Runs[id]; r != nil && r.Stage != workflow.Paused {
			away, repo, how = t.Notes[id].Away, r.RepoDir, howOf(t, id)
			if t.Notes[id].Settings.Outside {
				comes = "leads again"
			}
		}
	}); err != nil || away == "" {
		return func() {}, err
	}
	if how.Task != nil {
		if _, err := os.Lstat(how.Task.Tree); errors.Is(err, fs.ErrNotExist) {
			return nil, worktree.RefuseRun(id, fmt.Sprintf("its folder has not arrived from %s. The task goes on when %s %s; `fairlead drop %s` ends it, so that you can give it anew", away, away, comes, id))
		}
		return func() {}, nil
	}
	if release, err = worktree.TakeCheckout(ctx, how.Worktree); err != nil {
		return nil, err
	}
	err = c.reviveWorktree(ctx, id, repo, how)
	if err == nil {
		return release, nil
	}
	release()
	if _, refused := errors.AsType[*machine.Refusal](err); refused {
		return nil, worktree.RefuseRun(id, fmt.Sprintf("its checkout has not arrived from %s, and its branch %s is not here. The run goes on when %s %s; after `git branch %s COMMIT`, the same command begins its checkout at that commit", away, worktree.BranchOf(id), away, comes, worktree.BranchOf(id)))
	}
	return nil, err
}
