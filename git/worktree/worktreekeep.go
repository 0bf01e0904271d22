package worktree

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // the hash that git has
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/removal"
)

const (
	keptBytesMax   = 1 << 30   // content that its commit does not have; more does not belong into a repository
	keptFilesMax   = 200_000   // two large folders of downloaded packages
	treeEntriesMax = 2_000_000 // files and folders of a checkout that is searched
	keptBy         = "Fairlead <fairlead@localhost>"
)

// Checkout is a run's clone while it is removed.
//
// In this order: take its commits; list every file; keep what its commit does not have under the ref; move the folder
// aside; check again that nothing was written meanwhile; then rename it as final and delete it. A
// crash before the final name restores the folder, and the removal starts over. A crash after it
// continues to delete. Neither needs stored state.
type Checkout struct {
	Id     string
	Branch string // the run's branch
	Repo   Git
	Dir    string // the clone
	Store  string // Fairlead's copy of the repository, whose objects the clone shares; empty: it shares those of Repo
}

// Clone is the checkout as a clone whose refs are kept beside its content.
func (w *Checkout) Clone() Clone {
	return Clone{Repo: w.Repo, Dir: w.Dir, Refs: cloneRefs + w.Id + "/", Store: w.Store}
}

// Stays is the reason why a checkout cannot be removed.
type Stays string

func (s Stays) Error() string { return string(s) }

// Ref is the hidden ref under which the worktree's content is kept.
func (w *Checkout) Ref() string { return KeptRefs + w.Id }

// Settle finishes what a crash has interrupted, and reports whether that was all.
func (w *Checkout) Settle() (finished bool, err error) {
	if _, err := os.Lstat(Aside(w.Dir, GoneSuffix)); err == nil {
		if err := w.delete(); err != nil {
			return false, err
		}
		finished = true
	}
	leaving := Aside(w.Dir, LeavingSuffix)
	if _, err := os.Lstat(leaving); errors.Is(err, fs.ErrNotExist) {
		return finished, nil
	} else if err != nil {
		return false, err
	}
	if _, err := os.Lstat(w.Dir); err == nil {
		return false, fmt.Errorf("there are both %s and %s; look which one is needed, and remove the other", leaving, w.Dir)
	}
	return false, os.Rename(leaving, w.Dir)
}

// Remove removes the worktree after its content was kept. ref is where; why is what prevented it.
func (w *Checkout) Remove(ctx context.Context) (ref, why string, err error) {
	var stay Stays
	defer func() {
		if errors.As(err, &stay) {
			why, err = string(stay), nil
		}
	}()
	if err := w.isWhole(); err != nil {
		return "", "", err
	}
	before, err := WalkTree(ctx, w.Dir)
	if err != nil {
		return "", "", err
	}
	if err := w.Keep(ctx, before); err != nil {
		return "", "", err
	}
	leaving := Aside(w.Dir, LeavingSuffix)
	if err := os.Rename(w.Dir, leaving); err != nil {
		return w.Ref(), "", err
	}
	after, err := WalkTree(ctx, leaving)
	if err == nil && !maps.Equal(before, after) {
		err = Stays("a file in it changed while it was saved: another process still works there")
	}
	if err == nil {
		err = os.Rename(leaving, Aside(w.Dir, GoneSuffix))
	}
	if err != nil {
		if back := os.Rename(leaving, w.Dir); back != nil {
			return w.Ref(), "", back // the next call restores it
		}
		return w.Ref(), "", err
	}
	return w.Ref(), "", w.delete()
}

// delete deletes a checkout of which everything is kept.
func (w *Checkout) delete() error {
	gone := Aside(w.Dir, GoneSuffix)
	if err := removal.Tree(gone); err != nil {
		return fmt.Errorf("%w; everything in %s is kept under %s, so it can be deleted by hand", err, gone, w.Ref())
	}
	return nil
}

// isWhole checks that the folder is an idle clone, and that a commit can hold all of it.
func (w *Checkout) isWhole() error {
	git := filepath.Join(w.Dir, ".git")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return Stays("it is no longer a clone: its .git is not the folder that git makes there")
	}
	if err := Busy(git); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(git, "modules")); err == nil {
		return Stays("it has submodules")
	}
	return nil
}

// HalfDone are the files in a checkout's own git folder that say that something is half done in it.
var HalfDone = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "rebase-merge": "a rebase",
	"rebase-apply": "a rebase",
	"BISECT_LOG":   "a bisection", "sequencer": "a series of picks", "index.lock": "a change of the index",
}

// Busy is an error if something is half done in a checkout, whose own git folder is given, but for the files `without`.
func Busy(gitDir string, without ...string) error {
	for name, what := range HalfDone {
		if _, err := os.Lstat(filepath.Join(gitDir, name)); err == nil && !slices.Contains(without, name) {
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
		if err != nil || name == "." {
			return err
		}
		if name == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
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
	clone := w.Clone()
	head, branch, err := clone.Take(ctx) // no head: a branch without a commit yet
	if err != nil {
		return stayWhere(err, "its commits cannot be read")
	}
	has, err := clone.filesOf(ctx, head)
	if err != nil {
		return err
	}
	gone, there, err := w.beyond(ctx, has, files)
	if err != nil {
		return err
	}
	staged, err := clone.Staged(ctx, w.Id, head)
	if err != nil {
		return err
	}
	before, err := w.Repo.Ask(ctx, "rev-parse", "--verify", "--quiet", w.Ref()+"^{commit}")
	if err != nil && !GitHasNone(err) {
		return err
	}
	c := keptCommit{ref: w.Ref(), head: head, gone: gone, there: there, files: files, root: w.Dir}
	for _, parent := range []string{staged, strings.TrimSpace(before)} {
		if parent != "" && parent != head {
			c.merge = append(c.merge, parent)
		}
	}
	c.text = fmt.Sprintf("What the worktree of run %s held beyond its commit\n\nHead: %s\nBranch: %s\nStaged: %s\n", w.Id, head, branch,
		staged)
	if _, err = w.Repo.Run(ctx, GitWorkMax, nil, c.write, "fast-import", "--quiet", "--done"); err != nil {
		return err
	}
	// the ref must exist before anything is removed
	if _, err = w.Repo.Ask(ctx, "rev-parse", "--verify", "--quiet", w.Ref()+"^{commit}"); err != nil {
		return err
	}
	return clone.Forget(ctx, w.Ref())
}

// beyond lists what a checkout's commit does not have: deleted files, changed ones and new ones.
func (w *Checkout) beyond(ctx context.Context, has map[string]treeFile, files map[string]fileSeen) (gone, there []string, err error) {
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	var bytes int64
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file, was := files[path], has[path]
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		switch {
		case was.mode == modeCommit && (!file.mode.IsDir() || holdsSome(files, path)):
			return nil, nil, Stays("there is a submodule in it: " + path)
		case !file.mode.IsRegular() && file.mode.Type() != fs.ModeSymlink || was.sameAs(root, path, file):
		default:
			there = append(there, path)
			bytes += file.size
		}
	}
	for _, path := range slices.Sorted(maps.Keys(has)) {
		if file, is := files[path]; !is || has[path].mode != modeCommit && !file.mode.IsRegular() && file.mode.Type() != fs.ModeSymlink {
			gone = append(gone, path)
		}
	}
	if bytes > keptBytesMax || len(there) > keptFilesMax {
		return nil, nil,
			Stays(fmt.Sprintf("%d files of %d MiB in it are in no commit, and no more than %d of %d MiB are kept", len(there), bytes>>20,
				keptFilesMax, keptBytesMax>>20))
	}
	return gone, there, nil
}

// Modes of git.
const (
	modeFile, modeProgram, modeLink, modeCommit = 0o100644, 0o100755, 0o120000, 0o160000
)

// treeFile is a file of a commit.
type treeFile struct {
	id   string
	mode uint32
	size int64
}

// filesOf lists the files of a commit; none for an empty name.
func (c Clone) filesOf(ctx context.Context, commit string) (map[string]treeFile, error) {
	has := map[string]treeFile{}
	if commit == "" {
		return has, nil
	}
	said, err := c.ask(ctx, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	for _, line := range Zeroed(said) { // MODE TYPE HASH SIZE\tPATH
		fields, path, _ := strings.Cut(line, "\t")
		words := strings.Fields(fields)
		if len(words) != 4 {
			return nil, fmt.Errorf("git ls-tree: a line that is none: %q", clip.Text(line, 200))
		}
		mode, err := strconv.ParseUint(words[0], 8, 32)
		if err != nil {
			return nil, err
		}
		size, _ := strconv.ParseInt(words[3], 10, 64) // a submodule has none
		has[path] = treeFile{words[2], uint32(mode), size}
	}
	return has, nil
}

// sameAs reports whether a file has the bytes on disk that the commit has. One that cannot be read has others.
func (t treeFile) sameAs(root *os.Root, path string, file fileSeen) bool {
	switch {
	case t.mode == modeLink && file.mode.Type() == fs.ModeSymlink:
		target, err := root.Readlink(path)
		return err == nil && t.holds(strings.NewReader(target), int64(len(target)))
	case !file.mode.IsRegular() || t.mode != modeFile && t.mode != modeProgram || file.size != t.size ||
		(t.mode == modeProgram) != (file.mode&0o100 != 0):
		return false
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && t.holds(f, t.size)
}

// holds reports whether a text of a size is the blob.
func (t treeFile) holds(text io.Reader, size int64) bool {
	sum := sha1.New() //nolint:gosec // the hash that git has
	if len(t.id) == 2*sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %d\x00", size)
	n, err := io.Copy(sum, io.LimitReader(text, size+1))
	return err == nil && n == size && hex.EncodeToString(sum.Sum(nil)) == t.id
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

// Staged creates a commit of the clone's index if it differs from the commit at head. The index is only read.
func (c Clone) Staged(ctx context.Context, run, head string) (string, error) {
	text, err := ReadIndex(c.Dir)
	if err != nil || len(text) == 0 {
		return "", err
	}
	hashBytes := len(head) / 2
	if head == "" {
		format, err := c.ask(ctx, "rev-parse", "--show-object-format")
		if err != nil {
			return "", err
		}
		if hashBytes = sha1.Size; format == "sha256" {
			hashBytes = sha256.Size
		}
	}
	entries, err := IndexEntries(text, hashBytes)
	if err != nil {
		return "", Stays(err.Error())
	}
	has, err := c.filesOf(ctx, head)
	if err != nil {
		return "", err
	}
	var list, ids strings.Builder
	same, known := 0, map[string]bool{}
	for _, e := range entries {
		if e.Stage != 0 {
			return "", Stays("a merge is half done in it: " + e.Name)
		}
		if e.Intent {
			continue
		}
		if was, is := has[e.Name]; is && was.id == e.ID && was.mode == e.Mode {
			same++
		} else if e.Mode != modeCommit && !known[e.ID] {
			known[e.ID] = true
			ids.WriteString(e.ID + "\n")
		}
		fmt.Fprintf(&list, "%o %s 0\t%s\x00", e.Mode, e.ID, e.Name)
	}
	if same == len(has) && strings.Count(list.String(), "\x00") == same {
		return "", nil
	}
	if err := c.fetchMissing(ctx, ids.String()); err != nil {
		return "", stayWhere(err, "what is staged in it cannot be kept")
	}
	dir, err := os.MkdirTemp("", "fairlead-index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	env := append([]string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}, AsStored...)
	if _, err := c.Repo.Run(ctx, GitWorkMax, env, feed(list.String()), "update-index", "-z", "--index-info"); err != nil {
		return "", stayWhere(err, "what is staged in it cannot be kept")
	}
	tree, err := c.Repo.Run(ctx, GitWorkMax, env, nil, "write-tree")
	if err != nil {
		return "", stayWhere(err, "what is staged in it cannot be kept")
	}
	var parents []string
	if head != "" {
		parents = []string{head}
	}
	return c.Repo.CommitTree(ctx, nil, "What the worktree of run "+run+" had staged", strings.TrimSpace(tree), parents...)
}

// fetchMissing reads those of some objects, one in each line, that the repository does not have.
func (c Clone) fetchMissing(ctx context.Context, ids string) error {
	if ids == "" {
		return nil
	}
	said, err := c.Repo.Run(ctx, GitWorkMax, AsStored, feed(ids), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return err
	}
	var missing []string
	for line := range strings.Lines(said) {
		if id, is := strings.CutSuffix(strings.TrimSpace(line), " missing"); is {
			missing = append(missing, id)
		}
	}
	if len(missing) > keptFilesMax {
		return Stays(fmt.Sprintf("%d staged files are in no commit, and no more than %d are kept", len(missing), keptFilesMax))
	}
	if len(missing) == 0 {
		return nil
	}
	return c.Fetch(ctx, missing...)
}

// CommitTree makes a commit by Fairlead, which no ref names yet.
func (g Git) CommitTree(ctx context.Context, env []string, text, tree string, parents ...string) (string, error) {
	args := []string{"commit-tree", "-F", "-"} // an argument has at most 128 KiB on Linux
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	commit, err := g.Run(ctx, gitAskMax, slices.Concat(g.Inside(), byFairlead(), env), feed(strings.TrimSuffix(text, "\n")+"\n"),
		append(args, tree)...)
	return strings.TrimSpace(commit), err
}

func byFairlead() []string {
	name, mail, _ := strings.Cut(keptBy, " ")
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mail, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + mail}
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
