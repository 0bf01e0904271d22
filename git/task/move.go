package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Moving the base and the person's clean checkout of it. Any process may be killed at any moment. So a durable note says first from which
// commit to which the checkout goes, and Fairlead itself holds the locks of the checkout's index and of the branch: each is a hard link to
// a file of its own, so no other program's lock is taken for it. git writes the files, with a copy of the index. Then the branch moves, and
// then the copy becomes the index. The next landing finishes what is left if the branch has moved, and takes the files back if it has not.

const (
	lockMax  = 2 * time.Second // for a lock of another git process: a commit holds one for milliseconds
	lockLook = 20 * time.Millisecond
)

// move is what the note says.
type move struct {
	Task   string `json:"task"`
	Branch string `json:"branch"`
	Dir    string `json:"dir"` // the checkout; empty: only the branch moves
	Git    string `json:"git"` // its own git folder
	From   string `json:"from"`
	To     string `json:"to"`

	common string   // the repository's git folder
	alive  *os.File // its lock lasts until each git of this move has ended
}

func (m *move) place(name string) string {
	return filepath.Join(m.common, "fairlead", "landing-"+digest(m.Branch)+name)
}

func (m *move) note() string       { return m.place(".json") }
func (m *move) scratch() string    { return m.place("") }
func (m *move) in(n string) string { return filepath.Join(m.scratch(), n) }
func (m *move) index() string      { return m.in("index") }
func (m *move) indexLock() string  { return filepath.Join(m.Git, "index.lock") }
func (m *move) ref() string        { return "refs/heads/" + m.Branch }
func (m *move) branch() string     { return filepath.Join(m.common, filepath.FromSlash(m.ref())) } // its file
func (m *move) branchLock() string { return m.branch() + ".lock" }

func (m *move) using(i string) []string {
	return append([]string{"GIT_INDEX_FILE=" + m.in(i), "GIT_DIR=" + m.Git, "GIT_WORK_TREE=" + m.Dir}, asStored...)
}

// run runs git in the checkout, with an index in the scratch folder.
func (m *move) run(ctx context.Context, index string, feed func(io.Writer) error, args ...string) (string, error) {
	g, err := worktree.Git{Dir: m.Dir}.Holding(m.alive)
	if err != nil {
		return "", err
	}
	return g.Run(ctx, worktree.GitWorkMax, m.using(index), feed, args...)
}

// forward moves the base branch to a commit that comes after tip. moved is false if the branch is somewhere else meanwhile.
// place is the checkout of the branch, which is moved with it if it is clean; empty: there is none.
func (t Task) forward(ctx context.Context, tip, commit string) (place string, moved bool, err error) {
	if err := t.unheld(ctx); err != nil {
		return "", false, err
	}
	at, err := t.checkedOut(ctx)
	if err != nil {
		return "", false, err
	}
	m := &move{Task: t.ID, Branch: t.Base, From: tip, To: commit, common: t.Git}
	if at != nil {
		m.Dir, m.Git = at.dir, at.git
		if err := t.clean(ctx, m.Dir); err != nil {
			return "", false, err
		}
	}
	end, err := m.begin()
	if err != nil {
		return "", false, err
	}
	defer end()
	if err := m.do(ctx); err != nil {
		fault := m.settle(context.WithoutCancel(ctx))
		if fault == nil && errors.Is(err, errElsewhere) {
			return "", false, nil
		}
		err = errors.Join(err, fault)
		if now, fault := t.tip(ctx); worktree.GitSaidNo(err) && fault == nil && now != tip {
			return "", false, nil
		}
		if worktree.GitSaidNo(err) {
			return "", false, &NotLanded{Failure{Kind: state.FailedMoved}, fmt.Sprintf("branch %s cannot be moved: %v", t.Base, err)}
		}
		return "", false, err
	}
	return m.Dir, true, m.finish()
}

// clean refuses a checkout with changes that are not committed. Fairlead's own files do not count.
func (t Task) clean(ctx context.Context, dir string) error {
	dirty, err := worktree.Git{Dir: dir}.AskIn(ctx, nil, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no",
		"--ignore-submodules=all")
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(worktree.Zeroed(dirty), func(entry string) bool { return len(entry) > 3 && t.ownFile(entry[3:]) })
	if len(files) == 0 {
		return nil
	}
	f := Failure{Kind: state.FailedDirty}
	for _, entry := range files {
		f.Files = append(f.Files, entry[min(3, len(entry)):])
	}
	return &NotLanded{f, fmt.Sprintf("branch %s is checked out in %s, which has changes that are not committed: %s; commit or stash them, then merge again",
		t.Base, dir, listed(files))}
}

// repair finishes or takes back what a landing on the branch has left whose process was killed.
func (t Task) repair(ctx context.Context) error {
	m := &move{Branch: t.Base, common: t.Git}
	if _, err := os.Lstat(m.note()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := file.LoadJSON(m.note(), m); err != nil {
		return err
	}
	if m.Branch != t.Base || commits(m.From, m.To) != nil {
		return fmt.Errorf("%s is not what Fairlead wrote; look at the checkout of branch %s, and remove the file", m.note(), t.Base)
	}
	all, err := t.checkouts(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(all, checkout{m.Dir, m.Git}) { // it was removed; or another program wrote the note
		m.Dir, m.Git = "", ""
	}
	end, err := m.lockAlive()
	if err != nil {
		return err
	}
	defer end()
	if err := m.settle(ctx); err != nil {
		return fmt.Errorf("repair what a landing of task %s has left in %s: %w", m.Task, m.Dir, err)
	}
	return nil
}

// lockAlive waits until no git of an earlier move of the branch runs: one that has lost its Fairlead works on.
func (m *move) lockAlive() (end func(), err error) {
	if m.alive, err = os.OpenFile(m.place(".git.lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := file.Uninterrupted(func() error { return unix.Flock(int(m.alive.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(err, m.alive.Close())
	}
	return func() { _ = m.alive.Close() }, nil
}

// begin writes the note.
func (m *move) begin() (end func(), err error) {
	if end, err = m.lockAlive(); err != nil {
		return nil, err
	}
	view := m.in("view")
	if err := errors.Join(os.RemoveAll(m.scratch()), os.MkdirAll(view, 0o700),
		os.WriteFile(m.in("lock"), []byte("fairlead\n"), 0o600), m.writeRef(),
		// A git folder that is on no branch: with it git needs no lock of the checkout's HEAD, of which nothing would say whose it is.
		os.WriteFile(filepath.Join(view, "HEAD"), []byte(m.To+"\n"), 0o600),
		os.WriteFile(filepath.Join(view, "commondir"), []byte(m.common+"\n"), 0o600),
		file.StoreJSON(m.note(), m)); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// finish removes the note.
func (m *move) finish() error {
	return errors.Join(os.RemoveAll(m.scratch()), without(m.note()))
}

func without(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// do moves the files, the branch and the index, in this order.
func (m *move) do(ctx context.Context) error {
	if m.Dir == "" {
		return m.moveBranch(ctx)
	}
	if err := m.lock(ctx, "lock", m.indexLock()); err != nil {
		return err
	}
	if err := m.inTheWay(ctx); err != nil {
		return err
	}
	if err := duplicate(filepath.Join(m.Git, "index"), m.index()); err != nil {
		return err
	}
	// it says no for a file that differs: one of Fairlead's own, which read-tree refuses if it changes it
	if _, err := m.run(ctx, "index", nil, "update-index", "-q", "--refresh"); err != nil && !worktree.GitSaidNo(err) {
		return err
	}
	if _, err := m.run(ctx, "index", nil, "read-tree", "-m", "-u", m.From, m.To); err != nil {
		return err
	}
	if !(checkout{m.Dir, m.Git}).on(m.Branch) {
		return &NotLanded{Failure{Kind: state.FailedMoved}, fmt.Sprintf("the checkout %s was switched to another branch meanwhile; merge again", m.Dir)}
	}
	if err := m.moveBranch(ctx); err != nil {
		return err
	}
	return errors.Join(os.Rename(m.index(), filepath.Join(m.Git, "index")), without(m.indexLock()))
}

// duplicate copies a file.
func duplicate(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// ours reports whether a lock is a link to a file of this move.
func (m *move) ours(name, lock string) bool {
	mine, err := os.Lstat(m.in(name))
	its, fault := os.Lstat(lock)
	return err == nil && fault == nil && os.SameFile(mine, its)
}

func (m *move) holdsIndex() bool { return m.ours("lock", m.indexLock()) }

// lock takes a lock: it links a file of this move there. It waits for another git process.
func (m *move) lock(ctx context.Context, name, lock string) error {
	for until := time.Now().Add(lockMax); ; {
		err := os.Link(m.in(name), lock)
		if errors.Is(err, fs.ErrNotExist) { // the branch is in packed-refs, and git has removed its empty folder
			err = cmp.Or(os.MkdirAll(filepath.Dir(lock), 0o777), os.Link(m.in(name), lock)) //nolint:gosec // as git makes it
		}
		switch {
		case err == nil || m.ours(name, lock):
			return nil
		case !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist):
			return err
		case time.Now().After(until):
			where := ""
			if m.Dir != "" {
				where = " is checked out in " + m.Dir + ", and"
			}
			return &NotLanded{
				Failure{Kind: state.FailedMoved},
				fmt.Sprintf("branch %s%s cannot be moved: another git process holds %s; if none runs, remove that file, then merge again",
					m.Branch, where, lock),
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockLook):
		}
	}
}

// writeRef writes the file that becomes the branch, so that the branch moves by one rename.
func (m *move) writeRef() error {
	mode := fs.FileMode(0o644)
	if head, err := os.Stat(filepath.Join(m.common, "HEAD")); err == nil { // who may read and write it: core.sharedRepository
		mode = head.Mode().Perm()
	}
	f, err := os.OpenFile(m.in("ref"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(m.To + "\n")
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

// errElsewhere says that the branch is not where the move begins.
var errElsewhere = errors.New("the branch was moved meanwhile")

// moveBranch changes the ref, unless it is elsewhere. It does what git does for a ref in a file, because a git that is killed between
// making the lock and writing it leaves one of which nothing says whose it is.
func (m *move) moveBranch(ctx context.Context) error {
	who, unknown := worktree.Git{Dir: m.scratch()}.Run(ctx, worktree.GitWorkMax, m.ofRepository(), nil, "var", "GIT_COMMITTER_IDENT")
	if m.onlyByGit() {
		return m.moveBranchByGit(ctx)
	}
	if err := m.lock(ctx, "ref", m.branchLock()); err != nil {
		return err
	}
	is, err := worktree.Git{Dir: m.scratch()}.Run(ctx, worktree.GitWorkMax, m.ofRepository(), nil, "show-ref", "--verify", "--hash", m.ref())
	if err == nil && strings.TrimSpace(is) != m.From || worktree.GitHasNone(err) {
		err = errElsewhere
	}
	if err != nil {
		return errors.Join(err, without(m.branchLock()))
	}
	if err := os.Rename(m.branchLock(), m.branch()); err != nil {
		// git leaves folders in place of branches that are gone; one with a branch in it is none of these
		if err = cmp.Or(removeEmpty(m.branch()), os.Rename(m.branchLock(), m.branch())); err != nil {
			return err
		}
	}
	if unknown == nil {
		m.log(filepath.Join(m.common, "logs", filepath.FromSlash(m.ref())), who, os.O_CREATE)
		if m.Dir != "" {
			m.log(filepath.Join(m.Git, "logs", "HEAD"), who, 0)
		}
	}
	return nil
}

func (m *move) ofRepository() []string { return append([]string{"GIT_DIR=" + m.common}, asStored...) }

// onlyByGit reports whether the branch is not a file with a commit: it is a name for another branch, or refs are kept otherwise.
func (m *move) onlyByGit() bool {
	text, err := os.ReadFile(m.branch())
	_, fault := os.Lstat(filepath.Join(m.common, "reftable"))
	return err == nil && strings.HasPrefix(string(text), "ref:") || fault == nil
}

// moveBranchByGit is moveBranch with git's own lock, for which git waits.
func (m *move) moveBranchByGit(ctx context.Context) error {
	g, err := worktree.Git{Dir: m.scratch()}.Holding(m.alive)
	if err != nil {
		return err
	}
	_, err = g.Run(ctx, worktree.GitWorkMax, append([]string{"GIT_DIR=" + m.in("view")}, asStored...), nil,
		"-c", "core.filesRefLockTimeout="+strconv.FormatInt(lockMax.Milliseconds(), 10), "-c", "core.logAllRefUpdates=true",
		"update-ref", "-m", "fairlead: task "+m.Task, m.ref(), m.To, m.From)
	return err
}

// removeEmpty removes a folder that has nothing but folders.
func removeEmpty(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	for _, dir := range slices.Backward(all) {
		err = cmp.Or(err, os.Remove(dir))
	}
	return err
}

// log adds the move to a log of git.
func (m *move) log(path, who string, create int) {
	if create != 0 {
		_ = os.MkdirAll(filepath.Dir(path), 0o777) //nolint:gosec // as git makes it
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|create, 0o666) //nolint:gosec // as git makes it
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%s %s %s\tfairlead: task %s\n", m.From, m.To, strings.TrimSpace(who), m.Task)
	_ = f.Close()
}

// settle brings the checkout to where the branch is, after a move that did not end, and removes this move's locks.
func (m *move) settle(ctx context.Context) error {
	text, err := os.ReadFile(m.branchLock())
	if err == nil && strings.TrimSpace(string(text)) == m.To { // no other process writes this commit there
		if err := without(m.branchLock()); err != nil {
			return err
		}
	}
	if m.Dir == "" {
		return m.finish()
	}
	at, err := worktree.Git{Dir: m.common}.Run(ctx, worktree.GitWorkMax, m.ofRepository(), nil, "rev-parse", "--verify", "--quiet", m.ref())
	if err != nil && !worktree.GitHasNone(err) {
		return err
	}
	if strings.TrimSpace(at) == m.To { // the files are there; while the lock is there, no git has changed the index
		if _, err := os.Lstat(m.index()); err == nil && m.holdsIndex() {
			if err := os.Rename(m.index(), filepath.Join(m.Git, "index")); err != nil {
				return err
			}
		}
	} else if err := m.takeBack(ctx); err != nil {
		return err
	}
	if m.holdsIndex() {
		if err := without(m.indexLock()); err != nil {
			return err
		}
	}
	// The files that were written again have other times. An error: something differs, or another git works there.
	_, _ = worktree.Git{Dir: m.Dir}.Ask(ctx, "update-index", "-q", "--refresh")
	return m.finish()
}
