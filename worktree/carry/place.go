package carry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/worktree"
)

// settings override what a repository may have set, so that the index of a snapshot is one whole file, with all files.
var settings = []string{"-c", "core.sparseCheckout=false", "-c", "index.sparse=false", "-c", "core.splitIndex=false", "-c", "core.untrackedCache=false"}

// place is a checkout and its repository. Git reads and writes the files of the checkout with the settings of the
// repository: those of a clone may be of an agent.
type place struct {
	repo   worktree.Git
	in     worktree.Git // the checkout
	common string       // the git folder of the repository
	git    string       // the git folder of the checkout
	clone  bool         // the checkout has a repository of its own, with the objects of repo behind it
}

// find looks at a checkout. It is a linked worktree of the repository, or a clone.
func find(ctx context.Context, repo worktree.Git, checkout string) (p place, err error) {
	p.repo = repo
	common := filepath.Join(repo.Dir, ".git")
	if info, err := os.Lstat(common); err != nil || !info.IsDir() {
		said, err := repo.Ask(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
		if err != nil {
			return p, err
		}
		common = strings.TrimSuffix(said, "\n")
	}
	if p.common, err = filepath.EvalSymlinks(common); err != nil {
		return p, err
	}
	if p.in.Dir, err = filepath.EvalSymlinks(checkout); err != nil {
		return p, err
	}
	dot := filepath.Join(p.in.Dir, ".git")
	info, err := os.Lstat(dot)
	switch {
	case err == nil && info.IsDir() && dot != p.common:
		p.clone, p.git = true, dot
		return p, p.plainClone()
	case err == nil && info.Mode().IsRegular() && info.Size() <= 2*nameMax:
		said, err := os.ReadFile(dot)
		if err != nil {
			return p, err
		}
		at := strings.TrimRight(strings.TrimPrefix(string(said), "gitdir: "), "\r\n")
		if !filepath.IsAbs(at) {
			at = filepath.Join(p.in.Dir, at)
		}
		if p.git, err = filepath.EvalSymlinks(at); err != nil {
			break
		}
		back, err := os.ReadFile(filepath.Join(p.git, "gitdir")) // .git can name any folder, so that this one has to name it, too
		if err == nil && filepath.Dir(p.git) == filepath.Join(p.common, "worktrees") && same(strings.TrimSuffix(string(back), "\n"), dot) {
			return p, nil
		}
	}
	return p, worktree.Stays(checkout + " is no worktree of " + repo.Dir + ", and no clone")
}

func same(a, b string) bool {
	x, err := os.Lstat(a)
	y, err2 := os.Lstat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// plainClone checks that what git would write in a clone is not elsewhere.
func (p place) plainClone() error {
	for _, name := range []string{"HEAD", "index", "objects", "refs", "refs/heads", "logs"} {
		info, err := os.Lstat(filepath.Join(p.git, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if file := name == "HEAD" || name == "index"; file != info.Mode().IsRegular() || file == info.IsDir() {
			return worktree.Stays(fmt.Sprintf("%s is not what git makes; make the clone again", filepath.Join(p.git, name)))
		}
	}
	return nil
}

// files runs git on the files of the checkout, with an index that is a temporary file.
func (p place) files(ctx context.Context, index string, input string, args ...string) (string, error) {
	env := []string{"GIT_DIR=" + p.common, "GIT_WORK_TREE=" + p.in.Dir, "GIT_INDEX_FILE=" + index, "GIT_NO_REPLACE_OBJECTS=1"}
	said, err := p.in.Run(ctx, worktree.GitWorkMax, env, text(input), append(settings[:len(settings):len(settings)], args...)...)
	return strings.TrimSuffix(said, "\n"), err
}

// own runs git in the checkout: for its HEAD, its branches and its index.
func (p place) own(ctx context.Context, args ...string) (string, error) {
	said, err := p.in.AskIn(ctx, []string{"GIT_NO_LAZY_FETCH=1"}, args...)
	return strings.TrimSuffix(said, "\n"), err
}

// head reads what is checked out. The commits of a clone are fetched first.
func (p place) head(ctx context.Context, run string, s *shot) (err error) {
	s.branch, err = p.own(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil && !worktree.GitHasNone(err) {
		return err
	}
	in, env, head := p.in, p.in.Inside(), "HEAD"
	if err = nil; p.clone {
		in, env, head = p.repo, nil, refOf(run, "seen")
		_, err = p.repo.Run(ctx, worktree.GitWorkMax, []string{"GIT_NO_LAZY_FETCH=1"}, nil,
			"-c", "fetch.fsckObjects=true", "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
			"--no-recurse-submodules", "--no-auto-maintenance", "--", p.in.Dir, "+HEAD:"+head)
	}
	var found []string
	if err == nil {
		found, err = objects(ctx, in, env, head+"^{commit}", head+"^{tree}", refOf(run, "out"))
	}
	switch {
	case worktree.GitSaidNo(err):
		return fmt.Errorf("%s has no commit that can be read: %w", p.in.Dir, err)
	case err != nil:
		return err
	case found[0] == "" || found[1] == "":
		return fmt.Errorf("%s has no commit that can be read", p.in.Dir)
	}
	s.head, s.tree, s.out = found[0], found[1], found[2]
	return nil
}

// kind says what a name is on disk: a file or a link (there), or a folder with a repository (module). Neither if it is
// anything else, or behind a link.
type looker struct {
	top  string
	dirs map[string]bool
}

func (l looker) dir(name string) bool {
	if name == "." {
		return true
	}
	is, known := l.dirs[name]
	if !known {
		info, err := os.Lstat(filepath.Join(l.top, name))
		is = l.dir(path.Dir(name)) && err == nil && info.IsDir()
		l.dirs[name] = is
	}
	return is
}

func (l looker) look(name string) (there, module bool, bytes int64) {
	if !l.dir(path.Dir(name)) {
		return false, false, 0
	}
	info, err := os.Lstat(filepath.Join(l.top, name))
	switch {
	case err != nil:
	case info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink:
		return true, false, info.Size()
	case info.IsDir():
		_, err := os.Lstat(filepath.Join(l.top, name, ".git"))
		return false, err == nil, 0
	}
	return false, false, 0
}
