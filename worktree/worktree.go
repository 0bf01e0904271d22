package worktree

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/view"
)

// The git worktree of a run. A run that asks for one works in its own checkout and on its own
// branch, while its folder (.agents/runs/ID) stays in the repository. When the run is done, the
// checkout is removed and the branch stays.
//
// No uncommitted work is lost. Before anything is removed, every file of the checkout that its
// commit does not have is kept in a commit under refs/fairlead/runs/ID: changed, staged, untracked
// and ignored files, with their bytes on disk. To see it: git show --stat refs/fairlead/runs/ID. To
// restore it: git worktree add --detach PATH REF. An ignored file does not belong in the history,
// but may still be needed. If something cannot be kept completely (a submodule, a repository
// inside, an unfinished merge, more than a gigabyte), the checkout stays, with a message. Not kept
// are empty folders, permissions other than "executable", and commits that the agent amended away,
// which are only in the reflog of the checkout.

const (
	KeptRefs       = "refs/fairlead/runs/" // hidden: not a branch, not pushed, and never garbage-collected
	branchPrefix   = "fairlead/"
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
func BranchOf(id string) string { return branchPrefix + id }

// NamesFor checks the given names before anything is created: the commit of the checkout, and its
// branch.
func (g Git) NamesFor(ctx context.Context, id, prefix string, flags view.RunFlags) (from, branch string, err error) {
	no := func(format string, args ...any) error { return RefuseWorktree(id, fmt.Sprintf(format, args...)) }
	ref := cmp.Or(flags.WorktreeRef, "HEAD")
	branch = cmp.Or(flags.WorktreeBranch, BranchOf(id))
	for _, name := range []string{ref, branch} {
		if len(name) > refBytesMax || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return "", "", no("%q is no name of a branch or a commit", clip.Text(name, 64))
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
		branch = BranchOf(w.Id)
		head, err = w.Repo.Ask(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
		head = strings.TrimSpace(head)
	}
	if GitSaidNo(err) {
		err = RefuseWorktree(w.Id, fmt.Sprintf("its checkout %s is gone, and there is neither %s nor a branch %s; begin a run of its own", w.Git.Dir, w.Ref(), branch))
	}
	return head, branch, head, err
}

// AddAgain creates a checkout again, without its files. It is on its branch if the branch has not
// moved and no other checkout uses it.
func (g Git) AddAgain(ctx context.Context, path, branch, head string) (onBranch bool, err error) {
	now, err := g.Ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch)
	if err != nil && !GitHasNone(err) {
		return false, err
	}
	if strings.TrimSpace(now) == head && g.Worktree(ctx, "add", "--quiet", "--no-checkout", "--", path, branch) == nil {
		return true, nil
	}
	return false, g.Worktree(ctx, "add", "--quiet", "--no-checkout", "--detach", "--", path, head)
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
	return &machine.Refusal{Subject: "run " + id, Event: "run_asked", State: "asked", Row: "W1", Reason: reason}
}
