package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/worktree"
)

// replay applies the task's commits to a tip of the base branch, one after the other, in a clone that only
// Fairlead uses. It returns the last of the new commits. It returns none if a commit does not apply, or if the
// result is not the merged content: an agent may have resolved a conflict in a merge commit, which a replay leaves
// out.
func replay(ctx context.Context, t Task, tip, work, merged string) (commit string, err error) {
	from, err := t.ask(ctx, nil, "merge-base", tip, work)
	if err != nil {
		return "", err
	}
	in := worktree.Git{Dir: filepath.Join(t.Run, "rebase")}
	if err := os.RemoveAll(in.Dir); err != nil { // of a step that was killed
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(in.Dir)) }()
	if _, err := t.ask(ctx, nil, "clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--", t.Repo, in.Dir); err != nil {
		return "", err
	}
	if err := identify(ctx, t, in); err != nil {
		return "", err
	}
	git := func(feed string, args ...string) (string, error) {
		return in.Run(ctx, worktree.GitWorkMax, in.Inside(), writes(feed), args...)
	}
	if _, err := git("", "checkout", "--quiet", "--detach", work); err != nil {
		return "", err
	}
	if _, err := git("", "-c", "commit.gpgSign=false", "rebase", "--quiet", "--empty=drop", "--no-autosquash", "--onto", tip, from); worktree.GitSaidNo(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	message, err := git("", "log", "-1", "--format=%B")
	if err != nil {
		return "", err
	}
	if message, err = git(message, "interpret-trailers", "--trailer", "Task: "+t.ID); err != nil {
		return "", err
	}
	if _, err := git(message, "-c", "commit.gpgSign=false", "commit", "--quiet", "--amend", "--no-verify", "--file=-"); err != nil {
		return "", err
	}
	said, err := git("", "log", "-1", "--format=%H%x00%T", "-z")
	ids := worktree.Zeroed(said)
	if err != nil || len(ids) < 2 || ids[1] != merged {
		return "", err
	}
	_, err = t.ask(ctx, nil, "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--", in.Dir, "HEAD")
	return ids[0], err
}

// identify gives a clone the name and the address of the person. If git knows none, landing says so.
func identify(ctx context.Context, t Task, clone worktree.Git) error {
	for _, key := range []string{"user.name", "user.email"} {
		value, err := t.ask(ctx, nil, "config", key)
		if worktree.GitHasNone(err) {
			continue
		} else if err != nil {
			return err
		}
		if _, err := clone.AskIn(ctx, nil, "config", key, value); err != nil {
			return err
		}
	}
	return nil
}
