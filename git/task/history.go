package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// snapshotsMax is how many snapshots of a task are kept: several hours of work at one every five minutes.
const snapshotsMax = 50

// Kept is a snapshot of a task's folder. It is kept under refs/fairlead/tasks/ID.N.
type Kept struct {
	N      int
	Commit string
	At     time.Time

	tree    string
	parents []string // a second one if a merge was not finished
	loose   bool     // Fairlead made the commit from uncommitted files
}

// Snapshots lists the snapshots of a task, the oldest first.
func (t Task) Snapshots(ctx context.Context) ([]Kept, error) {
	all, _, err := t.keptRefs(ctx)
	return all, err
}

// keptRefs are the snapshots of a task, and the commits of all refs that keep something of its folder.
func (t Task) keptRefs(ctx context.Context) (all []Kept, at map[string]string, err error) {
	text, err := t.ask(ctx, nil, "for-each-ref",
		"--format=%(refname) %(objectname) %(tree) %(committerdate:unix) %(committeremail) %(parent)", t.Ref(), t.Ref()+".*", moreRefs(t))
	if err != nil {
		return nil, nil, err
	}
	at = map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 1 {
			at[words[0]] = words[1]
		}
		if k, ok := keptOf(t, words); ok {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return cmp.Compare(a.N, b.N) })
	return all, at, nil
}

func keptOf(t Task, words []string) (k Kept, ok bool) {
	if len(words) < 5 {
		return k, false
	}
	var err error
	if k.N, err = strconv.Atoi(strings.TrimPrefix(words[0], t.Ref()+".")); err != nil {
		return k, false // what was shown
	}
	seconds, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		return k, false
	}
	k.Commit, k.tree, k.At = words[1], words[2], time.Unix(seconds, 0)
	k.parents = words[5:]
	k.loose = words[4] == "<"+fairleadEmail+">" && len(k.parents) > 0
	return k, true
}

// keepPicture gives a picture a number of its own, unless it is what was kept last. It forgets the oldest ones beyond the
// limit.
func keepPicture(ctx context.Context, t Task, p Picture, all []Kept) error {
	next := 1
	if len(all) > 0 {
		last := all[len(all)-1]
		if last.Commit == p.Commit {
			return nil
		}
		next = last.N + 1
	}
	if err := t.setRef(ctx, t.Ref()+"."+strconv.Itoa(next), p.Commit); err != nil {
		return err
	}
	for _, old := range all[:max(0, len(all)+1-snapshotsMax)] {
		if _, err := t.ask(ctx, nil, "update-ref", "-d", t.Ref()+"."+strconv.Itoa(old.N), old.Commit); err != nil {
			return err
		}
	}
	return nil
}

// Restore makes the task's folder again, from a snapshot by its number, or from the newest one for 0. Commits are on
// the branch, and what was not committed is not. It replaces no folder that has something in it.
func (t Task) Restore(ctx context.Context, at int) (k Kept, err error) {
	if err := mayRestore(ctx, t); err != nil {
		return k, err
	}
	all, err := t.Snapshots(ctx)
	if err != nil {
		return k, err
	}
	i := len(all) - 1
	if at > 0 {
		i = slices.IndexFunc(all, func(k Kept) bool { return k.N == at })
	}
	if i < 0 && at > 0 {
		return k, &Blocked{fmt.Sprintf("task %s has no snapshot %d; `fairlead task snapshots %s` lists them", t.ID, at, t.ID)}
	}
	if i >= 0 {
		k = all[i]
	} else if k.Commit, err = t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", t.Ref()+"^{commit}"); worktree.GitHasNone(err) {
		return k, &Blocked{fmt.Sprintf("nothing of task %s was kept", t.ID)}
	} else if err != nil {
		return k, err
	}
	head := k.Commit
	if k.loose {
		head = k.parents[0]
	}
	if err := os.Remove(setupFile(t)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := makeFolder(ctx, t, k.Commit, head); err != nil {
		return k, err
	}
	if k.loose && len(k.parents) > 1 {
		if err := inGit(t, func(git *os.Root) error { return putMerge(git, t.Base, k.parents[1]) }); err != nil {
			return k, err
		}
	}
	return k, os.WriteFile(filepath.Join(t.Run, preparedName), nil, 0o600) // the base branch is not brought in again
}

// mayRestore refuses if there is a folder with something in it.
func mayRestore(ctx context.Context, t Task) error {
	entries, err := os.ReadDir(t.Tree)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) == 0:
		return os.Remove(t.Tree)
	}
	if _, err := t.Snapshot(ctx); err != nil {
		return &Blocked{fmt.Sprintf("the folder %s has content that could not be kept (%v); move it to another place, and restore again",
			t.Tree, err)}
	}
	return &Blocked{fmt.Sprintf("the folder %s is there, and what it has is kept; to have an older snapshot, move the folder to another place, and restore again", t.Tree)}
}

// replay applies the task's commits to a tip of the base branch, one after the other, in a clone that only
// Fairlead uses. It returns the last of the new commits. It returns none if a commit does not apply, or if the
// result is not the merged content: an agent may have resolved a conflict in a merge commit, which a replay leaves
// out.
func replay(ctx context.Context, t Task, tip, work, merged string) (commit string, err error) {
	from, err := t.ask(ctx, nil, "merge-base", tip, work)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(t.Run, "rebase")
	if err := os.RemoveAll(dir); err != nil { // of a step that was killed
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in, err := worktree.Enter(ctx, worktree.Room{Repo: t.own(), Folder: dir, Write: true, Borrows: []string{t.Git}})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	git := func(feed string, args ...string) (string, error) { return in.Files(ctx, writes(feed), args...) }
	if _, err := git("", "checkout", "--quiet", "--detach", work); err != nil {
		return "", err
	}
	if _, err := git("", "rebase", "--quiet", "--empty=drop", "--no-autosquash", "--onto", tip, from); worktree.GitSaidNo(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	message, err := git("", "log", "-1", "--format=%B")
	if err != nil {
		return "", err
	}
	if message, err = git(message+"\n", "interpret-trailers", "--trailer", "Task: "+t.ID); err != nil {
		return "", err
	}
	if _, err := git(message+"\n", "commit", "--quiet", "--amend", "--no-verify", "--file=-"); err != nil {
		return "", err
	}
	said, err := git("", "log", "-1", "--format=%H%x00%T", "-z")
	ids := worktree.Zeroed(said)
	if err != nil || len(ids) < 2 || ids[1] != merged {
		return "", err
	}
	return ids[0], in.Fetch(ctx, "HEAD")
}
