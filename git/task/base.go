package task

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Bringing in the base. When a person sends a task back that conflicts with its base branch, Fairlead merges the newest commit of the
// branch into the folder before the agent's next round, and leaves the conflicts there. Git does that in a view, with a git directory of
// Fairlead's and the folder as its work tree. The objects, the index and MERGE_HEAD that it makes are then put into the clone. The
// merge is finished by a commit there, or by the next picture of the folder.

const (
	mergeName    = "merging.json" // what the newest merge has left
	mergeHead    = "MERGE_HEAD"   // in the clone: the commit that is merged
	mergeHeadMax = 4 << 10        // bytes of it; it has one commit
	conflictMax  = 64 << 20       // bytes of a file with conflicts that are read; of a larger one the end does not count
	toolsFolder  = ".claude"      // a folder in which no agent writes
)

// broughtIn is a merge of Fairlead's in the folder.
type broughtIn struct {
	Of    string     `json:"of"`   // the commit that is merged
	Into  string     `json:"into"` // what the folder had before
	Half  bool       `json:"half"` // files of the folder may have been changed, and the clone does not say so yet
	Files []conflict `json:"files"`
}

// conflict is a file with a conflict.
type conflict struct {
	Name []byte `json:"name"` // as git has it: it may be no text
	Was  string `json:"was"`  // a hash of what the file had when it was left
}

func (t Task) broughtIn() (b broughtIn, err error) {
	err = file.LoadJSON(filepath.Join(t.Run, mergeName), &b)
	if err == nil && b.Half {
		err = commits(b.Of, b.Into)
	}
	return b, err
}

func (t Task) keepBroughtIn(b broughtIn) error {
	return file.StoreJSON(filepath.Join(t.Run, mergeName), b)
}

// bring merges a commit of the person's repository into the folder, unless the folder has it already, or has conflicts that are not
// resolved. merged reports whether it did. conflicts are the files whose conflicts are not resolved now. If a person has to repair
// something first, the task goes on with the command then.
func (t Task) bring(ctx context.Context, commit, then string) (conflicts []string, merged bool, err error) {
	if err := t.Settle(ctx); err != nil {
		return nil, false, err
	}
	p, err := t.Snapshot(ctx) // what a merge changes is kept
	if err != nil {
		return nil, false, err
	}
	if err := t.addResolved(ctx, p.Commit); err != nil {
		return nil, false, err
	}
	has := t.reaches(ctx, p.Commit, commit)
	if conflicts, _, err = t.conflicts(ctx); err != nil || has || len(conflicts) > 0 {
		return conflicts, false, err
	}
	no := func(why error) ([]string, bool, error) {
		return nil, false,
			&Blocked{fmt.Sprintf("the newest %s cannot be merged into the folder %s: %v; repair that, then run `%s %s`", t.Base, t.Tree,
				why, then, t.ID)}
	}
	if of, err := openMerge(t); err != nil {
		return nil, false, err
	} else if err := worktree.Busy(filepath.Join(t.Tree, ".git")); err != nil && of == "" {
		return no(err)
	}
	if err := t.merging(ctx, p.Commit, commit, func(m merger) error {
		err := t.mergeIn(m, p.Commit, commit)
		if of, fault := openMerge(t); err != nil && of != commit {
			err = errors.Join(err, fault, t.undo(m))
		}
		return err
	}); err != nil {
		return no(err)
	}
	conflicts, _, err = t.conflicts(ctx)
	return conflicts, true, err
}

// Settle undoes what a process that was killed has merged into the folder, if the clone does not say yet that something is merged.
// What the folder had is kept.
func (t Task) Settle(ctx context.Context) error {
	b, err := t.broughtIn()
	if err != nil || !b.Half {
		return err
	}
	p, err := t.Snapshot(ctx)
	if err == nil && !t.reaches(ctx, p.Commit, b.Of) {
		err = t.merging(ctx, b.Into, b.Into, t.undo)
	}
	if err != nil {
		return fmt.Errorf("undo half a merge in the folder of task %s: %w", t.ID, err)
	}
	return t.keepBroughtIn(broughtIn{})
}

// undo gives the folder's files the content that they had before a merge.
func (t Task) undo(m merger) error {
	if _, err := m.git(nil, "reset", "--hard", "--quiet"); err != nil {
		return err
	}
	return t.keepBroughtIn(broughtIn{})
}

// reaches reports whether a commit of the repository is another one, or comes after it.
func (t Task) reaches(ctx context.Context, commit, earlier string) bool {
	_, err := t.ask(ctx, nil, "merge-base", "--is-ancestor", earlier, commit)
	return err == nil
}

// merger is git in a view, on the folder's files and with a git directory of Fairlead's.
type merger struct {
	*worktree.Inside
	ctx context.Context //nolint:containedctx // of one merge
}

// git returns what git prints, without the newline at the end.
func (m merger) git(feed func(io.Writer) error, args ...string) (string, error) {
	return m.FilesAs(m.ctx, byFairlead, feed, args...)
}

// dir is the git directory.
func (m merger) dir() string { return filepath.Join(m.Scratch, "git") }

// entries are those of the index.
func (m merger) entries() ([]worktree.Entry, error) {
	text, err := os.ReadFile(m.Index())
	if err != nil {
		return nil, err
	}
	return worktree.IndexEntries(text, len(m.Head)/2)
}

// merging does something with git on the folder's files. HEAD is at a commit, and the index has its files; the other commit is there, too.
func (t Task) merging(ctx context.Context, head, other string, do func(merger) error) (err error) {
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	in, err := t.clone().Open(ctx, true)
	if err != nil {
		return err
	}
	m := merger{in, ctx}
	defer func() { err = errors.Join(err, in.Close()) }()
	// What the person's repository has besides those: what was not committed in the folder, and what is on the forge.
	want, packs := []string{head, other, "^" + in.Head, "^refs/heads/" + t.Base}, filepath.Join(m.dir(), "objects", "pack")
	if err := os.MkdirAll(packs, 0o700); err != nil {
		return err
	}
	if _, err := t.own().Run(ctx, worktree.GitWorkMax, asStored, writes(strings.Join(want, "\n")+"\n"),
		"pack-objects", "--quiet", "--revs", filepath.Join(packs, "pack")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(m.dir(), "info", "exclude"), []byte(copyPatterns(t)), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"update-ref", "--no-deref", "HEAD", head}, {"read-tree", head}} {
		if _, err := m.git(nil, args...); err != nil {
			return err
		}
	}
	// it says no for a file that differs, which a merge refuses
	if _, err := m.git(nil, "update-index", "-q", "--refresh"); err != nil && !worktree.GitSaidNo(err) {
		return err
	}
	return do(m)
}

// mergeIn merges a commit into the folder, which has what `into` has.
func (t Task) mergeIn(m merger, into, commit string) error {
	if err := t.keepBroughtIn(broughtIn{Of: commit, Into: into, Half: true}); err != nil {
		return err
	}
	_, err := m.git(nil, "-c", "rerere.enabled=false", "merge", "--no-commit", "--no-ff", "--no-verify-signatures", "--no-stat", "--quiet",
		"--strategy=ort", commit)
	// 1: there are conflicts
	if _, missing := os.Lstat(filepath.Join(m.dir(), mergeHead)); missing != nil || err != nil && !worktree.GitHasNone(err) {
		return cmp.Or(err, missing)
	}
	return t.handIn(m, broughtIn{Of: commit, Into: into})
}

// handIn puts a merge that git has made into the clone.
func (t Task) handIn(m merger, b broughtIn) error {
	entries, err := m.entries()
	if err != nil {
		return err
	}
	var want []string
	for _, e := range entries {
		if e.Stage == 0 {
			continue
		}
		want = append(want, e.ID)
		if n := len(b.Files); n > 0 && string(b.Files[n-1].Name) == e.Name { // it has up to three entries
			continue
		}
		was, _, err := t.holds(e.Name, b.Of)
		if err != nil {
			return err
		}
		b.Files = append(b.Files, conflict{[]byte(e.Name), was})
	}
	// git writes it if there are conflicts: the files as they are in the folder
	tree, err := os.ReadFile(filepath.Join(m.dir(), "AUTO_MERGE"))
	if errors.Is(err, fs.ErrNotExist) {
		var said string
		said, err = m.git(nil, "write-tree")
		tree = []byte(said)
	}
	if err != nil {
		return err
	}
	want = append(want, strings.TrimSpace(string(tree)), "^"+m.Head+"^{tree}", "^"+b.Of+"^{tree}") // the clone has those
	pack, err := m.git(writes(strings.Join(want, "\n")+"\n"), "pack-objects", "--quiet", "--revs", filepath.Join(m.Scratch, "merge"))
	if err != nil {
		return err
	}
	if err := inGit(t, func(clone *os.Root) error {
		if err := m.putIndex(clone, pack); err != nil {
			return err
		}
		return putMerge(clone, t.Base, b.Of)
	}); err != nil {
		return err
	}
	return t.keepBroughtIn(b)
}

// inGit does something in the clone's git directory. No link leads out of the folder.
func inGit(t Task, do func(git *os.Root) error) error {
	folder, err := os.OpenRoot(t.Tree)
	if err != nil {
		return err
	}
	defer folder.Close()
	git, err := folder.OpenRoot(".git")
	if err != nil {
		return err
	}
	defer git.Close()
	return do(git)
}

// putIndex puts the index with which Fairlead works into the clone, after a pack with what it names.
func (m merger) putIndex(clone *os.Root, pack string) error {
	for _, end := range []string{".pack", ".idx"} { // git looks for the second
		if err := putIn(clone, filepath.Join(m.Scratch, "merge-"+pack+end), "objects/pack/pack-"+pack+end); err != nil {
			return err
		}
	}
	return putIn(clone, m.Index(), "index")
}

// putIn copies a file of Fairlead's own to a place in the clone's git directory.
func putIn(git *os.Root, from, to string) error {
	making := path.Dir(to) + "/fairlead.new"
	if err := errors.Join(git.MkdirAll(path.Dir(to), 0o755), git.RemoveAll(making)); err != nil {
		return err
	}
	if err := copyFile(os.DirFS(filepath.Dir(from)), filepath.Base(from), git, making, 0o644); err != nil {
		return err
	}
	return git.Rename(making, to)
}

// putMerge says in the clone's git directory that a commit is merged. The next commit there ends the merge.
func putMerge(git *os.Root, base, commit string) error {
	for _, one := range [][2]string{{"MERGE_MSG", "Merge branch '" + base + "'\n"}, {"MERGE_MODE", "no-ff"}, {mergeHead, commit + "\n"}} {
		if _, err := file.ReplaceIn(git, one[0], strings.NewReader(one[1]), 0o644, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// openMerge is the commit that is merged in the clone; empty: the clone is in the middle of no merge, or of one of several commits.
func openMerge(t Task) (string, error) {
	f, err := os.OpenFile(filepath.Join(t.Tree, ".git", mergeHead), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mergeHeadMax))
	id := strings.TrimSuffix(string(text), "\n")
	if err != nil || commits(id) != nil {
		return "", err
	}
	return id, nil
}

// merges is the commit of the base, or of the task's branch on the forge, that is merged in the clone and is not in its HEAD yet. Any
// program can write what names it, so it has to be in the repository. Empty: there is none.
func (t Task) merges(ctx context.Context, in *worktree.Inside) (string, error) {
	of, err := openMerge(t)
	if err != nil || of == "" {
		return "", err
	}
	if !slices.ContainsFunc([]string{"refs/heads/" + t.Base, remoteBaseRef(t), remoteRef(t)},
		func(ref string) bool { return t.reaches(ctx, ref, of) }) {
		return "", nil
	}
	if _, err := in.Files(ctx, nil, "merge-base", "--is-ancestor", of, in.Head); err == nil || !worktree.GitHasNone(err) {
		return "", nil //nolint:nilerr // the clone cannot merge what it does not have
	}
	return of, nil
}

// conflicts lists the files of the folder whose conflicts are not resolved: those that the clone's index names, and those that still have
// what a merge of Fairlead's has put between the two versions. A file that was changed since such a merge and has no such lines
// is resolved, whatever the index says; resolved lists the files that the index still calls conflicts.
func (t Task) conflicts(ctx context.Context) (names, resolved []string, err error) {
	unmerged, err := halfMerged(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	left, err := t.broughtIn()
	if err != nil {
		return nil, nil, err
	}
	of, err := openMerge(t)
	if err != nil {
		return nil, nil, err
	}
	open := map[string]bool{}
	for _, name := range unmerged {
		open[name] = true
	}
	for _, c := range left.Files {
		name := string(c.Name)
		now, marked, err := t.holds(name, left.Of)
		switch {
		case err != nil:
			return nil, nil, err
		case marked:
			open[name] = true
		case open[name] && of == left.Of && now != c.Was:
			delete(open, name)
			resolved = append(resolved, name)
		}
	}
	return slices.Sorted(maps.Keys(open)), resolved, nil
}

// addResolved makes the clone's index say which files are resolved, as `git add` does: a person who has edited one uses no git in the
// folder. The index is the agent's, so git gets what was read of it.
func (t Task) addResolved(ctx context.Context, work string) error {
	_, resolved, err := t.conflicts(ctx)
	if err != nil || len(resolved) == 0 {
		return err
	}
	text, err := worktree.ReadIndex(t.Tree)
	if err != nil {
		return err
	}
	entries, err := worktree.IndexEntries(text, len(work)/2)
	if err != nil {
		return err
	}
	is := map[string]bool{}
	for _, name := range resolved {
		is[name] = true
	}
	var known strings.Builder
	for _, e := range entries {
		if !is[e.Name] {
			fmt.Fprintf(&known, "%o %s %d\t%s\x00", e.Mode, e.ID, e.Stage, e.Name)
		}
	}
	return t.merging(ctx, work, work, func(m merger) error {
		for _, c := range []struct {
			feed string
			args []string
		}{
			{"", []string{"read-tree", "--empty"}},
			{known.String(), []string{"update-index", "-z", "--index-info"}},
			{strings.Join(resolved, "\x00") + "\x00", []string{"update-index", "--add", "--remove", "-z", "--stdin"}},
		} {
			if _, err := m.git(writes(c.feed), c.args...); err != nil {
				return err
			}
		}
		if _, err := m.git(nil, "update-index", "-q", "--refresh", "--unmerged"); err != nil && !worktree.GitSaidNo(err) {
			return err
		}
		entries, err := m.entries()
		if err != nil {
			return err
		}
		made := ""
		for _, e := range entries {
			if is[e.Name] {
				made += e.ID + "\n"
			}
		}
		pack, err := m.git(writes(made), "pack-objects", "--quiet", filepath.Join(m.Scratch, "merge"))
		if err != nil {
			return err
		}
		return inGit(t, func(clone *os.Root) error { return m.putIndex(clone, pack) })
	})
}

// holds is a hash of what a file of the folder has, empty if there is none. marked reports whether it has lines that a merge of the
// commit has put there.
func (t Task) holds(name, commit string) (hash string, marked bool, err error) {
	if !isFile(t.Tree, name) {
		return "", false, nil
	}
	at := filepath.Join(t.Tree, name)
	if target, err := os.Readlink(at); err == nil {
		return "link " + target, false, nil
	}
	f, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	sum := sha256.New()
	lines := bufio.NewReader(io.TeeReader(io.LimitReader(f, conflictMax), sum))
	for begins := true; ; { // of a long line only the beginning counts
		line, rest, err := lines.ReadLine()
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), marked, nil
		} else if err != nil {
			return "", false, err
		}
		marked = marked || begins && isMark(string(line), commit)
		begins = !rest
	}
}

// isMark reports whether a line is the last one of those with which git shows a conflict with a commit, however many signs it has.
func isMark(line, commit string) bool {
	last := strings.TrimLeft(line, ">")
	return last != line && strings.HasPrefix(last, " "+commit)
}

// waits says that a person has to resolve conflicts, and with which command the task goes on then. It is nil if none of the files is one
// that no agent may write.
func (t Task) waits(names []string, then string) error {
	if names = heldFiles(names); len(names) == 0 {
		return nil
	}
	return &Blocked{fmt.Sprintf("it conflicts with branch %s in %s, and no agent may write below %s. Edit it in %s until it has no line of the conflict, or delete it "+
		"(to keep it as it is, run `git add` on it in `fairlead shell %s`); then run `%s %s`", t.Base, someOf(names), toolsFolder, t.Tree,
		t.ID, then, t.ID)}
}

// heldFiles are those of some files that no agent may write.
func heldFiles(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, toolsFolder) })
	})
}

// goesOn is the command with which a pull request goes on after a person has done what it asked for.
const goesOn = "fairlead merge"

// SendBack makes the folder ready for a round of the agent after a landing that failed: the newest commit of the base is merged into it,
// and conflicts are left there. It returns what the agent is told. The error is *Blocked if a person has to do something first; nothing was
// changed then.
func (t Task) SendBack(ctx context.Context, f Failure) (words string, err error) {
	words = "it conflicts with branch " + t.Base
	if f.Kind != state.FailedConflict {
		words = f.Sentence(t.Base)
	}
	if t.There() != nil { // the next step says so; when the folder is back, its agent brings the base in
		return words + ". " + fetches(t.Base, t.Base), t.Refresh(ctx)
	}
	tip, err := t.tip(ctx)
	if err != nil {
		return "", err
	}
	if err := t.Settle(ctx); err != nil {
		return "", err
	}
	p, err := t.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	_, err = t.merged(ctx, tip, p.Commit)
	if conflict, is := errors.AsType[*Conflict](err); is {
		err = t.byHand(conflict.Files)
	}
	if err != nil {
		return "", err
	}
	names, _, err := t.bring(ctx, tip, "fairlead request")
	return words + ". " + brought(t.Base, names), cmp.Or(err, t.waits(names, "fairlead request"))
}

// byHand says that only a person can resolve conflicts in these files. It is nil if none of them is one that no agent may write.
func (t Task) byHand(names []string) error {
	held := heldFiles(names)
	if len(held) == 0 {
		return nil
	}
	return &Blocked{fmt.Sprintf("it conflicts with branch %s in %s, and no agent may write below %s. Resolve it by hand: fairlead checkout %s",
		t.Base, someOf(held), toolsFolder, t.ID)}
}

// bringOver merges what a branch has on the forge into the folder, and says what the agent has to do.
func (t Task) bringOver(ctx context.Context, branch, ref string) (words string, err error) {
	if gone := t.There(); gone != nil {
		return fetches(branch, ref), nil //nolint:nilerr // the agent does it in a new folder
	}
	commit, err := t.ask(ctx, nil, "rev-parse", "--verify", ref+"^{commit}")
	if err != nil {
		return "", err
	}
	names, _, err := t.bring(ctx, commit, goesOn)
	return brought(branch, names), cmp.Or(err, t.waits(names, goesOn))
}

// fetches tells an agent to bring a branch into its folder. from is where it gets it.
func fetches(branch, from string) string {
	return fmt.Sprintf("Bring the newest %s into your branch: git fetch origin %s && git merge FETCH_HEAD; resolve the conflicts, and commit", branch, from)
}

// brought tells an agent that a branch was merged into its folder.
func brought(branch string, conflicts []string) string {
	if len(conflicts) == 0 {
		return fmt.Sprintf("Branch %s has been merged into your folder, and no conflict is left there", branch)
	}
	return fmt.Sprintf("Branch %s has been merged into your folder, and the conflicts are left in these files: %s. Resolve them, `git add` them, and commit",
		branch, someOf(conflicts))
}
