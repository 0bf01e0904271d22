package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// A task by hand: an ordinary worktree of the person's repository on the task's branch, whose commits become the task's. A note in the
// run's folder says where it is, and is written before the first change and removed after the last one. Each step looks what is done
// already, so a process that is killed between any two of them is followed by the same order once more.

const checkoutName = "checkout.json"

// HandCheckout is a worktree of the person's repository in which a person works on a task. Its zero value is none.
type HandCheckout struct {
	Dir    string `json:"dir"`
	Commit string `json:"commit"` // with which it began
	Half   bool   `json:"half"`   // it is being made: no person has worked there
	Taken  bool   `json:"taken"`  // the task has its commits, and what is left of it is to be removed
}

// ByHand is the checkout in which a person works on the task; zero: there is none.
func (t Task) ByHand() (c HandCheckout, err error) {
	err = file.LoadJSON(filepath.Join(t.Run, checkoutName), &c)
	return c, err
}

// byHandNow is ByHand as it is now: one that git has made to its end is whole, and one that the person has moved is where it is.
func (t Task) byHandNow(ctx context.Context) (c HandCheckout, err error) {
	if c, err = t.ByHand(); err != nil || c.Dir == "" {
		return c, err
	}
	at, err := t.ownWorktree(c.Dir)
	if err != nil {
		return c, err
	}
	if at != "" && c.Half {
		if _, err := os.Lstat(filepath.Join(at, "locked")); errors.Is(err, fs.ErrNotExist) { // git unlocks it last
			c.Half = false
			return c, t.keepByHand(c)
		}
		return c, nil
	}
	if at == "" && !c.Half {
		all, err := t.checkouts(ctx)
		if err != nil {
			return c, err
		}
		for _, other := range all {
			if other.on(t.Branch) {
				c.Dir = other.dir
				return c, t.keepByHand(c)
			}
		}
	}
	return c, nil
}

func (t Task) keepByHand(c HandCheckout) error {
	return file.StoreJSON(filepath.Join(t.Run, checkoutName), c)
}

// EndByHand forgets the checkout, which TakeByHand has removed.
func (t Task) EndByHand() error { return without(filepath.Join(t.Run, checkoutName)) }

// handBranch is the ref of the branch of the checkout.
func (t Task) handBranch() string { return "refs/heads/" + t.Branch }

// DefaultDir is where a person's checkout is made if the person names no folder: beside the repository.
func (t Task) DefaultDir() string { return t.Repo + "-" + t.ID }

// CheckOut makes a worktree of the person's repository for a person, on the task's branch, with what was shown, or else with the newest
// picture. Hooks and filters of git do not run. dir is absolute; empty: DefaultDir. yes is the hash of the governing files that the person
// has looked at. The error is *Blocked if it is another one, or if a person has to do something first.
func (t Task) CheckOut(ctx context.Context, dir, yes string) (c HandCheckout, err error) {
	was, err := t.byHandNow(ctx)
	if err != nil {
		return c, err
	}
	if was.Dir != "" && !was.Half {
		return c, &Blocked{"it is checked out in " + was.Dir + "; " + t.DoneWords()}
	}
	if was.Half {
		if err := t.clearHalf(ctx, was); err != nil {
			return c, err
		}
	}
	if c.Dir, err = t.placeByHand(dir); err != nil {
		return c, err
	}
	if c.Commit, err = t.commitByHand(ctx, yes); err != nil {
		return c, err
	}
	if now, err := t.refAt(ctx, t.handBranch()); err != nil {
		return c, err
	} else if now != "" {
		return c, &Blocked{fmt.Sprintf("the repository has a branch %s already; rename it (git branch -m), or delete it if you do not need it", t.Branch)}
	}
	env, err := t.withoutFilters(ctx)
	if err != nil {
		return c, err
	}
	c.Half = true
	if err := t.keepByHand(c); err != nil {
		return c, err
	}
	if _, err := t.ask(ctx, env, "worktree", "add", "--quiet", "--no-track", "-b", t.Branch, c.Dir, c.Commit); err != nil {
		err = fmt.Errorf("make a worktree of the repository for task %s: %w", t.ID, err)
		return HandCheckout{}, errors.Join(err, t.clearHalf(context.WithoutCancel(ctx), c))
	}
	c.Half = false
	return c, t.keepByHand(c)
}

// clearHalf removes a checkout that was not made to its end, and its branch.
func (t Task) clearHalf(ctx context.Context, c HandCheckout) error {
	if at, err := t.ownWorktree(c.Dir); err != nil {
		return err
	} else if at != "" {
		if _, err := t.ask(ctx, nil, "worktree", "remove", "--force", "--force", c.Dir); err != nil && !worktree.GitSaidNo(err) {
			return err
		}
		// git does not take one that it had not finished for a worktree
		if err := errors.Join(os.RemoveAll(c.Dir), os.RemoveAll(at)); err != nil {
			return err
		}
	}
	info, err := os.Lstat(c.Dir)
	if err == nil && info.IsDir() {
		err = os.Remove(c.Dir) // git may have made the folder, and nothing in it
	} else if err == nil {
		err = fs.ErrExist
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Blocked{"there is something at " + c.Dir + ", where a checkout was being made; look whether it is needed, and remove it"}
	}
	if err := t.dropUnfinished(c.Dir); err != nil {
		return err
	}
	if now, err := t.refAt(ctx, t.handBranch()); err != nil {
		return err
	} else if now == c.Commit {
		if _, err := t.ask(ctx, nil, "update-ref", "-d", t.handBranch(), c.Commit); err != nil {
			return err
		}
	}
	return t.EndByHand()
}

// worktreesOf are the git folders of worktrees of the repository that name a folder as theirs.
func (t Task) worktreesOf(dir string) (found []string, err error) {
	all, err := filepath.Glob(filepath.Join(literal(t.Git), "worktrees", "*"))
	for _, at := range all {
		text, err := os.ReadFile(filepath.Join(at, "gitdir"))
		if err == nil && writtenPath(at, string(text)) == filepath.Join(dir, ".git") {
			found = append(found, at)
		}
	}
	return found, err
}

// writtenPath is a path that git has written into a file of a folder.
func writtenPath(folder, path string) string {
	if path = strings.TrimSpace(path); !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	return filepath.Clean(path)
}

// dropUnfinished removes what git keeps of a worktree whose folder is not there.
func (t Task) dropUnfinished(dir string) error {
	all, err := t.worktreesOf(dir)
	for _, at := range all {
		err = errors.Join(err, os.RemoveAll(at))
	}
	return err
}

// ownWorktree is the git folder of the worktree in a folder; empty: it is no worktree of the repository.
func (t Task) ownWorktree(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, ".git"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	at, is := strings.CutPrefix(string(text), "gitdir: ")
	if at = writtenPath(dir, at); !is || filepath.Dir(at) != filepath.Join(t.Git, "worktrees") {
		return "", nil
	}
	return at, nil
}

// placeByHand is the folder for a checkout, with no links in its path.
func (t Task) placeByHand(dir string) (string, error) {
	if dir == "" {
		dir = t.DefaultDir()
	}
	if !filepath.IsAbs(dir) {
		return "", &Blocked{"the folder " + dir + " has no absolute path"}
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Blocked{"there is no folder " + filepath.Dir(dir) + "; make it, or name another one"}
	} else if err != nil {
		return "", err
	}
	dir = filepath.Join(above, filepath.Base(dir))
	for _, own := range []string{t.Repo, t.Git} {
		if in, err := filepath.Rel(own, dir); err == nil && filepath.IsLocal(in) {
			return "", &Blocked{fmt.Sprintf("%s lies in the repository %s; name a folder outside of it", dir, own)}
		}
	}
	if _, err := os.Lstat(dir); err == nil {
		return "", &Blocked{"there is something at " + dir + " already; name another folder: fairlead checkout " + t.ID + " DIR"}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return dir, nil
}

// commitByHand is the commit with which a checkout begins.
func (t Task) commitByHand(ctx context.Context, yes string) (string, error) {
	commit, base := t.Asked.Commit, t.Asked.From
	if commit == "" || !(Review{t}).Has(ctx, commit, base) { // nothing is asked, or another machine has shown it
		var err error
		if commit, err = t.refAt(ctx, t.Ref()); err != nil {
			return "", err
		}
		if base, err = t.Before(ctx, commit); err != nil {
			return "", err
		}
	}
	g, err := (Review{t}).governs(ctx, base, commit)
	if why := g.Wants(t.ID, yes); err == nil && why != "" {
		err = &Blocked{why}
	}
	return commit, err
}

// refAt is the commit of a ref; empty: there is no such ref.
func (t Task) refAt(ctx context.Context, ref string) (string, error) {
	commit, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if worktree.GitHasNone(err) {
		return "", nil
	}
	return commit, err
}

// withoutFilters turns off the programs through which the person's settings send files when git writes them: an agent has written what
// they would read.
func (t Task) withoutFilters(ctx context.Context) (env []string, err error) {
	return t.overridden(ctx, `^filter\..*\.(smudge|clean|process|required)$`, func(name string) string {
		if strings.HasSuffix(name, ".required") {
			return "false"
		}
		return ""
	})
}

// DoneWords say how a person's checkout ends.
func (t Task) DoneWords() string {
	return "`fairlead checkout " + t.ID + " --done` takes what you have committed there, and removes it"
}

// TakeByHand makes the commits of a person's checkout the task's: its folder gets them, and the worktree and its branch are removed. new
// reports whether there are any; then the task is to be checked and shown again. The note stays until EndByHand, so that after a death the
// order can be given again. The error is *Blocked if a person has to do something first; then nothing was changed.
func (t Task) TakeByHand(ctx context.Context) (c HandCheckout, newer bool, err error) {
	if c, err = t.byHandNow(ctx); err != nil {
		return c, false, err
	}
	switch {
	case c.Dir == "":
		return c, false, &Blocked{"it is checked out nowhere; `fairlead checkout " + t.ID + "` does that"}
	case c.Half:
		return c, false, t.clearHalf(ctx, c)
	}
	commit, err := t.committedByHand(ctx, c)
	if err != nil {
		return c, false, err
	}
	if commit == "" { // it was removed already
		return c, c.Taken, nil
	}
	newer = commit != c.Commit
	if newer {
		if err := t.takeCommit(ctx, c, commit); err != nil {
			return c, false, err
		}
	}
	c.Taken = true
	if err := t.keepByHand(c); err != nil {
		return c, false, err
	}
	return c, newer, t.removeByHand(ctx, c, commit)
}

// committedByHand is the newest commit of a person's checkout; empty: its branch is gone. The error is *Blocked if something there is not
// committed.
func (t Task) committedByHand(ctx context.Context, c HandCheckout) (string, error) {
	at, err := t.ownWorktree(c.Dir)
	if err != nil {
		return "", err
	}
	again := "then run `fairlead checkout " + t.ID + " --done`"
	if at != "" {
		in := checkout{c.Dir, at}
		for name, what := range worktree.HalfDone {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return "", &Blocked{fmt.Sprintf("%s is not finished in %s; commit it or end it there, %s", what, c.Dir, again)}
			}
		}
		if !in.on(t.Branch) {
			return "", &Blocked{fmt.Sprintf("%s is not on branch %s; bring your commits there (git checkout %[2]s, git merge), %s", c.Dir, t.Branch, again)}
		}
		said, err := worktree.Git{Dir: c.Dir}.AskIn(ctx, nil, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal",
			"--ignore-submodules=all")
		if err != nil {
			return "", err
		}
		if left := worktree.Zeroed(said); len(left) > 0 {
			return "", &Blocked{fmt.Sprintf("%s has changes that are not committed: %s; commit, move or remove them, %s", c.Dir, listed(left), again)}
		}
	}
	return t.refAt(ctx, t.handBranch())
}

// takeCommit brings a commit of a person's checkout into the task's folder.
func (t Task) takeCommit(ctx context.Context, c HandCheckout, commit string) error {
	if gone := t.There(); gone != nil {
		return &Blocked{gone.Error()}
	}
	if err := t.Settle(ctx); err != nil {
		return err
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	if t.reaches(ctx, p.Commit, commit) {
		return nil
	}
	if names, _, err := t.conflicts(ctx); err != nil {
		return err
	} else if len(names) > 0 {
		return &Blocked{fmt.Sprintf("the task's folder %s is in the middle of a merge: %s have conflicts; end it there first", t.Tree, someOf(names))}
	}
	if err := worktree.Busy(filepath.Join(t.Tree, ".git"), mergeHead); err != nil {
		return &Blocked{fmt.Sprintf("the task's folder %s cannot take it: %v; repair that first", t.Tree, err)}
	}
	began, err := withoutOwn(ctx, t, p, c.Commit)
	if err != nil {
		return err
	}
	was, err := t.treeOf(ctx, c.Commit)
	if err != nil {
		return err
	}
	if began.Tree != was && !t.reaches(ctx, commit, p.Commit) {
		return &Blocked{fmt.Sprintf("files in the task's folder %s were changed since it was checked out; take them first: git -C %s merge %s, then run `fairlead checkout %s --done`",
			t.Tree, c.Dir, t.Ref(), t.ID)}
	}
	base, err := t.tip(ctx)
	if err != nil {
		return err
	}
	if err := t.merging(ctx, p.Commit, commit, func(m merger) error { return t.forwardFolder(m, p.Commit, commit, base) }); err != nil {
		return fmt.Errorf("bring the commits of %s into the folder of task %s: %w", c.Dir, t.ID, err)
	}
	if p, err = t.Snapshot(ctx); err == nil && !t.reaches(ctx, p.Commit, commit) {
		err = fmt.Errorf("the folder of task %s does not have commit %.10s; nothing of %s was removed, run `fairlead checkout %[1]s --done` again",
			t.ID, commit, c.Dir)
	}
	return err
}

// forwardFolder gives the folder the files of a commit, and puts its clone on it. base is a commit that the clone has.
func (t Task) forwardFolder(m merger, into, commit, base string) error {
	half := broughtIn{Of: commit, Into: into, Half: true}
	if err := t.keepBroughtIn(half); err != nil {
		return err
	}
	if _, err := m.git(nil, "read-tree", "-m", "-u", into, commit); err != nil {
		return errors.Join(err, t.undo(m))
	}
	pack, err := m.git(writes(commit+"\n^"+m.Head+"\n^"+base+"\n"), "pack-objects", "--quiet", "--revs", filepath.Join(m.Scratch, "merge"))
	if err != nil {
		return err
	}
	if err := inGit(t, func(clone *os.Root) error {
		if err := m.putIndex(clone, pack); err != nil {
			return err
		}
		for _, one := range [][2]string{{t.handBranch(), commit}, {"HEAD", "ref: " + t.handBranch()}} {
			if _, err := file.ReplaceIn(clone, one[0], strings.NewReader(one[1]+"\n"), 0o644, 0o755); err != nil {
				return err
			}
		}
		for _, name := range []string{mergeHead, "MERGE_MSG", "MERGE_MODE"} { // a merge that was open is in the commit
			if err := clone.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return t.keepBroughtIn(broughtIn{})
}

// removeByHand removes a person's checkout and its branch, which is at a commit. Nothing there is uncommitted.
func (t Task) removeByHand(ctx context.Context, c HandCheckout, commit string) error {
	if at, err := t.ownWorktree(c.Dir); err != nil {
		return err
	} else if at != "" {
		if _, err := t.ask(ctx, nil, "worktree", "remove", c.Dir); worktree.GitSaidNo(err) {
			return &Blocked{fmt.Sprintf("the worktree %s stays: %v; repair that, then run `fairlead checkout %s --done`", c.Dir, err, t.ID)}
		} else if err != nil {
			return err
		}
	}
	if err := t.dropUnfinished(c.Dir); err != nil {
		return err
	}
	if now, err := t.refAt(ctx, t.handBranch()); err != nil || now == "" {
		return err
	}
	_, err := t.ask(ctx, nil, "update-ref", "-d", t.handBranch(), commit)
	return err
}

// DropByHand removes a person's checkout of a task that is dropped. The error is *Blocked if something there is not committed, or not the
// task's.
func (t Task) DropByHand(ctx context.Context) error {
	c, err := t.byHandNow(ctx)
	if err != nil || c.Dir == "" {
		return err
	}
	if c.Half {
		return t.clearHalf(ctx, c)
	}
	commit, err := t.committedByHand(ctx, c)
	if err != nil {
		return err
	}
	if commit != "" {
		if commit != c.Commit && !t.reaches(ctx, t.Ref(), commit) {
			return &Blocked{fmt.Sprintf("you have commits in %s that are not the task's: %s, or remove it yourself: git worktree remove %s, git branch -D %s",
				c.Dir, t.DoneWords(), c.Dir, t.Branch)}
		}
		if err := t.removeByHand(ctx, c, commit); err != nil {
			return err
		}
	}
	return t.EndByHand()
}
