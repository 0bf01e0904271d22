package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/git/worktree/store"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/team"
)

// nameOfRun matches the run IDs that can name a folder and a ref (machine workflow requires the
// same).
var nameOfRun = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,47}$`)

// makeWorktree makes the clone for a run's steps, and its branch. It sets Worktree in req.how, and Workdir if the
// flags do not name one. The error is a *table.Refusal if the repository, a name or the path does
// not allow it. In that case nothing was created.
func (c *Controller) makeWorktree(ctx context.Context, req *runRequest, flags view.RunFlags) error {
	no := func(format string, args ...any) error {
		return worktree.RefuseWorktree(req.id, fmt.Sprintf(format, args...))
	}
	if !nameOfRun.MatchString(req.id) {
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
	from, branch, err := g.NamesFor(ctx, req.id, prefix, flags.WorktreeRef, flags.WorktreeBranch)
	if err != nil {
		return err
	}
	path, err := placeFor(req, flags)
	if err != nil {
		return err
	}
	how := howRun{Worktree: path, WorktreeBranch: branch}
	if err := c.refresh(ctx, req.repo, flags.WorktreeRef); err != nil {
		return fmt.Errorf("make the worktree of run %s: %w", req.id, err)
	}
	err = c.clone(req.id, req.repo, how).Make(ctx, from)
	if worktree.GitSaidNo(err) {
		return no("the checkout %s cannot be made: %v", path, err)
	} else if err != nil {
		return fmt.Errorf("make the worktree of run %s: %w", req.id, err)
	}
	req.how.Worktree, req.how.WorktreeBranch, req.how.WorktreeKeep = path, branch, flags.WorktreeKeep
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
			return "", worktree.RefuseWorktree(req.id,
				fmt.Sprintf("%s is a symbolic link to %s, which Fairlead does not follow; remove it, or name a folder with --git-worktree-root", root, settled))
		}
		if err := leaveWord(filepath.Join(root, ".gitignore")); err != nil {
			return "", fmt.Errorf("keep worktrees out of the repository: %w", err)
		}
	}
	path := filepath.Join(settled, req.id)
	for _, place := range []string{path, worktree.Aside(path, worktree.LeavingSuffix), worktree.Aside(path, worktree.GoneSuffix)} {
		if _, err := os.Lstat(place); err == nil {
			return "", worktree.RefuseWorktree(req.id,
				fmt.Sprintf("there is something at %s already; look whether anybody needs it, remove it, or choose another --run-id",
					place))
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

const keptByFlag = "it was asked for with --git-worktree-keep"

// worktreeEnd is the result of removing a run's checkout.
type worktreeEnd struct {
	Ref     string // ref under which this call saved the content
	Removed bool
	Stays   string // why it was not removed
	Left    string // why its branch has not its newest commits
}

// words says whether a worktree was removed, or why it stays.
func (e worktreeEnd) words(err error) string {
	said := ""
	switch {
	case err != nil:
		return "stays, as it could not be removed: " + clip.Text(err.Error(), sessions.TextBytesMax)
	case e.Stays != "":
		said = "stays: " + e.Stays
	case e.Removed && e.Ref != "" && e.Left != "":
		said = "removed; " + e.Ref + " has its commits and all of its files"
	case e.Removed && e.Ref != "":
		return "removed; its branch has its commits, and " + e.Ref + " all of its files"
	case e.Removed:
		return "removed"
	}
	if e.Left != "" {
		said += "; " + e.Left
	}
	return said // empty: the run has been resumed
}

// clone is the run's clone. It shares the objects of Fairlead's copy of its repository.
func (c *Controller) clone(id, repo string, how howRun) *worktree.Checkout {
	return &worktree.Checkout{
		Id: id, Branch: how.WorktreeBranch, Repo: worktree.Git{Dir: repo}, Dir: how.Worktree,
		Store: c.store(repo).There(),
	}
}

func (c *Controller) store(repo string) store.Store { return store.For(c.opts.Config.Dir, repo) }

// refresh brings the newest commits to where the clone fetches from: of the branch that is checked out in the repository, of those
// of earlier calls, and of ref if that is a branch.
func (c *Controller) refresh(ctx context.Context, repo, ref string) error {
	g := worktree.Git{Dir: repo}
	top, err := g.Ask(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	var bases []string
	for _, args := range [][]string{
		{"symbolic-ref", "--quiet", "HEAD"},
		{"rev-parse", "--verify", "--quiet", "--symbolic-full-name", "--end-of-options", ref},
	} {
		said, err := g.Ask(ctx, args...)
		if err != nil && !worktree.GitSaidNo(err) {
			return err
		}
		base, is := strings.CutPrefix(strings.TrimSpace(said), "refs/heads/")
		if !is || slices.Contains(bases, base) {
			continue
		}
		// it is not on a branch without a commit
		if _, err := g.Ask(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+base+"^{commit}"); err == nil {
			bases = append(bases, base)
		} else if !worktree.GitHasNone(err) {
			return err
		}
	}
	return c.store(repo).Refresh(ctx, strings.TrimSuffix(top, "\n"), bases...)
}

// bring brings the branch of a run's clone into the repository. left says why it is not there.
func (c *Controller) bring(ctx context.Context, w *worktree.Checkout) (left string, err error) {
	moved, left, err := w.Clone().Bring(ctx, w.Branch)
	switch {
	case err != nil:
		return "", fmt.Errorf("bring the branch %s of run %s into the repository: %w", w.Branch, w.Id, err)
	case left != "":
		left = clip.Text(fmt.Sprintf("branch %s was left as it is: %s", w.Branch, left), sessions.TextBytesMax)
		c.log.Warn("the branch of a run is not moved; its commits are in its folder", "run", w.Id, "why", left)
	case moved:
		c.log.Info("the branch of the run has its new commits", "run", w.Id, "branch", w.Branch)
	}
	return left, nil
}

// bringAfter brings the branch of a run after a step, before the end of the step is recorded. If this process dies in between, the
// step ends again.
func (c *Controller) bringAfter(ctx context.Context, s team.Session, run string) {
	repo, how := "", howRun{}
	if err := c.loop.View(ctx, func(t *team.Team) {
		if r := t.Runs[run]; r != nil {
			repo, how = r.RepoDir, howOf(t, run)
		}
	}); err != nil || how.Worktree == "" {
		return
	}
	release, err := worktree.TakeCheckout(ctx, how.Worktree)
	if err != nil {
		return
	}
	defer release()
	if _, err := os.Lstat(how.Worktree); err != nil {
		return // it is removed, with its branch brought
	}
	if err := c.refresh(ctx, repo, ""); err != nil && ctx.Err() == nil {
		c.log.Warn("a run's next step does not see the newest commits of the repository", "run", run, "error", err)
	}
	left, err := c.bring(ctx, c.clone(run, repo, how))
	if err != nil && ctx.Err() == nil {
		left = clip.Text(err.Error(), sessions.TextBytesMax)
		c.log.Warn("the branch of a run could not be brought; the next step tries again", "run", run, "session", s.ID, "error", err)
	}
	_ = c.loop.View(ctx, func(*team.Team) { c.RunMember(run).left = left }) // it fails only if the loop has stopped
}

// showWorktree sets what a view says of the run's own checkout.
func (c *Controller) showWorktree(shown *view.RunView, r *workflow.Run, how howRun) {
	if shown.Worktree = how.Worktree; how.Worktree == "" {
		return
	}
	m, left := c.Live[shown.ID], ""
	if m != nil {
		left = m.left
	}
	switch status := r.Status(); {
	case status == workflow.IsRunning, status == workflow.IsWaiting:
		shown.WorktreeEnd = left
	case how.WorktreeKeep && (m == nil || m.tree == ""):
		shown.WorktreeEnd = worktreeEnd{Stays: keptByFlag, Left: left}.words(nil)
	case status == workflow.IsFailed:
		shown.WorktreeEnd = "stays, for the run to be resumed in it"
		if left != "" {
			shown.WorktreeEnd += "; " + left
		}
	case m != nil:
		shown.WorktreeEnd, shown.WorktreeBusy = m.tree, m.tree == ""
	}
}

// endWorktree removes the checkout of a run that is done, after it saved all content under a ref. If
// removal would lose content, that is not an error: Stays gives the reason. It may be called again
// at any time, also after a crash.
func (c *Controller) endWorktree(ctx context.Context, id, repo string, how howRun) (end worktreeEnd, err error) {
	if how.Worktree == "" {
		return end, nil
	}
	w := c.clone(id, repo, how)
	defer func() { err = wrapped("take the worktree of run "+id+" away", err) }()
	finished, err := w.Settle()
	if err != nil {
		return end, err
	}
	if _, err := os.Lstat(how.Worktree); errors.Is(err, fs.ErrNotExist) {
		if end.Removed = true; finished {
			end.Ref = w.Ref()
		}
		return end, nil // avoids a git call: every start of the daemon comes here for each run that is done
	}
	if end.Left, err = c.bring(ctx, w); err != nil && !worktree.GitSaidNo(err) { // a clone that git cannot read stays below
		return end, err
	}
	if how.WorktreeKeep {
		end.Stays = keptByFlag
		return end, nil
	}
	end.Ref, end.Stays, err = w.Remove(ctx)
	end.Removed = err == nil && end.Stays == ""
	if end.Stays != "" {
		c.log.Warn("the worktree of the run stays, because not all of it could be saved; delete the folder if you do not need it", "run",
			id, "worktree", how.Worktree, "why", end.Stays, "kept_as", end.Ref)
	}
	if end.Removed {
		c.log.Info("the worktree of the run is gone; its branch is there, and what was not committed is kept", "run", id, "worktree",
			how.Worktree, "kept_as", end.Ref)
	}
	return end, err
}

// retireWorktree is endWorktree for a run that may have resumed since it was read.
func (c *Controller) retireWorktree(ctx context.Context, id, repo string, how howRun) (end worktreeEnd, err error) {
	release, err := worktree.TakeCheckout(ctx, how.Worktree)
	if err != nil {
		return end, err
	}
	defer release()
	done := false
	if err := c.loop.View(ctx, func(t *team.Team) { done = t.Runs[id] == nil || runIsDone(t.Runs[id]) }); err != nil || !done {
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
func (c *Controller) dropWorktree(ctx context.Context, req *runRequest) error {
	if req.how.Worktree == "" {
		return nil
	}
	return wrapped("take the worktree of run "+req.id+" back", c.clone(req.id, req.repo, req.how).Drop(ctx))
}

// reviveWorktree recreates the checkout of a run that resumes after its removal. It restores all
// saved content, on the branch that it was on. Staged changes come back unstaged.
func (c *Controller) reviveWorktree(ctx context.Context, id, repo string, how howRun) (err error) {
	if how.Worktree == "" {
		return nil
	}
	defer func() { err = wrapped("have the worktree of run "+id+" again", err) }()
	if _, err := c.clone(id, repo, how).Settle(); err != nil {
		return err
	}
	if _, err := os.Lstat(how.Worktree); !errors.Is(err, fs.ErrNotExist) {
		return err // it exists
	}
	if err := os.MkdirAll(filepath.Dir(how.Worktree), DirMode); err != nil {
		return err
	}
	if err := c.refresh(ctx, repo, ""); err != nil {
		return err
	}
	kept, err := c.clone(id, repo, how).Revive(ctx)
	if err == nil {
		c.log.Info("the run has its worktree again, with what was kept of it", "run", id, "worktree", how.Worktree, "from", kept)
	}
	return err
}

// haveFolder makes the checkout of a run whose files have not arrived from the previous leader, at its branch. It keeps the checkout
// taken until release is called.
func (c *Controller) haveFolder(ctx context.Context, id string) (release func(), err error) {
	away, repo, how, comes := "", "", howRun{}, "is back"
	if err := c.loop.View(ctx, func(t *team.Team) {
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
			return nil, worktree.RefuseRun(id,
				fmt.Sprintf("its folder has not arrived from %s. The task goes on when %s %s; `fairlead drop %s` ends it, so that you can give it anew", away, away, comes, id))
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
	if _, refused := errors.AsType[*table.Refusal](err); refused {
		return nil, worktree.RefuseRun(id,
			fmt.Sprintf("its checkout has not arrived from %s, and its branch %s is not here. The run goes on when %s %s; after `git branch %s COMMIT`, the same command begins its checkout at that commit", away, how.WorktreeBranch, away, comes, how.WorktreeBranch))
	}
	return nil, err
}
