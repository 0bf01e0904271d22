package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// TookBack is how a landing was taken back. At most one of Moved and Revert is set; with neither, the branch has nothing of it any more.
type TookBack struct {
	Moved    string // the commit to which the branch was moved back
	Checkout string // the person's checkout that was moved with it; empty: none has the branch
	Revert   string // a commit that reverts the landing on top of the branch; no ref has it
	Because  string // why the branch was not moved: what has the landed commit, too
}

// TakeBack takes back what the task has landed with a commit. It moves the branch, and its clean checkout, only if the commit is the tip
// and nothing else has it. Otherwise it makes a commit that reverts it, and moves nothing. Asked is what the person had approved. The
// error is *Conflict if the revert conflicts with newer changes, and *Blocked if a person has to do something first.
func (t Task) TakeBack(ctx context.Context, commit string) (b TookBack, err error) {
	if err := commits(commit); err != nil {
		return b, err
	}
	release, err := t.queue()
	if err != nil {
		return b, err
	}
	defer release()
	if err := t.repair(ctx); err != nil {
		return b, err
	}
	on, err := t.landedOn(ctx, commit)
	if err != nil {
		return b, err
	}
	tip, err := t.tip(ctx)
	if err != nil {
		return b, err
	}
	switch {
	case !t.reaches(ctx, tip, commit): // a person has moved the branch back, or this was killed after that
		return b, t.noteTakenBack(commit, on)
	case tip != commit:
		b.Because = "branch " + t.Base + " has newer commits"
	default:
		if b.Because, err = t.heldBy(ctx, commit); err != nil {
			return b, err
		}
	}
	if b.Because == "" {
		place, moved, err := t.backward(ctx, tip, on)
		if err != nil {
			return b, err
		}
		if !moved {
			return b, &Blocked{fmt.Sprintf("branch %s has moved meanwhile; try again", t.Base)}
		}
		b.Checkout, b.Moved = place, on
		return b, t.noteTakenBack(commit, on)
	}
	tree, err := t.reverted(ctx, tip, commit, on)
	if err != nil {
		return b, err
	}
	now, err := t.treeOf(ctx, tip)
	if err != nil {
		return b, err
	}
	if now == tree {
		return b, t.noteTakenBack(commit, on)
	}
	b.Revert, err = t.commit(ctx, nil, tree, fmt.Sprintf("Take back: %s\n\nIt reverts %.12s of task %s.\n", t.Title(), commit, t.ID), tip)
	return b, err
}

// landedOn is the commit on which the task landed with a commit: its first parent, or with Rebase an earlier one. Any program can write
// the note of the landing, so the difference between the two has to be what was approved.
func (t Task) landedOn(ctx context.Context, commit string) (string, error) {
	var on []string
	if _, own, at := noted(t); own == commit && at != own && commits(at) == nil && t.reaches(ctx, own, at) {
		on = append(on, at)
	}
	parent, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", commit+"^")
	switch {
	case err == nil:
		on = append(on, parent)
	case !worktree.GitSaidNo(err):
		return "", err
	}
	for _, at := range on {
		tree, err := applied(ctx, t, at)
		if errors.As(err, new(*Again)) || errors.As(err, new(*Conflict)) || worktree.GitSaidNo(err) {
			continue
		} else if err != nil {
			return "", err
		}
		if is, err := t.treeOf(ctx, commit); err == nil && is == tree {
			return at, nil
		}
	}
	return "", &Blocked{fmt.Sprintf("it is not known on which commit of %s the commits of task %s begin; take them back with `git revert`, the last one is %.12s",
		t.Base, t.ID, commit)}
}

// takenBack is the first word of the note of a landing that was taken back. The task lands again when it is approved again, although the
// branch may still have the commit, with a revert behind it.
const takenBack = "taken-back"

// noteTakenBack notes that a landing was taken back.
func (t Task) noteTakenBack(commit, on string) error {
	return os.WriteFile(landingFile(t), fmt.Appendln(nil, takenBack, commit, on), 0o600)
}

// NoteTakenBack notes that a commit that reverts the landing with another one has landed.
func (t Task) NoteTakenBack(ctx context.Context, commit string) error {
	on, err := t.landedOn(ctx, commit)
	if err != nil {
		return err
	}
	return t.noteTakenBack(commit, on)
}

// heldBy says what has a commit besides the base branch, the task's own branch and its own refs; empty: nothing has.
func (t Task) heldBy(ctx context.Context, commit string) (string, error) {
	text, err := t.ask(ctx, nil, "for-each-ref", "--contains="+commit, "--format=%(refname)")
	if err != nil {
		return "", err
	}
	for name := range strings.Lines(text) {
		name = strings.TrimSpace(name)
		branch, isBranch := strings.CutPrefix(name, "refs/heads/")
		other, isTask := strings.CutPrefix(name, refs)
		switch {
		case isBranch && (branch == t.Base || branch == t.Branch), name == "refs/stash":
		case isBranch:
			return "branch " + branch + " has it, too", nil
		case isTask:
			if id, _, _ := strings.Cut(other, "."); id != t.ID {
				return "task " + id + " is based on it", nil
			}
		default:
			return strings.TrimPrefix(strings.TrimPrefix(name, "refs/remotes/"), "refs/") + " has it, too", nil
		}
	}
	list, err := t.ask(ctx, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", err
	}
	place, head := "", ""
	for _, line := range strings.Split(list, "\x00") {
		if at, is := strings.CutPrefix(line, "worktree "); is {
			place = at
		}
		if at, is := strings.CutPrefix(line, "HEAD "); is {
			head = at
		}
		if line == "detached" && t.reaches(ctx, head, commit) {
			return "the worktree " + place + " is on it, without a branch", nil
		}
	}
	return "", nil
}

// reverted is the content of a tip of the branch without the changes between two earlier commits.
func (t Task) reverted(ctx context.Context, tip, commit, on string) (tree string, err error) {
	var sides [2]string // with the landed content as their only common ancestor
	for i, of := range []string{tip, on} {
		tree, err := t.treeOf(ctx, of)
		if err != nil {
			return "", err
		}
		if sides[i], err = t.commit(ctx, byFairlead, tree, t.Title(), commit); err != nil {
			return "", err
		}
	}
	return t.merged(ctx, sides[0], sides[1])
}

// backward moves the base branch from its tip to an earlier commit, with its checkout, as a landing moves it to a later one.
func (t Task) backward(ctx context.Context, tip, commit string) (place string, moved bool, err error) {
	place, moved, err = t.forward(ctx, tip, commit)
	if no, is := errors.AsType[*NotLanded](err); is {
		err = &Blocked{strings.Replace(no.Error(), "then merge again", "then try again", 1)}
	}
	return place, moved, err
}

// MakeRevert makes the folder of a task whose content is there already: a commit that TakeBack has made. Nothing newer of the base is
// brought in before the task is shown.
func (t Task) MakeRevert(ctx context.Context, commit string) error {
	if err := free(t); err != nil {
		return err
	}
	if err := t.setRef(ctx, t.Ref(), commit); err != nil {
		return err
	}
	err := makeFolder(ctx, t, "", commit)
	if err == nil {
		err = os.WriteFile(filepath.Join(t.Run, preparedName), nil, 0o600)
	}
	if err != nil {
		_, fault := t.ask(context.WithoutCancel(ctx), nil, "update-ref", "-d", t.Ref())
		err = errors.Join(err, fault)
	}
	return err
}

// Reopen makes the folder of a task that has landed again, unless it is there, so that the task can be shown.
func (t Task) Reopen(ctx context.Context) error {
	if t.There() == nil {
		return nil
	}
	if _, err := t.Restore(ctx, 0); err != nil {
		return err
	}
	return copies(t, io.Discard, t.Tree)
}
