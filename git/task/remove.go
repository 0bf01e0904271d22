package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/removal"
)

// Remove removes the folder after its content is kept: the newest picture under the task's ref, which it returns,
// and other branches and stashes beside it. What cannot be kept stays.
func (t Task) Remove(ctx context.Context) (ref string, err error) {
	gone := worktree.Aside(t.Tree, worktree.GoneSuffix)
	for _, left := range []string{gone, worktree.Aside(t.Tree, worktree.MakingSuffix)} { // by a process that died
		if err := removal.Tree(left); err != nil {
			return "", err
		}
	}
	if _, err := os.Lstat(t.Tree); errors.Is(err, fs.ErrNotExist) {
		return t.Ref(), t.removeChecks()
	}
	if err := keep(ctx, t); err != nil {
		return "", fmt.Errorf("the folder %s stays, because its content could not be kept: %w", t.Tree, err)
	}
	if err := os.Rename(t.Tree, gone); err != nil { // half a folder would look as if its agent had deleted files
		return "", err
	}
	return t.Ref(), errors.Join(removal.Tree(gone), t.removeChecks())
}

// RemoveLanded removes the folder of a task that has landed, unless it has content that was not shown: then it stays.
func (t Task) RemoveLanded(ctx context.Context) (stays bool, err error) {
	if _, err := os.Lstat(t.Tree); errors.Is(err, fs.ErrNotExist) {
		return false, t.removeChecks() // a person has removed the folder
	}
	p, err := t.asAsked(ctx)
	if err != nil || p.Tree != t.Asked.Tree {
		return true, err
	}
	_, err = t.Remove(ctx)
	return err != nil, err
}

func keep(ctx context.Context, t Task) error {
	_, inner, others, err := t.picture(ctx)
	if err := cmp.Or(err, others); err != nil {
		return err
	}
	if len(inner) > 0 {
		return fmt.Errorf("there is a git repository inside, %q; move it elsewhere or delete it", inner[0])
	}
	twice, err := t.ask(ctx, nil, "for-each-ref", "--merged="+t.Ref(), "--format=delete %(refname)", moreRefs(t))
	if err != nil || twice == "" {
		return err
	}
	_, err = t.own().Run(ctx, worktree.GitWorkMax, nil, writes(twice+"\n"), "update-ref", "--stdin")
	return err
}

// keepOthers keeps the clone's other branches and its stashes. The clone has no copy of an object that was in the
// person's repository first, as one of an unfinished picture may be; without a ref git gc removes it there. What a ref has already is not
// fetched: at has the commits of those.
func (t Task) keepOthers(ctx context.Context, in *worktree.Inside, at map[string]string) error {
	var specs []string
	for name, commit := range in.Refs {
		to := moreRefs(t) + strings.TrimPrefix(name, "refs/")
		if name != in.On && at[to] != commit { // the one that HEAD is on is in the picture
			specs = append(specs, "+"+name+":"+to)
		}
	}
	older, err := worktree.Stashes(t.Tree)
	if err != nil {
		return err
	}
	for i, commit := range older {
		if to := fmt.Sprintf("%sstashes/%d", moreRefs(t), i+1); at[to] != commit {
			specs = append(specs, "+"+commit+":"+to)
		}
	}
	if len(specs) == 0 {
		return nil
	}
	return in.Fetch(ctx, specs...)
}
