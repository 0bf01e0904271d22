package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// The clone of a run. A run that asks for a worktree works in its own clone and on its own branch, while its folder
// (.agents/runs/ID) stays in the repository. The clone has a git directory of its own, which its agents may write; the
// repository is not written by them. After each step Fairlead brings the branch into the repository, fast-forward only. When the
// run is done, the clone is removed and the branch stays.
//
// No uncommitted work is lost. Before anything is removed, every file of the checkout that its
// commit does not have is kept in a commit under refs/fairlead/runs/ID: changed, staged, untracked
// and ignored files, with their bytes on disk. To see it: git show --stat refs/fairlead/runs/ID. To
// restore it: git worktree add --detach PATH REF. An ignored file does not belong in the history,
// but may still be needed. Other branches, tags and stashes of the clone are kept under refs/fairlead/clones/ID. If something
// cannot be kept completely (a submodule, a repository inside, an unfinished merge, more than a gigabyte), the checkout stays,
// with a message. Not kept are empty folders, permissions other than "executable", and commits that the agent amended away,
// which are only in the reflog of the checkout.

const (
	KeptRefs       = "refs/fairlead/runs/"   // hidden: not a branch, not pushed, and never garbage-collected
	cloneRefs      = "refs/fairlead/clones/" // the same for other refs of a run's clone
	BranchPrefix   = "fairlead/"
	WorktreesDir   = "worktrees"
	refBytesMax    = 256      // of a given name; a longer one is invalid
	LeavingSuffix  = ".leave" // its checkout was moved aside and may have to be restored
	GoneSuffix     = ".gone"  // everything of it is kept; it only has to be deleted
	MakingSuffix   = ".make"  // it is being restored and not complete; it has no changes of its own
	WorktreeIgnore = "# checkouts of fairlead's runs: nothing here belongs into the repository\n*\n"
)

// RefuseWorktree is the refusal of a run's worktree, with its reason.
func RefuseWorktree(id, reason string) error { return RefuseRun(id, "--git-worktree: "+reason) }

// BranchOf is the branch of a run's worktree, unless another one was named.
func BranchOf(id string) string { return BranchPrefix + id }

// NamesFor checks the names of a run's commit and branch before anything is created. Without a ref it is HEAD, and without a name
// the branch is named after the run.
func (g Git) NamesFor(ctx context.Context, id, prefix, ref, name string) (from, branch string, err error) {
	no := func(format string, args ...any) error { return RefuseWorktree(id, fmt.Sprintf(format, args...)) }
	ref = cmp.Or(ref, "HEAD")
	branch = cmp.Or(name, BranchOf(id))
	for _, given := range []string{ref, branch} {
		if len(given) > refBytesMax || strings.HasPrefix(given, "-") ||
			strings.ContainsFunc(given, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return "", "", no("%q is no name of a branch or a commit", clip.Text(given, 64))
		}
	}
	for _, name := range []string{"refs/heads/" + branch, KeptRefs + id} {
		if _, err := g.Ask(ctx, "check-ref-format", name); GitHasNone(err) {
			return "", "", no("git accepts no ref named %s; choose another --git-worktree-branch or --run-id", name)
		} else if err != nil {
			return "", "", err
		}
	}
	from, err = g.Ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	from = strings.TrimSpace(from)
	if GitHasNone(err) {
		return "", "", no("%s is no commit here; commit something, or name one with --git-worktree-ref", ref)
	} else if err != nil {
		return "", "", err
	}
	if prefix != "." {
		if _, err := g.Ask(ctx, "cat-file", "-e", from+":"+filepath.ToSlash(prefix)); GitSaidNo(err) {
			return "", "", no("the folder %s is not in %s, so that a checkout would not have it; commit it", prefix, ref)
		} else if err != nil {
			return "", "", err
		}
	}
	if _, err := g.Ask(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+branch); err == nil {
		return "", "", no("there is a branch %s already; choose another with --git-worktree-branch", branch)
	} else if !GitHasNone(err) {
		return "", "", err
	}
	return from, branch, nil
}

// Aside returns the name of a checkout while it is being removed. No run's name begins with a dot.
func Aside(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}

// CheckoutsTaken are the checkouts that this process is creating or removing, by path. A run that
// resumes takes its checkout until that is journaled, so that it is not removed meanwhile.
var CheckoutsTaken = struct {
	sync.Mutex
	By map[string]chan struct{} // closed when it is free again
}{By: map[string]chan struct{}{}}

// TakeCheckout waits until the checkout is free. An empty path needs no wait.
func TakeCheckout(ctx context.Context, path string) (release func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	t := &CheckoutsTaken
	for {
		t.Lock()
		taken := t.By[path]
		if taken == nil {
			free := make(chan struct{})
			t.By[path] = free
			t.Unlock()
			return func() {
				t.Lock()
				defer t.Unlock()
				delete(t.By, path)
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

// WhereItWas returns the commit and branch of a removed checkout, and the ref with its files. If
// another program removed the checkout, only its branch is left.
func (w *Checkout) WhereItWas(ctx context.Context) (head, branch, kept string, err error) {
	text, err := w.Repo.Ask(ctx, "log", "-1", "--format=%B", w.Ref(), "--")
	if err == nil {
		head, branch = trailer(text, "Head"), strings.TrimPrefix(trailer(text, "Branch"), "refs/heads/")
		if head == "" {
			err = RefuseWorktree(w.Id, "its branch had no commit yet; `git worktree add --detach PATH "+w.Ref()+"` gives what it held")
		}
		return head, branch, w.Ref(), err
	}
	if GitSaidNo(err) {
		branch = w.Branch
		head, err = w.Repo.Ask(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
		head = strings.TrimSpace(head)
	}
	if GitSaidNo(err) {
		err = RefuseWorktree(w.Id,
			fmt.Sprintf("its checkout %s is gone, and there is neither %s nor a branch %s; begin a run of its own", w.Dir, w.Ref(), branch))
	}
	return head, branch, head, err
}

// Make makes the clone at a commit, and the branch in the repository: from then on no other run can have it.
func (w *Checkout) Make(ctx context.Context, from string) error {
	clone := w.Clone()
	if err := clone.Make(ctx, Start{Branch: w.Branch, Head: from}); err != nil {
		return err
	}
	err := clone.update(ctx, fmt.Sprintf("create refs/heads/%s %s\nupdate %sbrought %s", w.Branch, from, clone.Refs, from))
	if err != nil {
		err = errors.Join(err, os.RemoveAll(w.Dir))
	}
	return err
}

// Drop undoes Make, unless something was written into the clone or the branch has moved since.
func (w *Checkout) Drop(ctx context.Context) error {
	clone := w.Clone()
	from, err := clone.ask(ctx, "rev-parse", "--verify", clone.Refs+"brought")
	if err != nil {
		return err
	}
	files, err := WalkTree(ctx, w.Dir)
	if err != nil {
		return err
	}
	has, err := clone.filesOf(ctx, from)
	if err != nil {
		return err
	}
	gone, there, err := w.beyond(ctx, has, files)
	if err != nil {
		return err
	}
	if len(gone)+len(there) > 0 {
		return fmt.Errorf("%s stays: files in it have changed", w.Dir)
	}
	if err := os.RemoveAll(w.Dir); err != nil {
		return err
	}
	return clone.update(ctx, fmt.Sprintf("delete refs/heads/%s %s\ndelete %sbrought", w.Branch, from, clone.Refs))
}

// Revive makes the clone again with everything that was kept of it: on the branch that it was on, with its other refs.
func (w *Checkout) Revive(ctx context.Context) (from string, err error) {
	head, branch, kept, err := w.WhereItWas(ctx)
	if err != nil {
		return "", err
	}
	clone := w.Clone()
	files, err := clone.ask(ctx, "rev-parse", "--verify", kept+"^{commit}")
	if err != nil {
		return "", err
	}
	others, err := clone.others(ctx)
	if err != nil {
		return "", err
	}
	own := "refs/heads/" + w.Branch
	at, err := clone.ask(ctx, "rev-parse", "--verify", "--quiet", own)
	if err != nil && !GitHasNone(err) {
		return "", err
	}
	if others[own] == "" && at != "" {
		others[own] = at
	}
	delete(others, "refs/heads/"+branch)
	return kept, clone.Make(ctx, Start{Branch: branch, Head: head, Files: files, Others: others})
}

// trailer returns the value of a trailer line in a commit message.
func trailer(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// RefuseRun is the refusal to start a run, with its reason.
func RefuseRun(id, reason string) error {
	return &table.Refusal{Subject: "run " + id, Event: "run_asked", State: "asked", Row: "W1", Reason: reason}
}
