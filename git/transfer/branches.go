package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// branchesRun is the name of all branches of a repository, in the place of the name of a run.
const branchesRun = "_branches"

// EngineRef has the branches of another engine host, and some files of its folder, as they were sent last. It is one commit that has the
// tips of the branches as parents, so they arrive all together or not at all.
func EngineRef(host string) string { return "refs/fairlead/engine/" + host }

// Branches makes a commit that has all branches of a repository: their tips as its parents, and their names in its text. It also
// has some files of the repository's folder as they are now. It is the same one each time, as long as nothing changes. ok is false if there
// is no branch.
func Branches(ctx context.Context, repo worktree.Git, files ...string) (s Sent, ok bool, err error) {
	said, err := ask(ctx, repo, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
	if err != nil || said == "" {
		return s, false, err
	}
	var tips []string
	for line := range strings.Lines(said) {
		if tip, _, _ := strings.Cut(line, " "); !slices.Contains(tips, tip) {
			tips = append(tips, tip)
		}
	}
	var list strings.Builder
	for _, name := range files {
		blob, err := ask(ctx, repo, "hash-object", "-w", "--no-filters", "--", name)
		if err != nil {
			return s, false, err
		}
		list.WriteString("100644 blob " + blob + "\t" + name + "\n")
	}
	commit, err := keepCommit(ctx, repo, refOf(branchesRun, "out"), list.String(), said, tips)
	return Sent{Run: branchesRun, Path: branchesRun, Head: commit, Snapshot: commit}, err == nil, err
}

// keepCommit makes a commit with some entries of mktree, a text and parents, and sets a ref to it. It is the same one each time for the
// same values.
func keepCommit(ctx context.Context, repo worktree.Git, ref, entries, said string, parents []string) (commit string, err error) {
	tree, err := repo.Run(ctx, worktree.GitWorkMax, nil, text(entries), "mktree")
	if err != nil {
		return "", err
	}
	commit, err = repo.CommitTree(ctx, unchanging(), said, strings.TrimSpace(tree), parents...)
	if err == nil {
		_, err = ask(ctx, repo, "update-ref", ref, commit)
	}
	return commit, err
}

// TakeBranches keeps the branches of another engine host, and moves none here.
func TakeBranches(ctx context.Context, repo worktree.Git, from io.Reader, s Sent, host string) error {
	if err := s.Valid(); err != nil {
		return err
	}
	if s.Run != branchesRun || s.Head != s.Snapshot || !runName().MatchString(host) {
		return errors.New("these are no branches of an engine host")
	}
	if err := begin(ctx, repo, len(s.Head)); err != nil {
		return err
	}
	_, err := read(ctx, repo, from, s, EngineRef(host))
	return err
}

// Forward moves each branch that is behind the branch of the same name on another engine host to the commit there, and creates missing
// branches. left names branches that stay although they lack commits from there, and what a person can do:
//   - a branch that also has other commits,
//   - a branch that is checked out in another folder, or where files are changed,
//   - a branch that a person has moved back or deleted since Forward moved it, if there are new commits on the other host. Without new
//     commits it stays, and is not named.
//
// With the names of some branches, Forward looks only at these.
func Forward(ctx context.Context, repo worktree.Git, host string, only ...string) (left []Left, err error) {
	said, err := ask(ctx, repo, "cat-file", "commit", EngineRef(host))
	if err != nil {
		if found, fault := objects(ctx, repo, nil, EngineRef(host)); fault == nil && found[0] == "" {
			return nil, nil // it has sent none
		}
		return nil, err
	}
	_, text, _ := strings.Cut(said, "\n\n")
	f := forwarding{repo: repo}
	if err := f.read(ctx, host); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for line := range strings.Lines(text) {
		tip, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		is := f.here[name]
		there[name] = true
		short, isOne := strings.CutPrefix(name, "refs/heads/")
		if !hash().MatchString(tip) || !isOne || len(only) > 0 && !slices.Contains(only, short) {
			continue
		}
		now, stays, err := f.one(ctx, name, tip)
		if err != nil {
			return left, err
		}
		if now != "" {
			f.brought[name] = now
		}
		if stays != "" {
			at := "stays at " + fmt.Sprintf("%.12s", is.tip)
			if is.tip == "" {
				at = "is not"
			}
			left = append(left, Left{short, fmt.Sprintf("branch %s is at %.12s on %s, and %s here: %s", short, tip, host, at, stays)})
		}
	}
	maps.DeleteFunc(f.brought, func(name, _ string) bool { return !there[name] })
	return left, f.write(ctx, host)
}

// Left is a branch that lacks commits of another engine host. Why also says what a person can do.
type Left struct{ Branch, Why string }

// forwarding moves branches to where those of another engine host are.
type forwarding struct {
	repo    worktree.Git
	top     string            // the folder of the repository
	here    map[string]branch // by name
	brought map[string]string // by name: the tip when the branch last had all commits from there
	was     string            // brought as a text, as it was read
}

// branch is one of the repository. at is the folder in which it is checked out.
type branch struct{ tip, at string }

// forwardedRef is a commit whose text is what Forward has brought of another engine host, and whose parents are those commits.
func forwardedRef(host string) string { return "refs/fairlead/forwarded/" + host }

func (f *forwarding) read(ctx context.Context, host string) (err error) {
	if f.top, err = ask(ctx, f.repo, "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if f.was, err = ask(ctx, f.repo, "for-each-ref", "--format=%(contents)", forwardedRef(host)); err != nil {
		return err
	}
	f.was, f.brought, f.here = strings.TrimSpace(f.was), map[string]string{}, map[string]branch{}
	for line := range strings.Lines(f.was) {
		tip, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		f.brought[name] = tip
	}
	said, err := ask(ctx, f.repo, "for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", "refs/heads")
	for line := range strings.Lines(said) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		is := branch{words[1], words[2]}
		if _, gone := os.Lstat(is.at); errors.Is(gone, fs.ErrNotExist) {
			is.at = ""
		}
		f.here[words[0]] = is
	}
	return err
}

func (f *forwarding) write(ctx context.Context, host string) error {
	var list strings.Builder
	var tips []string
	for _, name := range slices.Sorted(maps.Keys(f.brought)) {
		list.WriteString(f.brought[name] + " " + name + "\n")
		if !slices.Contains(tips, f.brought[name]) {
			tips = append(tips, f.brought[name])
		}
	}
	if strings.TrimSpace(list.String()) == f.was {
		return nil
	}
	_, err := keepCommit(ctx, f.repo, forwardedRef(host), "", list.String(), tips)
	return err
}

// has reports whether a commit has another one among those before it.
func (f *forwarding) has(ctx context.Context, commit, other string) (bool, error) {
	if commit == other {
		return true, nil
	}
	_, err := ask(ctx, f.repo, "merge-base", "--is-ancestor", other, commit)
	if worktree.GitHasNone(err) {
		return false, nil
	}
	return err == nil, err
}

// one moves one branch to a tip, or says why it stays. now is where it has all of the other one's; empty: it lacks some.
func (f *forwarding) one(ctx context.Context, name, tip string) (now, stays string, err error) {
	is, brought := f.here[name], f.brought[name]
	elsewhere := is.at != "" && !same(is.at, f.top)
	switch {
	case is.tip == tip:
		return tip, "", nil
	}
	if brought != "" {
		all, err := f.has(ctx, brought, tip)
		if err != nil || is.tip == "" && all {
			return "", "", err // it was deleted here
		}
		on := is.tip == ""
		if !on {
			on, err = f.has(ctx, is.tip, brought)
		}
		switch {
		case err != nil || !on && all:
			return "", "", err // a person has moved it back, and knows all of that one
		case !on:
			return "", "it was moved back here, and has new commits there; run `git merge " + tip +
				"` on it to have them, or move it back there, too", nil
		}
	}
	if is.tip == "" {
		return f.set(ctx, name, strings.Repeat("0", len(tip)), tip)
	}
	if ahead, err := f.has(ctx, is.tip, tip); err != nil {
		return "", "", err
	} else if ahead {
		return is.tip, "", nil
	}
	switch behind, err := f.has(ctx, tip, is.tip); {
	case err != nil:
		return "", "", err
	case !behind:
		return "", "it has commits that are not there; run `git merge " + tip + "` on it, or reset it", nil
	case elsewhere:
		return "", fmt.Sprintf("it is checked out in %s; run `git merge --ff-only %s` there", is.at, tip), nil
	case is.at == "":
		return f.set(ctx, name, is.tip, tip)
	}
	return f.merge(ctx, tip)
}

// set moves a branch that is not checked out.
func (f *forwarding) set(ctx context.Context, name, old, tip string) (now, stays string, err error) {
	_, err = ask(ctx, f.repo, "update-ref", "-m", "fairlead: as on the engine host that led before", name, tip, old)
	if worktree.GitSaidNo(err) { // such as a, because there is a/b here
		return "", fmt.Sprintf("git does not set it (%s)", err), nil
	}
	return tip, "", err
}

// merge moves the branch that is checked out in the folder of the repository.
func (f *forwarding) merge(ctx context.Context, tip string) (now, stays string, err error) {
	changed, err := ask(ctx, f.repo, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return "", "", err
	}
	if changed != "" {
		return "", "it is checked out, and files are changed; commit or stash them, and run `git merge --ff-only " + tip + "`", nil
	}
	if _, err := ask(ctx, f.repo, "merge", "--ff-only", "--quiet", tip); worktree.GitSaidNo(err) {
		return "", fmt.Sprintf("it is checked out, and git does not move it (%s)", err), nil
	} else if err != nil {
		return "", "", err
	}
	return tip, "", nil
}
