package carry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/worktree"
)

// branchesRun is the name of all branches of a repository, in the place of the name of a run.
const branchesRun = "_branches"

// EngineRef is where the branches of another engine host are, and files of its folder as they were sent last. It is one commit, which has their tips as parents, so they arrive
// all together or not at all.
func EngineRef(host string) string { return "refs/fairlead/engine/" + host }

// Branches makes a commit that has all branches of a repository: their tips as its parents, and their names in its text. It also
// has some files of the repository's folder as they are now. It is the same one each time, as long as nothing changes. ok is false if there is no branch.
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
	tree, err := repo.Run(ctx, worktree.GitWorkMax, nil, func(to io.Writer) error {
		_, err := io.WriteString(to, list.String())
		return err
	}, "mktree")
	if err != nil {
		return s, false, err
	}
	commit, err := repo.CommitTree(ctx, []string{"GIT_AUTHOR_DATE=@0 +0000", "GIT_COMMITTER_DATE=@0 +0000"}, said, strings.TrimSpace(tree), tips...)
	if err == nil {
		_, err = ask(ctx, repo, "update-ref", refOf(branchesRun, "out"), commit)
	}
	return Sent{Run: branchesRun, Path: branchesRun, Head: commit, Snapshot: commit}, err == nil, err
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

// Forward moves each branch that is behind the one of another engine host to where that one is, and makes those that are missing. A
// branch that has other commits stays, and so does one that is checked out where something is changed: left names them. Those of other
// checkouts are moved with these. One that was made before, and is missing now, was deleted by a person, and is made again only when it
// has moved there.
func Forward(ctx context.Context, repo worktree.Git, host string) (left []string, err error) {
	said, err := ask(ctx, repo, "cat-file", "commit", EngineRef(host))
	if err != nil {
		if found, fault := objects(ctx, repo, nil, EngineRef(host)); fault == nil && found[0] == "" {
			return nil, nil // it has sent none
		}
		return nil, err
	}
	_, text, _ := strings.Cut(said, "\n\n")
	done := "refs/fairlead/forwarded/" + host
	before, err := ask(ctx, repo, "for-each-ref", "--format=%(contents)", done)
	if err != nil {
		return nil, err
	}
	top, err := ask(ctx, repo, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	said, err = ask(ctx, repo, "for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", "refs/heads")
	if err != nil {
		return nil, err
	}
	type branch struct{ tip, at string }
	here := map[string]branch{}
	for line := range strings.Lines(said) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		here[words[0]] = branch{words[1], words[2]}
	}
	whole := true // all branches are here
	for line := range strings.Lines(text) {
		tip, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		is, known := here[name]
		if !hash().MatchString(tip) || !strings.HasPrefix(name, "refs/heads/") || is.tip == tip || is.at != "" && !same(is.at, top) {
			continue
		}
		if !known && strings.Contains("\n"+before+"\n", "\n"+strings.TrimSpace(line)+"\n") {
			continue
		}
		stays, err := forward(ctx, repo, name, is.tip, tip, known, is.at != "")
		if err != nil {
			return left, err
		}
		if stays != "" {
			at := "stays at " + fmt.Sprintf("%.12s", is.tip)
			if !known {
				at, whole = "is not", false
			}
			left = append(left, fmt.Sprintf("branch %s is at %.12s on %s, and %s here: %s", strings.TrimPrefix(name, "refs/heads/"), tip, host, at, stays))
		}
	}
	if whole {
		_, err = ask(ctx, repo, "update-ref", done, EngineRef(host))
	}
	return left, err
}

// forward moves one branch, or says why it stays.
func forward(ctx context.Context, repo worktree.Git, name, old, tip string, known, checkedOut bool) (stays string, err error) {
	if !known {
		old = strings.Repeat("0", len(tip))
	}
	set := func() (stays string, err error) {
		_, err = ask(ctx, repo, "update-ref", "-m", "fairlead: as on the engine host that led before", name, tip, old)
		if worktree.GitSaidNo(err) { // such as a, because there is a/b here
			return fmt.Sprintf("git does not set it (%s)", err), nil
		}
		return "", err
	}
	if !known {
		return set()
	}
	ancestor := func(a, b string) (bool, error) {
		_, err := ask(ctx, repo, "merge-base", "--is-ancestor", a, b)
		if worktree.GitHasNone(err) {
			return false, nil
		}
		return err == nil, err
	}
	if ahead, err := ancestor(tip, old); err != nil || ahead {
		return "", err
	}
	if behind, err := ancestor(old, tip); err != nil {
		return "", err
	} else if !behind {
		return "it has commits that are not there; merge them, or reset it", nil
	}
	if !checkedOut {
		return set()
	}
	changed, err := ask(ctx, repo, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "it is checked out, and files are changed; commit or stash them, and run `git merge --ff-only " + tip + "`", nil
	}
	if _, err := ask(ctx, repo, "merge", "--ff-only", "--quiet", tip); worktree.GitSaidNo(err) {
		return fmt.Sprintf("it is checked out, and git does not move it (%s)", err), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}
