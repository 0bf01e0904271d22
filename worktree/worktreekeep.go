package worktree

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	keptBytesMax   = 1 << 30   // content that its commit does not have; more does not belong into a repository
	keptFilesMax   = 200_000   // two large folders of downloaded packages
	treeEntriesMax = 2_000_000 // files and folders of a checkout that is searched
	keptBy         = "Fairlead <fairlead@localhost>"
)

// Checkout is a run's worktree while it is removed.
//
// In this order: list every file; keep what its commit does not have under the ref; move the folder
// aside; check again that nothing was written meanwhile; then rename it as final and delete it. A
// crash before the final name restores the folder, and the removal starts over. A crash after it
// continues to delete. Neither needs stored state.
type Checkout struct {
	Id   string
	Repo Git
	Git  Git // in the checkout
}

// Stays is the reason why a checkout cannot be removed.
type Stays string

func (s Stays) Error() string { return string(s) }

// Ref is the hidden ref under which the worktree's content is kept.
func (w *Checkout) Ref() string { return KeptRefs + w.Id }

// Settle finishes what a crash has interrupted, and reports whether that was all.
func (w *Checkout) Settle(ctx context.Context) (finished bool, err error) {
	if _, err := os.Lstat(Aside(w.Git.Dir, GoneSuffix)); err == nil {
		if err := w.delete(ctx); err != nil {
			return false, err
		}
		finished = true
	}
	leaving := Aside(w.Git.Dir, LeavingSuffix)
	if _, err := os.Lstat(leaving); errors.Is(err, fs.ErrNotExist) {
		return finished, nil
	} else if err != nil {
		return false, err
	}
	if _, err := os.Lstat(w.Git.Dir); err == nil {
		return false, fmt.Errorf("there are both %s and %s; look which one is needed, and remove the other", leaving, w.Git.Dir)
	}
	return false, os.Rename(leaving, w.Git.Dir)
}

// Remove removes the worktree after its content was kept. ref is where; why is what prevented it.
func (w *Checkout) Remove(ctx context.Context) (ref, why string, err error) {
	var stay Stays
	defer func() {
		if errors.As(err, &stay) {
			why, err = string(stay), nil
		}
	}()
	if err := w.isOurs(ctx); err != nil {
		return "", "", err
	}
	before, err := WalkTree(ctx, w.Git.Dir)
	if err != nil {
		return "", "", err
	}
	if err := w.Keep(ctx, before); err != nil {
		return "", "", err
	}
	leaving := Aside(w.Git.Dir, LeavingSuffix)
	if err := os.Rename(w.Git.Dir, leaving); err != nil {
		return w.Ref(), "", err
	}
	after, err := WalkTree(ctx, leaving)
	if err == nil && !maps.Equal(before, after) {
		err = Stays("a file in it changed while it was saved: another process still works there")
	}
	if err == nil {
		err = os.Rename(leaving, Aside(w.Git.Dir, GoneSuffix))
	}
	if err != nil {
		if back := os.Rename(leaving, w.Git.Dir); back != nil {
			return w.Ref(), "", back // the next call restores it
		}
		return w.Ref(), "", err
	}
	return w.Ref(), "", w.delete(ctx)
}

// delete deletes a checkout of which everything is kept.
func (w *Checkout) delete(ctx context.Context) error {
	gone := Aside(w.Git.Dir, GoneSuffix)
	if _, err := os.Lstat(w.Git.Dir); errors.Is(err, fs.ErrNotExist) { // git forgets a worktree that does not exist
		if err := w.Repo.Worktree(ctx, "remove", "--force", "--", w.Git.Dir); err != nil && !GitSaidNo(err) {
			return err
		} // git has forgotten it already
	}
	if os.RemoveAll(gone) == nil {
		return nil
	}
	_ = filepath.WalkDir(gone, func(path string, d fs.DirEntry, err error) error { // caches of packages are read-only
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder is entered to be emptied
		}
		return err
	})
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("%w; everything in %s is kept under %s, so it can be deleted by hand", err, gone, w.Ref())
	}
	return nil
}

// isOurs checks that the folder is an idle worktree of this repository, and that a commit can hold
// all of it.
func (w *Checkout) isOurs(ctx context.Context) error {
	if info, err := os.Lstat(filepath.Join(w.Git.Dir, ".git")); err != nil || !info.Mode().IsRegular() {
		return Stays("it is no longer a worktree: its .git is not the file that git puts there")
	}
	said, err := w.Git.AskIn(ctx, nil, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "--git-dir")
	if err != nil {
		return stayWhere(err, "git does not take it for a worktree")
	}
	common, err := w.Repo.Ask(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	lines := strings.Split(said, "\n")
	if len(lines) < 3 || lines[0] != w.Git.Dir || lines[1] != strings.TrimSuffix(common, "\n") {
		return Stays("it is no longer a worktree of this repository")
	}
	if err := Busy(lines[2]); err != nil {
		return err
	}
	for name, what := range map[string]string{"modules": "it has submodules", "locked": "it is locked (`git worktree unlock`)"} {
		if _, err := os.Lstat(filepath.Join(lines[2], name)); err == nil {
			return Stays(what)
		}
	}
	return nil
}

// HalfDone are the files in a checkout's own git folder that say that something is half done in it.
var HalfDone = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "rebase-merge": "a rebase", "rebase-apply": "a rebase",
	"BISECT_LOG": "a bisection", "sequencer": "a series of picks", "index.lock": "a change of the index",
}

// Busy is an error if something is half done in a checkout, whose own git folder is given.
func Busy(gitDir string) error {
	for name, what := range HalfDone {
		if _, err := os.Lstat(filepath.Join(gitDir, name)); err == nil {
			return Stays(what + " is half done in it")
		}
	}
	return nil
}

func stayWhere(err error, why string) error {
	if GitSaidNo(err) {
		return Stays(why + " (" + err.Error() + ")")
	}
	return err
}

// fileSeen is the state of one file. Two equal states mean the same content, as far as a file system
// can tell.
type fileSeen struct {
	mode  fs.FileMode
	size  int64
	mtime int64 // ns
	inode uint64
}

// WalkTree lists everything in a checkout except its own .git. Folders are included, and links are
// not followed.
func WalkTree(ctx context.Context, root string) (map[string]fileSeen, error) {
	seen := map[string]fileSeen{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." || name == ".git" {
			return err
		}
		if strings.EqualFold(d.Name(), ".git") {
			return Stays("there is a repository or a submodule in it: " + filepath.Dir(name))
		}
		if len(seen) >= treeEntriesMax {
			return Stays(fmt.Sprintf("it has more than %d files", treeEntriesMax))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		file := fileSeen{mode: info.Mode()}
		if !d.IsDir() {
			file.size, file.mtime = info.Size(), info.ModTime().UnixNano()
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				file.inode = stat.Ino
			}
		}
		seen[name] = file
		return nil
	})
	return seen, err
}

// Keep creates the commit. Its first parent is the checkout's own commit, then the staged content
// if it differs, then what was kept before. Bytes are taken from disk without filters. git writes
// one pack, syncs it, and moves the ref at the end or not at all.
func (w *Checkout) Keep(ctx context.Context, files map[string]fileSeen) error {
	head, err := w.Git.AskIn(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil && !GitHasNone(err) {
		return err
	}
	head = strings.TrimSpace(head) // empty: a branch without a commit yet
	against := head
	if head == "" {
		if against, err = w.Git.AskIn(ctx, nil, "hash-object", "-t", "tree", os.DevNull); err != nil {
			return err
		}
		against = strings.TrimSpace(against)
	}
	gone, there, err := w.beyond(ctx, against, files)
	if err != nil {
		return err
	}
	staged, err := w.Staged(ctx, head, against)
	if err != nil {
		return err
	}
	before, err := w.Repo.Ask(ctx, "rev-parse", "--verify", "--quiet", w.Ref()+"^{commit}")
	if err != nil && !GitHasNone(err) {
		return err
	}
	branch, err := w.Git.AskIn(ctx, nil, "symbolic-ref", "--quiet", "HEAD")
	if err != nil && !GitHasNone(err) {
		return err
	}
	c := keptCommit{ref: w.Ref(), head: head, gone: gone, there: there, files: files, root: w.Git.Dir}
	for _, parent := range []string{staged, strings.TrimSpace(before)} {
		if parent != "" && parent != head {
			c.merge = append(c.merge, parent)
		}
	}
	c.text = fmt.Sprintf("What the worktree of run %s held beyond its commit\n\nHead: %s\nBranch: %s\nStaged: %s\n", w.Id, head, strings.TrimSpace(branch), staged)
	if _, err = w.Git.Run(ctx, GitWorkMax, w.Git.Inside(), c.write, "fast-import", "--quiet", "--done"); err != nil {
		return err
	}
	_, err = w.Repo.Ask(ctx, "rev-parse", "--verify", "--quiet", w.Ref()+"^{commit}")
	return err // the ref must exist before anything is removed
}

// beyond lists what a checkout's commit does not have: deleted files, changed ones and new ones.
func (w *Checkout) beyond(ctx context.Context, commit string, files map[string]fileSeen) (gone, there []string, err error) {
	listed, err := w.Git.AskIn(ctx, nil, "ls-files", "-z", "-s", "-v")
	if err != nil {
		return nil, nil, err
	}
	differ, err := w.Git.AskIn(ctx, nil, "diff-index", "-z", "--name-only", "--no-renames", "--ignore-submodules=none", commit, "--")
	if err != nil {
		return nil, nil, err
	}
	tracked, asked, links := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, line := range Zeroed(listed) { // H 100644 HASH STAGE\tPATH
		fields, path, _ := strings.Cut(line, "\t")
		words := strings.Fields(fields)
		if len(words) != 4 {
			return nil, nil, fmt.Errorf("git ls-files: a line that is none: %q", clip.Text(line, 200))
		}
		if words[3] != "0" {
			return nil, nil, Stays("a merge is half done in it: " + path)
		}
		if links[path] = words[1] == "160000"; links[path] && holdsSome(files, path) {
			return nil, nil, Stays("there is a submodule in it: " + path)
		}
		tracked[path] = true
		if _, is := files[path]; is && words[0] != "H" {
			asked[path] = true // git was configured to ignore changes of it
		}
	}
	for _, path := range Zeroed(differ) {
		asked[path] = true
	}
	for path, file := range files {
		if !file.mode.IsDir() && !tracked[path] {
			asked[path] = true
		}
	}
	var bytes int64
	for _, path := range slices.Sorted(maps.Keys(asked)) {
		file, is := files[path]
		switch {
		case is && (file.mode.IsRegular() || file.mode.Type() == fs.ModeSymlink):
			there = append(there, path)
			bytes += file.size
		case is && links[path]: // a submodule that is not checked out
		default:
			gone = append(gone, path)
		}
	}
	if bytes > keptBytesMax || len(there) > keptFilesMax {
		return nil, nil, Stays(fmt.Sprintf("%d files of %d MiB in it are in no commit, and no more than %d of %d MiB are kept", len(there), bytes>>20, keptFilesMax, keptBytesMax>>20))
	}
	return gone, there, nil
}

// holdsSome reports whether a folder has any file.
func holdsSome(files map[string]fileSeen, dir string) bool {
	for path := range files {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// Staged creates a commit of the index if it differs from the commit. The index is only copied.
func (w *Checkout) Staged(ctx context.Context, head, against string) (string, error) {
	_, err := w.Git.AskIn(ctx, nil, "diff-index", "--cached", "--quiet", "--no-renames", "--ignore-submodules=none", against, "--")
	if !GitHasNone(err) { // git reports a difference with exit code 1
		return "", err
	}
	index, err := w.Git.AskIn(ctx, nil, "rev-parse", "--path-format=absolute", "--git-path", "index")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "fairlead-index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(strings.TrimSuffix(index, "\n"))
	if err != nil {
		return "", err
	}
	ours := filepath.Join(dir, "index")
	if err := os.WriteFile(ours, text, 0o600); err != nil {
		return "", err
	}
	tree, err := w.Git.AskIn(ctx, []string{"GIT_INDEX_FILE=" + ours}, "write-tree")
	if err != nil {
		return "", stayWhere(err, "what is staged in it cannot be kept")
	}
	var parents []string
	if head != "" {
		parents = []string{head}
	}
	return w.Git.CommitTree(ctx, nil, "What the worktree of run "+w.Id+" had staged", strings.TrimSpace(tree), parents...)
}

// CommitTree makes a commit by Fairlead, which no ref names yet.
func (g Git) CommitTree(ctx context.Context, env []string, text, tree string, parents ...string) (string, error) {
	args := []string{"commit-tree", "-F", "-"} // an argument has at most 128 KiB on Linux
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	name, mail, _ := strings.Cut(keptBy, " ")
	commit, err := g.Run(ctx, gitAskMax, append(append(g.Inside(),
		"GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+mail, "GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+mail,
	), env...), func(to io.Writer) error {
		_, err := io.WriteString(to, strings.TrimSuffix(text, "\n")+"\n")
		return err
	}, append(args, tree)...)
	return strings.TrimSpace(commit), err
}

// keptCommit is a commit in the format of git fast-import.
type keptCommit struct {
	ref, head, text, root string
	merge, gone, there    []string
	files                 map[string]fileSeen
}

func (c *keptCommit) write(to io.Writer) error {
	root, err := os.OpenRoot(c.root) // a link that is created meanwhile must not be followed
	if err != nil {
		return err
	}
	defer root.Close()
	out := bufio.NewWriterSize(to, 1<<20)
	fmt.Fprintf(out, "feature done\ncommit %s\ncommitter %s %d +0000\ndata %d\n%s\n", c.ref, keptBy, time.Now().Unix(), len(c.text), c.text)
	if c.head != "" {
		fmt.Fprintf(out, "from %s\n", c.head)
	} else if len(c.merge) > 0 {
		fmt.Fprintf(out, "from %s\n", c.merge[0])
		c.merge = c.merge[1:]
	}
	for _, parent := range c.merge {
		fmt.Fprintf(out, "merge %s\n", parent)
	}
	if c.head == "" {
		fmt.Fprint(out, "deleteall\n") // all current files follow
	}
	for _, path := range c.gone { // first, because a file may have become a folder
		fmt.Fprintf(out, "D %s\n", GitPath(path))
	}
	for _, path := range c.there {
		if err := c.file(out, root, path); err != nil {
			return err
		}
	}
	fmt.Fprint(out, "\ndone\n")
	return out.Flush()
}

func (c *keptCommit) file(out *bufio.Writer, root *os.Root, path string) error {
	was := c.files[path]
	if was.mode.Type() == fs.ModeSymlink {
		target, err := root.Readlink(path)
		if err == nil {
			_, err = fmt.Fprintf(out, "M 120000 inline %s\ndata %d\n%s\n", GitPath(path), len(target), target)
		}
		return err
	}
	mode := "100644"
	if was.mode&0o100 != 0 {
		mode = "100755"
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != was.size {
		return Stays("something was written into it while it was kept: " + path)
	}
	fmt.Fprintf(out, "M %s inline %s\ndata %d\n", mode, GitPath(path), was.size)
	if _, err := io.CopyN(out, f, was.size); errors.Is(err, io.EOF) {
		return Stays("something was written into it while it was kept: " + path)
	} else if err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// GitPath formats any path as git reads it.
func GitPath(path string) string {
	var s strings.Builder
	s.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			s.WriteByte('\\')
			s.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&s, `\%03o`, c)
		default:
			s.WriteByte(c)
		}
	}
	s.WriteByte('"')
	return s.String()
}
