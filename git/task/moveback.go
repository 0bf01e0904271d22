package task

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// changedFile is a file that a move changes, as git has it: mode and id, empty before or after if it is not there.
type changedFile struct {
	name     string
	was, get string
}

// changes lists the files that the move changes.
func (m *move) changes(ctx context.Context) (all []changedFile, err error) {
	said, err := m.run(ctx, "none", nil, "diff-tree", "-r", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", m.From, m.To)
	fields := worktree.Zeroed(said)
	for i := 0; i+1 < len(fields); i += 2 { // `:mode mode id id status`, and the name
		is := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(is) != 5 {
			continue
		}
		c := changedFile{name: fields[i+1], was: is[0] + " " + is[2], get: is[1] + " " + is[3]}
		if strings.HasPrefix(c.was, "000000") {
			c.was = ""
		}
		if strings.HasPrefix(c.get, "000000") {
			c.get = ""
		}
		all = append(all, c)
	}
	return all, err
}

// inTheWay refuses a move that would overwrite a file that git does not have, ignored ones too.
func (m *move) inTheWay(ctx context.Context) error {
	all, err := m.changes(ctx)
	if err != nil {
		return err
	}
	goes := map[string]bool{}
	for _, c := range all {
		if c.was != "" {
			goes[c.name] = true
		}
	}
	f := Failure{Kind: state.FailedDirty}
	for _, c := range all {
		if c.was != "" || c.get == "" {
			continue
		}
		if name, err := m.otherFile(c.name, goes); err != nil {
			return err
		} else if name != "" {
			f.Files = append(f.Files, name)
		}
	}
	if len(f.Files) == 0 {
		return nil
	}
	return &NotLanded{f, "branch " + m.Branch + " is checked out in " + m.Dir + ", and files there that git does not have are in the way: " +
		someOf(f.Files) + "; move or remove them, then merge again"}
}

// otherFile is a file of the person in the place of a new one; empty: there is none. Those that go were looked at already.
func (m *move) otherFile(name string, goes map[string]bool) (string, error) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		info, err := os.Lstat(filepath.Join(m.Dir, at))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && goes[at]:
			return "", nil
		case err != nil:
			return "", err
		case !info.IsDir():
			return at, nil
		}
	}
	found := ""
	err := filepath.WalkDir(filepath.Join(m.Dir, name), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		at, err := filepath.Rel(m.Dir, path)
		if err == nil && !goes[at] {
			found, err = at, fs.SkipAll
		}
		return err
	})
	return found, err
}

// takeBack gives the files that the move has changed the content that they had. It changes only those that have exactly the old or the
// new content or a beginning of it, which git leaves when it is killed, or are missing; and none that the index has otherwise.
func (m *move) takeBack(ctx context.Context) error {
	all, err := m.changes(ctx)
	if err != nil {
		return err
	}
	if !m.holdsIndex() {
		if _, err := os.Lstat(m.index()); err != nil {
			return nil //nolint:nilerr // it ended before it changed a file, or after it took all back
		}
		if err := m.lock(ctx, "lock", m.indexLock()); err != nil {
			return err
		}
	}
	if all, err = m.asIndexed(ctx, all); err != nil || len(all) == 0 {
		return err
	}
	notOld, err := m.differing(ctx, "was", all, func(c changedFile) string { return c.was })
	if err != nil {
		return err
	}
	notNew, err := m.differing(ctx, "gets", all, func(c changedFile) string { return c.get })
	if err != nil {
		return err
	}
	for _, c := range all { // first: a folder of new files may be where a file was
		if c.was != "" {
			continue
		}
		if is, err := m.mine(ctx, c, notNew); err != nil {
			return err
		} else if is == there {
			if err := m.remove(c.name); err != nil {
				return err
			}
		}
	}
	var back []string
	for _, c := range all {
		if c.was == "" || !notOld[c.name] {
			continue
		}
		if is, err := m.mine(ctx, c, notNew); err != nil {
			return err
		} else if is != foreign {
			back = append(back, c.name)
		}
	}
	if len(back) == 0 {
		return nil
	}
	_, err = m.run(ctx, "was", writes(strings.Join(back, "\x00")+"\x00"), "checkout-index", "--force", "--quiet", "-z", "--stdin")
	return err
}

// What a file of the checkout is to a move that is taken back.
const (
	foreign = iota // it has another content
	missing        // it is not there
	there          // it has the new content, or a beginning of one
)

func (m *move) mine(ctx context.Context, c changedFile, notNew map[string]bool) (int, error) {
	path := filepath.Join(m.Dir, c.name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return missing, nil
	case err != nil:
		return foreign, err
	case info.IsDir() && c.was != "" && !strings.HasPrefix(c.was, "160000") && removeEmpty(path) == nil:
		return missing, nil // not a submodule: git had made the folder of a new file, and not yet the file
	case c.get != "" && !notNew[c.name]:
		return there, nil
	}
	is, err := m.beginningOf(ctx, c)
	return map[bool]int{true: there}[is], err
}

// remove removes a file, and the folders that are empty then.
func (m *move) remove(name string) error {
	if err := os.Remove(filepath.Join(m.Dir, name)); err != nil {
		return err
	}
	dir := filepath.Dir(name)
	for dir != "." && os.Remove(filepath.Join(m.Dir, dir)) == nil { // one with other files stays
		dir = filepath.Dir(dir)
	}
	return nil
}

// asIndexed leaves out files that the checkout's index does not have as they were before the move.
func (m *move) asIndexed(ctx context.Context, all []changedFile) (kept []changedFile, err error) {
	said, err := worktree.Git{Dir: m.Dir}.Run(ctx, worktree.GitWorkMax, append([]string{"GIT_DIR=" + m.Git, "GIT_WORK_TREE=" + m.Dir}, asStored...),
		nil, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	has := map[string]string{}
	for _, entry := range worktree.Zeroed(said) {
		if is, name, ok := strings.Cut(entry, "\t"); ok {
			has[name] += strings.TrimSuffix(is, " 0")
		}
	}
	for _, c := range all {
		if has[c.name] == c.was {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// differing makes an index of some versions of the files, and says which of these are not what the checkout has.
func (m *move) differing(ctx context.Context, index string, all []changedFile, version func(changedFile) string) (map[string]bool, error) {
	var entries strings.Builder
	for _, c := range all {
		if v := version(c); v != "" {
			entries.WriteString(v + "\t" + c.name + "\x00")
		}
	}
	if err := without(m.in(index)); err != nil {
		return nil, err
	}
	if _, err := m.run(ctx, index, writes(entries.String()), "update-index", "-z", "--index-info"); err != nil {
		return nil, err
	}
	if _, err := m.run(ctx, index, nil, "update-index", "-q", "--really-refresh"); err != nil && !worktree.GitSaidNo(err) {
		return nil, err // it says no for a file that differs
	}
	said, err := m.run(ctx, index, nil, "diff-files", "--name-only", "-z", "--no-ext-diff")
	differ := map[string]bool{}
	for _, name := range worktree.Zeroed(said) {
		differ[name] = true
	}
	return differ, err
}

// beginningOf reports whether a file has the beginning of what it had before or gets: git was killed while it wrote it.
func (m *move) beginningOf(ctx context.Context, c changedFile) (bool, error) {
	for _, one := range [][2]string{{m.From, c.was}, {m.To, c.get}} {
		if !strings.HasPrefix(one[1], "100") { // a link is made whole
			continue
		}
		f, err := os.OpenFile(filepath.Join(m.Dir, c.name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false, nil //nolint:nilerr // a link, a folder, or not to be read: not what git was writing
		}
		g, err := worktree.Git{Dir: m.Dir}.Holding(m.alive)
		if err != nil {
			return false, errors.Join(err, f.Close())
		}
		has := &beginning{of: f}
		err = g.Pipe(ctx, worktree.GitWorkMax, m.using("gets"), nil, has, "cat-file", "--filters", one[0]+":"+c.name)
		if err = errors.Join(err, f.Close()); err != nil {
			return false, err
		}
		if !has.differs && has.over {
			return true, nil
		}
	}
	return false, nil
}

// beginning compares a text that is written to it with a file.
type beginning struct {
	of      io.Reader
	differs bool
	over    bool // the file has ended
}

func (b *beginning) Write(text []byte) (int, error) {
	if b.differs || b.over {
		return len(text), nil
	}
	has := make([]byte, len(text))
	n, err := io.ReadFull(b.of, has)
	b.over = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	b.differs = string(has[:n]) != string(text[:n]) || err != nil && !b.over
	return len(text), nil
}
