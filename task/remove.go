package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/internal/lazy"
	"github.com/fairlead-dev/fairlead/worktree"
)

const (
	stashesMax  = 1000    // of one clone; more are no person's and no agent's work
	stashLogMax = 1 << 20 // bytes of git's list of them
)

// Remove removes the folder after its content is kept: the newest picture under the task's ref, which it returns,
// and other branches and stashes beside it. What cannot be kept stays.
func (t Task) Remove(ctx context.Context) (ref string, err error) {
	gone := worktree.Aside(t.Tree, worktree.GoneSuffix)
	for _, left := range []string{gone, worktree.Aside(t.Tree, worktree.MakingSuffix)} { // by a process that died
		if err := os.RemoveAll(left); err != nil {
			return "", err
		}
	}
	if _, err := os.Lstat(t.Tree); errors.Is(err, fs.ErrNotExist) {
		return t.Ref(), nil
	}
	if err := keep(ctx, t); err != nil {
		return "", fmt.Errorf("the folder %s stays, because its content could not be kept: %w", t.Tree, err)
	}
	if err := os.Rename(t.Tree, gone); err != nil { // half a folder would look as if its agent had deleted files
		return "", err
	}
	return t.Ref(), os.RemoveAll(gone)
}

// RemoveLanded removes the folder of a task that has landed, unless it has content that was not shown: then it stays.
func (t Task) RemoveLanded(ctx context.Context) (stays bool, err error) {
	if _, err := os.Lstat(t.Tree); errors.Is(err, fs.ErrNotExist) {
		return false, nil // a person has removed it
	}
	shown, err := t.shown(ctx)
	if err != nil {
		return true, err
	}
	p, err := t.Snapshot(ctx)
	if err != nil || p.Commit != shown && !t.alike(ctx, p.Commit, shown) {
		return true, err
	}
	_, err = t.Remove(ctx)
	return err != nil, err
}

func keep(ctx context.Context, t Task) error {
	if _, err := t.Snapshot(ctx); err != nil {
		return err
	}
	others, err := t.ask(ctx, t.folder(), "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for _, name := range worktree.Zeroed(others) {
		if strings.HasSuffix(name, "/") {
			return fmt.Errorf("there is a git repository inside, %q; move it elsewhere or delete it", name)
		}
	}
	if err := keepOthers(ctx, t); err != nil {
		return err
	}
	twice, err := t.ask(ctx, nil, "for-each-ref", "--merged="+t.Ref(), "--format=delete %(refname)", moreRefs(t))
	if err != nil || twice == "" {
		return err
	}
	_, err = t.own().Run(ctx, worktree.GitWorkMax, nil, writes(twice+"\n"), "update-ref", "--stdin")
	return err
}

// keepOthers keeps the clone's other branches and its stashes. The clone has no copy of an object that was in the
// person's repository first, as one of an unfinished picture may be; without a ref git gc removes it there.
func keepOthers(ctx context.Context, t Task) error {
	specs := []string{"+refs/*:" + moreRefs(t) + "*", "^refs/remotes/*"}
	older, err := stashes(t)
	if err != nil {
		return err
	}
	for i, commit := range older {
		specs = append(specs, fmt.Sprintf("+%s:%sstashes/%d", commit, moreRefs(t), i+1))
	}
	return t.fetch(ctx, specs...)
}

var stashed = lazy.Regexp(`^[0-9a-f]+ ([0-9a-f]{40}|[0-9a-f]{64}) `)

// stashes are the commits of all stashes but the newest, which is a ref. Git has them in a log only, and no git
// command runs in the clone, so the log is read here.
func stashes(t Task) (commits []string, err error) {
	file, err := os.OpenFile(filepath.Join(t.Tree, ".git", "logs", "refs", "stash"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, stashLogMax+1))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		if m := stashed().FindSubmatch(line); m != nil {
			commits = append(commits, string(m[1]))
		}
	}
	if len(text) > stashLogMax || len(commits) > stashesMax {
		return nil, fmt.Errorf("it has more than %d stashes", stashesMax)
	}
	return commits[:max(0, len(commits)-1)], nil
}
