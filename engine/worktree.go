package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
)

// The git worktree of a run. A run that asks for one works in a checkout of its own, on a
// branch of its own, while its folder (.agents/runs/ID) stays in the repository. When the run
// is done the checkout is taken away and the branch stays.
//
// Nothing that was not committed goes with it. Before anything is removed, every file that the
// checkout holds beyond its commit is kept in a commit under refs/fairlead/runs/ID: changed,
// staged, untracked and ignored ones alike, with their bytes as they are on disk. To see it:
// git show --stat refs/fairlead/runs/ID. To have it back: git worktree add --detach PATH REF.
// That a file is ignored says that it does not belong into the history, not that nobody needs
// it. Whatever cannot be kept whole (a submodule, a repository inside, a merge half done, more
// than a gigabyte) leaves the checkout where it is, and says so. Not kept are empty folders and
// permissions beyond "executable", and what the agent itself took back (commits that it amended
// away live in the reflog of the checkout, which goes with it).

const (
	keptRefs       = "refs/fairlead/runs/" // hidden: no branch, not pushed, and never collected as garbage
	branchPrefix   = "fairlead/"
	worktreesDir   = "worktrees"
	refBytesMax    = 256      // of a name that is given; longer ones are no names
	leavingSuffix  = ".leave" // its checkout was moved aside, and may have to come back
	goneSuffix     = ".gone"  // everything of it is kept; only to be deleted
	makingSuffix   = ".make"  // it is coming back, and not whole yet; nothing in it is of itself
	worktreeIgnore = "# checkouts of fairlead's runs: nothing here belongs into the repository\n*\n"
)

// nameOfRun is what a run's name has to be to name a folder and a ref (as machine/workflow asks).
var nameOfRun = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,47}$`)

func refuseWorktree(id, reason string) error { return refuseRun(id, "--git-worktree: "+reason) }

// makeWorktree makes the checkout in which a run's steps work, and tells req where it is: of
// how, Worktree and (where nobody named another) Workdir. The error is a *machine.Refusal where
// the repository, the names or the place do not allow it; nothing was made then.
func (e *Engine) makeWorktree(ctx context.Context, req *runRequest, flags RunFlags) error {
	no := func(format string, args ...any) error { return refuseWorktree(req.id, fmt.Sprintf(format, args...)) }
	if !nameOfRun.MatchString(req.id) {
		return no("the run's name %q cannot name a folder; choose another --run-id", loop.CutText(req.id, 64))
	}
	g := git{req.repo}
	top, err := g.ask(ctx, "rev-parse", "--show-toplevel")
	if gitSaidNo(err) {
		return no("%s is in no git repository that has files checked out (%v); run `git init` there and commit, or leave --git-worktree out", req.repo, err)
	} else if err != nil {
		return err
	}
	prefix, err := filepath.Rel(strings.TrimSuffix(top, "\n"), req.repo)
	if err != nil || !filepath.IsLocal(prefix) {
		return no("%s is not below the repository %s", req.repo, strings.TrimSpace(top))
	}
	from, branch, err := g.namesFor(ctx, req.id, prefix, flags)
	if err != nil {
		return err
	}
	path, err := placeFor(req, flags)
	if err != nil {
		return err
	}
	if err := g.worktree(ctx, "add", "--quiet", "--no-track", "-b", branch, "--", path, from); err != nil {
		if gitSaidNo(err) {
			return no("the checkout %s cannot be made: %v", path, err)
		}
		return fmt.Errorf("make the worktree of run %s: %w", req.id, err)
	}
	req.how.Worktree, req.how.WorktreeKeep = path, flags.WorktreeKeep
	if !filepath.IsAbs(flags.Workdir) {
		req.how.Workdir = filepath.Join(path, prefix, flags.Workdir)
	}
	e.log.Info("the run has a worktree of its own", "run", req.id, "worktree", path, "branch", branch, "from", from)
	return nil
}

// namesFor checks the names that were given, before anything is made: the commit that the
// checkout is made from, and its branch.
func (g git) namesFor(ctx context.Context, id, prefix string, flags RunFlags) (from, branch string, err error) {
	no := func(format string, args ...any) error { return refuseWorktree(id, fmt.Sprintf(format, args...)) }
	ref := cmp.Or(flags.WorktreeRef, "HEAD")
	branch = cmp.Or(flags.WorktreeBranch, branchPrefix+id)
	for _, name := range []string{ref, branch} {
		if len(name) > refBytesMax || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return "", "", no("%q is no name of a branch or a commit", loop.CutText(name, 64))
		}
	}
	for _, name := range []string{"refs/heads/" + branch, keptRefs + id} {
		if _, err := g.ask(ctx, "check-ref-format", name); gitHasNone(err) {
			return "", "", no("git takes no ref of the name %s; choose another --git-worktree-branch or --run-id", name)
		} else if err != nil {
			return "", "", err
		}
	}
	from, err = g.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	from = strings.TrimSpace(from)
	if gitHasNone(err) {
		return "", "", no("%s is no commit here; commit something, or name one with --git-worktree-ref", ref)
	} else if err != nil {
		return "", "", err
	}
	if prefix != "." {
		if _, err := g.ask(ctx, "cat-file", "-e", from+":"+filepath.ToSlash(prefix)); gitSaidNo(err) {
			return "", "", no("the folder %s is not in %s, so that a checkout would not have it; commit it", prefix, ref)
		} else if err != nil {
			return "", "", err
		}
	}
	if _, err := g.ask(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+branch); err == nil {
		return "", "", no("there is a branch %s already; choose another with --git-worktree-branch", branch)
	} else if !gitHasNone(err) {
		return "", "", err
	}
	return from, branch, nil
}

// placeFor is where the checkout is made. What nobody named is below the repository, and a
// repository that brings links does not lead it elsewhere.
func placeFor(req *runRequest, flags RunFlags) (string, error) {
	root := flags.WorktreeRoot
	if root != "" && !filepath.IsAbs(root) {
		root = filepath.Join(req.repo, root)
	}
	if root == "" {
		root = filepath.Join(req.repo, ".agents", worktreesDir)
	}
	if err := os.MkdirAll(root, dirMode); err != nil {
		return "", fmt.Errorf("make the folder of worktrees: %w; name another with --git-worktree-root", err)
	}
	settled, err := settledDir(root)
	if err != nil {
		return "", err
	}
	if flags.WorktreeRoot == "" {
		if settled != root {
			return "", refuseWorktree(req.id, fmt.Sprintf("%s is a link to %s, and is not followed; remove it, or name a folder with --git-worktree-root", root, settled))
		}
		if err := leaveWord(filepath.Join(root, ".gitignore")); err != nil {
			return "", fmt.Errorf("keep worktrees out of the repository: %w", err)
		}
	}
	path := filepath.Join(settled, req.id)
	for _, place := range []string{path, aside(path, leavingSuffix), aside(path, goneSuffix)} {
		if _, err := os.Lstat(place); err == nil {
			return "", refuseWorktree(req.id, fmt.Sprintf("there is something at %s already; look whether anybody needs it (`git worktree list`), remove it with `git worktree remove`, or choose another --run-id", place))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look where the worktree is to be: %w", err)
		}
	}
	return path, nil
}

// leaveWord makes the .gitignore of the worktrees' folder, where there is none.
func leaveWord(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as public as the repository
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(worktreeIgnore)
	return errors.Join(err, f.Close())
}

// aside is the name beside a checkout that it has while it is being removed. No run's name
// begins with a dot.
func aside(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}

// workedOn is the folder that a run's steps work on: the repository, or in the run's own
// checkout the same folder. It is what wrappers are given as --repo and REPO_DIR.
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

// worktreeEnd is what became of a run's checkout.
type worktreeEnd struct {
	Ref     string // everything that it held was kept there by this call
	Removed bool
	Stays   string // why it was not removed, in words
}

// endWorktree takes a run's checkout away when the run is done, after everything in it was kept
// under a ref. That it could not be removed without a loss is no error, but an answer: Stays.
// It may be called again at any time, also after a crash in its midst.
func (e *Engine) endWorktree(ctx context.Context, id, repo string, how howRun) (end worktreeEnd, err error) {
	if how.Worktree == "" {
		return end, nil
	}
	if how.WorktreeKeep {
		end.Stays = "it was asked for with --git-worktree-keep"
		return end, nil
	}
	w := &checkout{id: id, repo: git{repo}, git: git{how.Worktree}}
	defer func() { err = wrapped("take the worktree of run "+id+" away", err) }()
	finished, err := w.settle(ctx)
	if err != nil {
		return end, err
	}
	if _, err := os.Lstat(how.Worktree); errors.Is(err, fs.ErrNotExist) {
		if end.Removed = true; finished {
			end.Ref = w.ref()
		}
		return end, nil // git is not asked: a start comes here for each run that is done
	}
	end.Ref, end.Stays, err = w.remove(ctx)
	end.Removed = err == nil && end.Stays == ""
	if end.Stays != "" {
		e.log.Warn("the worktree of the run stays, since not all of it could be kept; when nobody needs it, `git worktree remove --force` takes it away", "run", id, "worktree", how.Worktree, "why", end.Stays, "kept_as", end.Ref)
	}
	if end.Removed {
		e.log.Info("the worktree of the run is gone; its branch is there, and what was not committed is kept", "run", id, "worktree", how.Worktree, "kept_as", end.Ref)
	}
	return end, err
}

// retireWorktree is endWorktree for a run that was done when somebody looked, and may have gone
// on since.
func (e *Engine) retireWorktree(ctx context.Context, id, repo string, how howRun) (end worktreeEnd, err error) {
	release, err := takeCheckout(ctx, how.Worktree)
	if err != nil {
		return end, err
	}
	defer release()
	done := false
	if err := e.View(ctx, func(t *team.Team) { done = t.Runs[id] == nil || runIsDone(t.Runs[id]) }); err != nil || !done {
		return end, err
	}
	return e.endWorktree(ctx, id, repo, how)
}

// checkoutsTaken are the checkouts that are being made or taken away, by path. It is the process's, as
// the folders are: whoever has a run go on takes its checkout until that is journaled, so that
// it is not taken away under the run that begins.
var checkoutsTaken = struct {
	sync.Mutex
	by map[string]chan struct{} // closed when it is free again
}{by: map[string]chan struct{}{}}

// takeCheckout waits until nobody else has a checkout. Without one (path is empty) there is
// nothing to wait for.
func takeCheckout(ctx context.Context, path string) (release func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	t := &checkoutsTaken
	for {
		t.Lock()
		taken := t.by[path]
		if taken == nil {
			free := make(chan struct{})
			t.by[path] = free
			t.Unlock()
			return func() {
				t.Lock()
				defer t.Unlock()
				delete(t.by, path)
				close(free)
			}, nil
		}
		t.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// dropWorktree takes back what makeWorktree made, for a run that was refused after all. What
// has been written there since stays, and so does a branch that has moved.
func (e *Engine) dropWorktree(ctx context.Context, req *runRequest) error {
	if req.how.Worktree == "" {
		return nil
	}
	g := git{req.how.Worktree}
	branch, err := g.askIn(ctx, nil, "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		return fmt.Errorf("take the worktree of run %s back: %w", req.id, err)
	}
	head, err := g.askIn(ctx, nil, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return fmt.Errorf("take the worktree of run %s back: %w", req.id, err)
	}
	repo := git{req.repo}
	if err := repo.worktree(ctx, "remove", "--", req.how.Worktree); err != nil {
		return fmt.Errorf("take the worktree of run %s back: %w", req.id, err)
	}
	_, err = repo.ask(ctx, "update-ref", "-d", strings.TrimSpace(branch), strings.TrimSpace(head))
	return err
}

// reviveWorktree has a run's checkout there again, for a run that goes on after it was taken
// away: on its branch where that is free and where it was, else apart from all branches, with
// everything that was kept. What was staged comes back unstaged.
func (e *Engine) reviveWorktree(ctx context.Context, id, repo string, how howRun) (err error) {
	if how.Worktree == "" {
		return nil
	}
	defer func() { err = wrapped("have the worktree of run "+id+" again", err) }()
	w := &checkout{id: id, repo: git{repo}, git: git{how.Worktree}}
	if _, err := w.settle(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(how.Worktree); !errors.Is(err, fs.ErrNotExist) {
		return err // it is there
	}
	head, branch, kept, err := w.whereItWas(ctx)
	if err != nil {
		return err
	}
	made := git{aside(how.Worktree, makingSuffix)}
	for _, old := range []string{how.Worktree, made.dir} { // one that was deleted by hand, and one that a crash left half made
		if err := w.repo.worktree(ctx, "remove", "--force", "--", old); err != nil && !gitSaidNo(err) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(how.Worktree), dirMode); err != nil {
		return err
	}
	onBranch, err := w.repo.addAgain(ctx, made.dir, branch, head)
	if err != nil {
		return err
	}
	for _, args := range [][]string{ // the index is the commit's; the files are those that were kept
		{"reset", "--quiet", "--hard", head},
		{"restore", "--quiet", "--source=" + kept, "--worktree", "--", "."},
	} {
		if _, err := made.run(ctx, gitWorkMax, made.inside(), nil, args...); err != nil {
			return err
		}
	}
	if err := w.repo.worktree(ctx, "move", "--", made.dir, how.Worktree); err != nil {
		return err
	}
	e.log.Info("the run has its worktree again, with what was kept of it", "run", id, "worktree", how.Worktree, "branch", branch, "on_branch", onBranch, "from", kept)
	return nil
}

// whereItWas says on which commit and branch a checkout was that is gone, and where its files
// are. Of one that somebody else took away nothing is kept: there is its branch.
func (w *checkout) whereItWas(ctx context.Context) (head, branch, kept string, err error) {
	text, err := w.repo.ask(ctx, "log", "-1", "--format=%B", w.ref(), "--")
	if err == nil {
		head, branch = trailer(text, "Head"), strings.TrimPrefix(trailer(text, "Branch"), "refs/heads/")
		if head == "" {
			err = refuseWorktree(w.id, "its branch had no commit yet; `git worktree add --detach PATH "+w.ref()+"` gives what it held")
		}
		return head, branch, w.ref(), err
	}
	if gitSaidNo(err) {
		branch = branchPrefix + w.id
		head, err = w.repo.ask(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
		head = strings.TrimSpace(head)
	}
	if gitSaidNo(err) {
		err = refuseWorktree(w.id, fmt.Sprintf("its checkout %s is gone, and there is neither %s nor a branch %s; begin a run of its own", w.git.dir, w.ref(), branch))
	}
	return head, branch, head, err
}

// addAgain makes a checkout, without its files yet, on a branch if it is where it was and
// nobody else has it checked out.
func (g git) addAgain(ctx context.Context, path, branch, head string) (onBranch bool, err error) {
	now, err := g.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch)
	if err != nil && !gitHasNone(err) {
		return false, err
	}
	if strings.TrimSpace(now) == head && g.worktree(ctx, "add", "--quiet", "--no-checkout", "--", path, branch) == nil {
		return true, nil
	}
	return false, g.worktree(ctx, "add", "--quiet", "--no-checkout", "--detach", "--", path, head)
}

// trailer finds what a line of a commit's text says.
func trailer(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
