package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// A merge that is not finished in the leader's checkout stays open there while the files are on another host: it knows nothing of
// it, and resolves what is in the files.

const (
	mergeHead    = "MERGE_HEAD"
	mergeHeadMax = 4 << 10 // it has one commit
)

// merges is the one commit that is merged in the checkout; empty: there is none.
func (p place) merges() (string, error) {
	f, err := os.OpenFile(filepath.Join(p.git, mergeHead), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer f.Close()
	said, err := io.ReadAll(io.LimitReader(f, mergeHeadMax))
	commit := strings.TrimSuffix(string(said), "\n")
	if err != nil || !hash().MatchString(commit) {
		return "", err
	}
	return commit, nil
}

// noteMerge notes the merge with which a checkout is sent.
func (p place) noteMerge(ctx context.Context, run string) error {
	commit, err := p.merges()
	if err != nil || commit == "" {
		return err
	}
	if found, err := objects(ctx, p.repo, nil, commit+"^{commit}"); err != nil || found[0] == "" {
		return err // what the clone merges is not here
	}
	_, err = ask(ctx, p.repo, "update-ref", refOf(run, "merging"), commit)
	return err
}

// busy is an error if something is half done in the checkout, other than the merge with which it was sent. merges reports whether that is
// open.
func (p place) busy(ctx context.Context, run string) (merges bool, err error) {
	if err := worktree.Busy(p.git, mergeHead); err != nil {
		return false, err
	}
	commit, err := p.merges()
	if err != nil {
		return false, err
	}
	if commit != "" {
		was, err := objects(ctx, p.repo, nil, refOf(run, "merging"))
		if err != nil {
			return false, err
		}
		if merges = was[0] == commit; merges {
			return true, nil
		}
	}
	return false, worktree.Busy(p.git)
}
