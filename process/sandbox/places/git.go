package places

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

const (
	gitFileMax = 4 << 10 // bytes of a file that contains one path
	abovesMax  = 64      // folders above the workspace in which a repository is looked for
)

// topOf is the folder of the repository in which a folder lies; empty: it lies in none.
func topOf(dir string) string {
	for range abovesMax {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == "/" {
			break
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// git decides what may be done with the repository. Of a clone that Fairlead has made everything is the agent's. In a person's
// repository the program looks, and does not commit: a hook or a setting that it left there would run outside.
func (m *maker) git() {
	if m.Clone != "" {
		if clone, err := settled(m.Session.Root, m.Root, m.Clone); err == nil && topOf(m.Dir) == clone {
			m.clone(clone)
			return
		}
	}
	top := topOf(m.Dir)
	if top == "" {
		return
	}
	m.env.set("GIT_OPTIONAL_LOCKS", "0")
	if at := ReadOnlyGit(m.Dir, m.Session.Write); at != "" {
		m.read(at)
	}
}

// ReadOnlyGit is the git directory of the repository in which a workspace lies, which its programs read and do not write, so a commit
// fails; empty: there is none, or the configuration opens it. dir is the workspace's real path.
func ReadOnlyGit(dir string, write []string) string {
	top := topOf(dir)
	if top == "" {
		return ""
	}
	at := filepath.Join(top, ".git")
	if !isFolder(at) {
		at = sharedGitDir(top)
	}
	for p := at; p != "" && p != "/"; p = filepath.Dir(p) {
		if slices.Contains(write, p) {
			return ""
		}
	}
	return at
}

// clone opens a clone for its agent, and what it borrows from: Fairlead's copy of the repository, which is its origin.
func (m *maker) clone(clone string) {
	if !m.ReadOnly {
		m.add(sandbox.Place{Path: filepath.Join(clone, ".git"), Access: sandbox.Write})
	}
	for _, p := range m.alternates(clone) {
		m.read(p)
	}
}

// alternates are the copies that a clone borrows objects from, as its origin whole, and the folders of objects that those borrow. The
// file is the agent's: only what lies in a copy that Fairlead has made counts. A host without a copy has made its clones of the repository
// there, of which only the objects are read.
func (m *maker) alternates(clone string) (found []string) {
	ours, copies := []string{filepath.Join(m.State, "git"), filepath.Join(m.State, "gits")}, true
	if top := topOf(m.Root); top != "" && !slices.ContainsFunc(ours, isFolder) {
		copies = false
		ours = append(ours, filepath.Join(top, ".git"))
		if at := sharedGitDir(top); at != "" {
			ours = append(ours, at)
		}
	}
	for _, real := range namedIn(filepath.Join(clone, ".git", "objects")) {
		if slices.ContainsFunc(ours, func(o string) bool { return isBelow(real, o) }) {
			more := namedIn(real)
			if copies {
				real = filepath.Dir(real)
			}
			found = append(append(found, real), more...)
		}
	}
	return found
}

// namedIn are the folders of objects that one names as borrowed.
func namedIn(objects string) (found []string) {
	text, _ := readSmall(filepath.Join(objects, "info", "alternates"), gitFileMax)
	for line := range bytes.Lines(text) {
		p := strings.TrimSpace(string(line))
		if real, err := filepath.EvalSymlinks(p); err == nil && filepath.IsAbs(p) && filepath.Base(real) == "objects" {
			found = append(found, real)
		}
	}
	return found
}

// sharedGitDir is the git directory that a linked worktree shares. Its .git file can contain anything, so the repository must know the
// worktree, too. Empty: the folder is no linked worktree.
func sharedGitDir(top string) string {
	file := filepath.Join(top, ".git")
	said, ok := strings.CutPrefix(oneLineOf(file), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(said) {
		said = filepath.Join(top, said)
	}
	own, err := filepath.EvalSymlinks(said)
	if err != nil || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return ""
	}
	back := oneLineOf(filepath.Join(own, "gitdir"))
	if !filepath.IsAbs(back) {
		back = filepath.Join(own, back)
	}
	if at, err := filepath.EvalSymlinks(back); err != nil || at != file {
		return ""
	}
	return filepath.Dir(filepath.Dir(own))
}

func oneLineOf(file string) string {
	text, err := readSmall(file, gitFileMax)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// readSmall reads a regular file, which is no link, of at most so many bytes. A pipe would block.
func readSmall(file string, most int64) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return nil, os.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", file, most)
	}
	return text, err
}

// gitconfig is git's file in the session's home: who the person is, and nothing that runs a program. There is no key to sign with
// in the view; what is taken over is signed outside.
func (m *maker) gitconfig() []byte {
	var b bytes.Buffer
	b.WriteString("[user]\n")
	for key, value := range map[string]string{"name": m.Name, "email": m.Mail} {
		if value != "" && !strings.ContainsAny(value, "\n\r\x00") {
			fmt.Fprintf(&b, "\t%s = \"%s\"\n", key, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value))
		}
	}
	b.WriteString("[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n[safe]\n")
	for _, dir := range []string{m.Dir, topOf(m.Dir), m.Clone} {
		if dir != "" && !strings.ContainsAny(dir, "\n\r\"\\") {
			fmt.Fprintf(&b, "\tdirectory = \"%s\"\n", dir)
		}
	}
	return b.Bytes()
}
