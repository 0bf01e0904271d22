package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// Changed is the answer of Take if the checkout is not as it was sent. What arrived is under the ref.
type Changed struct{ Checkout, Ref, Why string }

func (c *Changed) Error() string {
	return fmt.Sprintf("%s has changed since it was sent (%s), so it stays as it is, and what came back is at %s; look with `git show --stat %s`, commit what is in the checkout, and run `git merge %s` there",
		c.Checkout, c.Why, c.Ref, c.Ref, c.Ref)
}

// Unpack makes the checkout below root if it is missing, or updates it: HEAD and branch as sent, the files of the snapshot, and
// what they have beyond HEAD uncommitted. Other content of it is kept first, but for the snapshot that the sender knows; empty: it
// knows none.
// An empty root becomes a repository.
func Unpack(ctx context.Context, root string, from io.Reader, s Sent, known string) error {
	if err := s.Valid(); err != nil {
		return err
	}
	repo, checkout := worktree.Git{Dir: root}, filepath.Join(root, filepath.FromSlash(s.Path))
	release, err := worktree.TakeCheckout(ctx, "carry "+checkout)
	if err != nil {
		return err
	}
	defer release()
	if err := begin(ctx, repo, len(s.Head)); err != nil {
		return err
	}
	names, err := read(ctx, repo, from, s, refOf(s.Run, "in"))
	if err != nil {
		return err
	}
	p, err := makePlace(ctx, repo, checkout, s)
	defer func() { p.close() }()
	if err != nil {
		return err
	}
	now, err := p.shoot(ctx, s.Run, names)
	if err != nil {
		return fmt.Errorf("read the files of %s: %w", checkout, err)
	}
	if now.commit != known && now.commit != s.Snapshot && !now.empty {
		if err := keep(ctx, repo, s.Run, now.commit); err != nil {
			return err
		}
	}
	var unmerged worktree.Stays // a conflict: the files have it, and are kept
	unstaged, err := p.keepStaged(ctx, s.Run, now)
	if err != nil && !errors.As(err, &unmerged) {
		return err
	}
	if !unstaged || !now.is(s) {
		if err := p.move(ctx, now, s); err != nil {
			return err
		}
	}
	for name := range worktree.HalfDone {
		if err := os.RemoveAll(filepath.Join(p.git, name)); err != nil {
			return err
		}
	}
	return nil
}

// Take stores what came back under the ref, and then moves the checkout from was to s. If it is not as it was,
// the error is a *Changed and the checkout stays.
func Take(ctx context.Context, repo worktree.Git, checkout string, from io.Reader, s, was Sent, ref string) error {
	if err := isOf(s, was, ref); err != nil {
		return err
	}
	release, err := worktree.TakeCheckout(ctx, "carry "+checkout)
	if err != nil {
		return err
	}
	defer release()
	if s == was {
		going, err := objects(ctx, repo, nil, refOf(s.Run, "going"))
		if err == nil && going[0] == "" { // nothing came back, and no update is half done
			_, err = ask(ctx, repo, "update-ref", ref, s.Snapshot)
			return err
		} else if err != nil {
			return err
		}
	}
	names, err := read(ctx, repo, from, s, ref)
	if err != nil {
		return err
	}
	changed := func(why string) error { return &Changed{checkout, ref, why} }
	p, err := find(ctx, repo, checkout)
	defer func() { p.close() }()
	if why, is := errors.AsType[worktree.Stays](err); is {
		return changed(why.Error())
	} else if errors.Is(err, fs.ErrNotExist) {
		return changed("it is gone")
	} else if err != nil {
		return err
	}
	merging, err := p.busy(ctx, s.Run)
	if why, is := errors.AsType[worktree.Stays](err); is {
		return changed(why.Error())
	} else if err != nil {
		return err
	}
	now, err := p.shoot(ctx, s.Run, names)
	if err != nil {
		return fmt.Errorf("read the files of %s: %w", checkout, err)
	}
	if why, err := p.moved(ctx, now, s, was); err != nil {
		return err
	} else if why != "" {
		return changed(why)
	}
	if _, err := p.keepStaged(ctx, s.Run, now); err != nil {
		if why, is := errors.AsType[worktree.Stays](err); is && !merging {
			return changed(why.Error())
		} else if !is {
			return err
		}
	}
	return p.move(ctx, now, s)
}

// isOf checks that what came back is what was sent.
func isOf(s, was Sent, ref string) error {
	if err := errors.Join(s.Valid(), was.Valid()); err != nil {
		return err
	}
	if s.Run != was.Run || s.Path != was.Path || !strings.HasPrefix(ref, "refs/fairlead/") {
		return fmt.Errorf("the checkout of %s at %s came back as that of %s at %s", was.Run, was.Path, s.Run, s.Path)
	}
	return nil
}

// Keep stores under the ref what came of a checkout, and moves no checkout. isNew is false, and there is no ref, if it is what
// came before.
func Keep(ctx context.Context, repo worktree.Git, from io.Reader, s, was Sent, ref string) (isNew bool, err error) {
	if err := isOf(s, was, ref); err != nil || s.Snapshot == was.Snapshot {
		return false, err
	}
	_, err = read(ctx, repo, from, s, ref)
	return err == nil, err
}

// KeepNew keeps a snapshot of a checkout that an update is about to replace, unless it is what arrived here last.
func KeepNew(ctx context.Context, repo worktree.Git, s Sent) error {
	in, err := objects(ctx, repo, nil, refOf(s.Run, "in"))
	if err != nil || in[0] == s.Snapshot {
		return err
	}
	return keep(ctx, repo, s.Run, s.Snapshot)
}

// moved says what a person has changed since the checkout was sent. If this update was begun and interrupted, a part of it may
// be done: then only other files count, and what is in the place of its own is kept first.
func (p place) moved(ctx context.Context, now *shot, s, was Sent) (why string, err error) {
	going, err := ask(ctx, p.repo, "rev-parse", "--verify", "--quiet", refOf(s.Run, "going"))
	if err != nil && !worktree.GitHasNone(err) {
		return "", err
	}
	begun := going == s.Snapshot
	switch {
	case now.is(s):
		return "", nil // it was taken before
	case now.head != was.Head && (!begun || now.head != s.Head):
		return "its HEAD is at " + now.head, nil
	case now.branch != was.Branch && (!begun || now.branch != s.Branch):
		return "it is on another branch", nil
	}
	if s.Branch != "" && s.Branch != was.Branch {
		tip, err := p.own(ctx, "rev-parse", "--verify", "--quiet", s.Branch)
		if err == nil && tip != s.Head {
			return "it came back on " + s.Branch + ", which is another branch here", nil
		} else if err != nil && !worktree.GitHasNone(err) {
			return "", err
		}
	}
	ours := map[string]bool{}
	if begun {
		names, err := p.differ(ctx, was.Snapshot, s.Snapshot)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			ours[name] = true
		}
	}
	names, err := p.differ(ctx, was.Snapshot, now.commit)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if !ours[name] {
			return fmt.Sprintf("%.80q", name), nil
		}
	}
	if len(names) == 0 || now.commit == s.Snapshot {
		return "", nil
	}
	return "", keep(ctx, p.repo, s.Run, now.commit)
}

func (p place) differ(ctx context.Context, a, b string) ([]string, error) {
	said, err := ask(ctx, p.repo, "diff-tree", "-r", "-z", "--name-only", "--no-renames", a, b)
	return worktree.Zeroed(said), err
}

// begin makes a repository of an empty folder.
func begin(ctx context.Context, repo worktree.Git, hashLength int) error {
	if _, err := os.Lstat(filepath.Join(repo.Dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		format := "sha1"
		if hashLength == 64 {
			format = "sha256"
		}
		_, err = repo.AskIn(ctx, nil, "init", "--quiet", "--template=", "--object-format="+format)
		return err
	}
	format, err := repo.AskIn(ctx, nil, "rev-parse", "--show-object-format")
	if worktree.GitSaidNo(err) { // a crash in the middle of it
		_, err = repo.AskIn(ctx, nil, "init", "--quiet", "--template=")
		return err
	}
	if err == nil && (strings.TrimSpace(format) == "sha256") != (hashLength == 64) {
		err = fmt.Errorf("the repository %s has hashes of %s, and the one that sent the checkout has others; use an empty folder, or a clone of that repository", repo.Dir, format)
	}
	return err
}

// makePlace finds the checkout, and makes a clone without files if it is missing.
func makePlace(ctx context.Context, repo worktree.Git, checkout string, s Sent) (p place, err error) {
	root, err := os.OpenRoot(repo.Dir)
	if err != nil {
		return p, err
	}
	defer root.Close()
	above, err := enter(root, path.Dir(s.Path), true)
	if err != nil {
		return p, fmt.Errorf("make the folder for the checkout of %s: %w", s.Run, err)
	}
	defer above.Close()
	if path.Dir(s.Path) != "." { // as work/runs does it on the leader
		if f, err := above.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
			_, err = f.WriteString(worktree.WorktreeIgnore)
			if err = errors.Join(err, f.Close()); err != nil {
				return p, err
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return p, err
		}
	}
	info, err := os.Lstat(checkout)
	if err == nil && !info.IsDir() {
		return p, fmt.Errorf("%s is in the place of a checkout, and is no folder; move it away", checkout)
	}
	if err == nil {
		if p, err = find(ctx, repo, checkout); err == nil {
			if p.view.Head != "" {
				return p, nil
			}
			p.close()
		}
		inside, fault := os.ReadDir(checkout)
		if fault != nil || len(inside) > 1 || len(inside) == 1 && inside[0].Name() != ".git" {
			return p, errors.Join(fmt.Errorf("%s is in the place of a checkout; move it away: %w", checkout, err), fault)
		}
		if err := os.RemoveAll(checkout); err != nil { // a crash left it, without any file
			return p, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	if err := (worktree.Clone{Repo: repo, Dir: checkout}).Make(ctx, worktree.Start{Head: s.Head, Empty: true}); err != nil {
		return p, fmt.Errorf("make the checkout of %s: %w", s.Run, err)
	}
	return find(ctx, repo, checkout)
}

func keep(ctx context.Context, repo worktree.Git, run, commit string) error {
	_, err := ask(ctx, repo, "update-ref", leftRef(run, commit), commit)
	return err
}

// keepStaged keeps what is staged and not in the files. none: there is an index, and nothing is staged.
func (p place) keepStaged(ctx context.Context, run string, now *shot) (none bool, err error) {
	if _, err := os.Lstat(filepath.Join(p.git, "index")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	staged, err := p.clone().Staged(ctx, run, now.head)
	if err != nil || staged == "" {
		return err == nil, err
	}
	if tree, err := ask(ctx, p.repo, "rev-parse", staged+"^{tree}"); err != nil {
		return false, err
	} else if files, err := p.files(ctx, "", "write-tree"); err != nil || files == tree {
		return false, err
	}
	return false, keep(ctx, p.repo, run, staged)
}

// move puts the snapshot into the checkout. Git compares each file that it replaces with the index that was just made. A call
// that is interrupted is repeated.
func (p place) move(ctx context.Context, now *shot, s Sent) error {
	stays := now.head == s.Head && now.branch == s.Branch
	if !stays {
		if err := p.keepBranch(ctx, now, s); err != nil {
			return err
		}
		if err := p.bring(ctx, now.head, s.Head); err != nil {
			return err
		}
	}
	if _, err := ask(ctx, p.repo, "update-ref", refOf(s.Run, "going"), s.Snapshot); err != nil {
		return err
	}
	if _, err := p.files(ctx, "", "read-tree", "-m", "-u", now.commit, s.Snapshot); err != nil {
		return fmt.Errorf("write the files of %s: %w", p.top, err)
	}
	if !stays {
		if err := p.checkOut(ctx, s); err != nil {
			return err
		}
	}
	if err := p.putIndex(ctx, now, s.Head); err != nil {
		return err
	}
	_, err := ask(ctx, p.repo, "update-ref", "-d", refOf(s.Run, "going"))
	return err
}

// keepBranch keeps the commits that only the branch or HEAD has.
func (p place) keepBranch(ctx context.Context, now *shot, s Sent) error {
	for _, tip := range []string{s.Branch, "HEAD"} {
		if tip == "" {
			continue
		}
		old, err := p.own(ctx, "rev-parse", "--verify", "--quiet", tip+"^{commit}")
		if worktree.GitHasNone(err) || err == nil && old == s.Head {
			continue
		} else if err != nil {
			return err
		}
		_, err = p.own(ctx, "merge-base", "--is-ancestor", old, s.Head)
		if worktree.GitHasNone(err) {
			err = p.keepOf(ctx, s.Run, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bring gives the clone a commit, with all that the one that it is at does not have. The repository has got both.
func (p place) bring(ctx context.Context, at, commit string) error {
	_, err := p.view.OwnFrom(ctx, func(to io.Writer) error {
		return p.repo.Pipe(ctx, worktree.GitWorkMax, worktree.AsStored, text(commit+"\n^"+at+"\n"), to, "pack-objects", "--quiet", "--revs",
			"--thin", "--stdout")
	}, "index-pack", "--stdin", "--fix-thin")
	return err
}

// checkOut moves HEAD and its branch, without files.
func (p place) checkOut(ctx context.Context, s Sent) error {
	why := "fairlead: what another host sent"
	if s.Branch == "" {
		_, err := p.own(ctx, "update-ref", "--no-deref", "-m", why, "HEAD", s.Head)
		return err
	}
	if _, err := p.own(ctx, "update-ref", "-m", why, s.Branch, s.Head); err != nil {
		return err
	}
	_, err := p.own(ctx, "symbolic-ref", "-m", why, "HEAD", s.Branch)
	return err
}

// putIndex gives the checkout an index of its commit, which knows the times of the files.
func (p place) putIndex(ctx context.Context, now *shot, head string) error {
	if _, err := p.files(ctx, "", "read-tree", "-m", head); err != nil {
		return err
	}
	if len(now.absent) > 0 {
		listed, err := p.files(ctx, "", "ls-files", "-z")
		if err != nil {
			return err
		}
		is, disk := map[string]bool{}, looker{top: p.top, dirs: map[string]bool{}}
		for _, name := range worktree.Zeroed(listed) {
			is[name] = true
		}
		var names strings.Builder
		for _, name := range now.absent {
			if there, _, _ := disk.look(name); is[name] && !there {
				names.WriteString(name + "\x00")
			}
		}
		if names.Len() > 0 {
			if _, err := p.files(ctx, names.String(), "update-index", "-z", "--skip-worktree", "--stdin"); err != nil {
				return err
			}
		}
	}
	content, err := os.ReadFile(p.view.Index())
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(p.git)
	if err != nil {
		return err
	}
	defer dir.Close()
	const made = "index.fairlead"
	if err := dir.WriteFile(made, content, 0o600); err != nil {
		return err
	}
	return dir.Rename(made, "index")
}

// Remove removes the checkout that Unpack made, and the refs of its transfers. s is what the leader has; other content
// is kept first, as by Unpack. Files that git ignores are not.
func Remove(ctx context.Context, root string, s Sent) error {
	if err := s.Valid(); err != nil {
		return err
	}
	if err := dropMark(root, s.Run); err != nil { // from now on the copy is not whole
		return err
	}
	repo, checkout := worktree.Git{Dir: root}, filepath.Join(root, filepath.FromSlash(s.Path))
	if _, err := os.Lstat(filepath.Join(root, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing ever arrived
	}
	release, err := worktree.TakeCheckout(ctx, "carry "+checkout)
	if err != nil {
		return err
	}
	defer release()
	whole := worktree.Checkout{Id: s.Run, Repo: repo, Dir: checkout}
	if _, err := whole.Settle(); err != nil { // a crash in the middle of it
		return err
	}
	if _, err := os.Lstat(checkout); err == nil {
		if err := putAside(ctx, repo, checkout, s); err != nil {
			return err
		}
		if _, err := whole.Settle(); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return Forget(ctx, repo, refOf(s.Run, ""))
}

// putAside keeps what only the checkout has, and gives it the name of one that only has to be deleted.
func putAside(ctx context.Context, repo worktree.Git, checkout string, s Sent) error {
	p, err := find(ctx, repo, checkout)
	defer func() { p.close() }()
	if err != nil {
		return err
	}
	now, err := p.shoot(ctx, s.Run, nil)
	if err != nil {
		return fmt.Errorf("read the files of %s: %w", checkout, err)
	}
	if now.commit != s.Snapshot {
		if err := keep(ctx, repo, s.Run, now.commit); err != nil {
			return err
		}
	}
	var unmerged worktree.Stays // a conflict: the files have it, and are kept
	if _, err := p.keepStaged(ctx, s.Run, now); err != nil && !errors.As(err, &unmerged) {
		return err
	}
	clone := p.clone()
	clone.Refs = leftRef(s.Run, "")
	if _, _, err := clone.Take(ctx); err != nil { // other branches
		return err
	}
	for _, has := range []string{s.Snapshot, now.commit} {
		if err := clone.Forget(ctx, has); err != nil {
			return err
		}
	}
	return os.Rename(checkout, worktree.Aside(checkout, worktree.GoneSuffix))
}

// Forget deletes all refs of Fairlead below a name.
func Forget(ctx context.Context, repo worktree.Git, below string) error {
	said, err := ask(ctx, repo, "for-each-ref", "--format=delete %(refname)", below)
	if err != nil || said == "" {
		return err
	}
	_, err = repo.Run(ctx, worktree.GitWorkMax, nil, text(said+"\n"), "update-ref", "--stdin")
	return err
}
